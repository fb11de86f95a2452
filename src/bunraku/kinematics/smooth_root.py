"""The smoothed root: the path of the hips on the ground with the sway of the steps taken out, as the released Kimodo defines it.

Of all paths that stay within 6 cm of the hips in every frame it is the one with the least acceleration,

    minimise ‖A x‖²   subject to   |x_i − p_i| ≤ 0.06 m,      A the second differences,

or nearly so: the release stops after a fixed number of steps of the alternating direction method of multipliers, from coarse to
fine, and what it had not reached by then is part of the definition, for models were trained on it. It also gives out the path half
a frame late, at i + ½. Both are kept here; `docs/lab.md` says how they were found. The height is that of the hips.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

MARGIN = 0.06  # [m]
STEPS = 500  # at each level

Path = Float[np.ndarray, "_ 2"]


def smoothed_root(p_world_root: Float[Tensor, "F 3"]) -> Float[Tensor, "F 3"]:
    """The smoothed path [m] of a root, for clips of any length."""
    p = p_world_root.detach().cpu().double().numpy()
    on_ground = _half_a_frame_late(_least_acceleration(p[:, [0, 2]]))
    return torch.from_numpy(np.stack([on_ground[:, 0], p[:, 1], on_ground[:, 1]], axis=-1)).to(p_world_root)


def _least_acceleration(p: Path) -> Path:
    """From every 2ᵏ-th frame to every frame; each level starts from the path and the multipliers of the one before."""
    levels = max(int(math.log2(len(p))) - 4, 1)
    x, multiplier = np.tile(p.mean(axis=0), (len(p[:: 2**levels]), 1)), np.zeros((len(p[:: 2**levels]), 2))
    for level in range(levels, -1, -1):
        sparse = p[:: 2**level]
        if level < levels:
            x, multiplier = _twice_as_dense(x, len(sparse)), _twice_as_dense(multiplier, len(sparse))
        x, multiplier = _solve(sparse, x, multiplier)
    return x


def _solve(p: Path, x: Path, multiplier: Path) -> tuple[Path, Path]:
    (factor, penalty), near, solve_banded = _factor(len(p)), x, _solve_banded()
    for _ in range(STEPS):
        x = solve_banded(factor, penalty * (near - multiplier), lower=1)[0]
        away = x + multiplier - p
        distance = np.sqrt(away[:, :1] ** 2 + away[:, 1:] ** 2)
        near = p + away * np.minimum(1.0, MARGIN / np.maximum(distance, 1e-12))
        multiplier = multiplier + x - near
    return x, multiplier


@lru_cache(maxsize=256)
def _factor(frames: int) -> tuple[Float[np.ndarray, "3 F"], float]:
    """The banded Cholesky factor of AᵀA + penalty, and the penalty: the same for all clips of one length."""
    band = np.zeros((3, frames))
    for row in range(frames - 2):
        for lag, products in enumerate(((1.0, 4.0, 1.0), (-2.0, -2.0), (1.0,))):
            band[lag, row : row + len(products)] += products
    penalty = 0.25 * math.sqrt(band[0].max() or 1.0)  # one or two frames accelerate nowhere
    band[0] += penalty
    from scipy.linalg import cholesky_banded

    return cholesky_banded(band, lower=True), penalty


@cache
def _solve_banded() -> Callable[..., tuple[np.ndarray, int]]:
    """LAPACK's solver, bare: scipy's own door costs more than the work behind it."""
    from scipy.linalg import get_lapack_funcs

    (solve,) = get_lapack_funcs(("pbtrs",), dtype=np.float64)
    return solve


def _twice_as_dense(values: Path, frames: int) -> Path:
    """Linear between the given frames and on beyond the last."""
    if len(values) == 1:
        return np.repeat(values, frames, axis=0)
    at = np.arange(frames) / 2
    low = np.minimum(at.astype(int), len(values) - 2)
    return values[low] + (at - low)[:, None] * (values[low + 1] - values[low])


def _half_a_frame_late(x: Path) -> Path:
    """The path at i + ½; the last frame but one is halfway to the extrapolated last, as in the release."""
    if len(x) == 1:
        return x
    late = np.concatenate([(x[:-1] + x[1:]) / 2, [1.5 * x[-1] - 0.5 * x[-2]]])
    late[-2] = (x[-2] + late[-1]) / 2
    return late
