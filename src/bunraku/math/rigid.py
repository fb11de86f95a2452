"""Rigid transforms as (…, 4, 4) matrices: `T_a_b` takes b-coordinates to a-coordinates."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

Transform = Float[Tensor, "*batch 4 4"]


def rigid(R: Float[Tensor, "*batch 3 3"], p: Float[Tensor, "*batch 3"]) -> Transform:
    """`T_a_b` from the rotation `R_a_b` and the origin of b in a."""
    T = torch.zeros(*p.shape[:-1], 4, 4, dtype=p.dtype, device=p.device)
    T[..., :3, :3] = R
    T[..., :3, 3] = p
    T[..., 3, 3] = 1
    return T


def rigid_inverse(T: Transform) -> Transform:
    """`T_b_a` of a rigid `T_a_b`."""
    R_inverse = T[..., :3, :3].transpose(-1, -2)
    return rigid(R_inverse, -(R_inverse @ T[..., :3, 3:]).squeeze(-1))


def transform_points(T: Float[Tensor, "*#batch 4 4"], p: Float[Tensor, "*#batch N 3"]) -> Float[Tensor, "*#batch N 3"]:
    """`p_a = T_a_b p_b` for a set of points."""
    return p @ T[..., :3, :3].transpose(-1, -2) + T[..., None, :3, 3]
