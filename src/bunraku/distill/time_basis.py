"""How optimised values change over time: freely in every frame, or as a smooth curve with a few unknowns a second.

A basis is a matrix: values in F frames = basis (F K) @ coefficients (K …). Rows sum to 1, so a constant is a constant.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue

Basis = Literal["frames", "spline"]
_DEGREE = 3


def basis_matrix(kind: str, frames: int, fps: float, knots_per_second: float = 4.0) -> Float[Tensor, "F K"]:
    """`spline`: a uniform cubic B-spline, at most as fine as the frames themselves."""
    if kind not in get_args(Basis):
        raise BadValue(f"there is no basis '{kind}'; choose {' or '.join(get_args(Basis))}.")
    if not knots_per_second > 0:
        raise BadValue(f"a spline needs knots: {knots_per_second:g} a second were asked for, such as 4.")
    pieces = max(math.ceil((frames - 1) / fps * knots_per_second), 1)
    if kind == "frames" or pieces + _DEGREE >= frames:
        return torch.eye(frames)
    from scipy.interpolate import BSpline

    knots = np.arange(-_DEGREE, pieces + _DEGREE + 1, dtype=np.float64)
    at = np.linspace(0, pieces, frames)
    at[-1] -= 1e-9  # the last piece is half-open
    return torch.from_numpy(BSpline.design_matrix(at, knots, _DEGREE).toarray()).float()
