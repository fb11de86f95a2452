"""The only place where up-axis, units and quaternion order change.

Inside Bunraku: right-handed, +Y up, characters face +Z, metres, quaternions w x y z. A `Frame` says how another convention lies
in ours; readers bring numbers in with `*_from`, writers send them out with `*_to`.
"""

from __future__ import annotations

from enum import Enum

import torch
from jaxtyping import Float
from torch import Tensor

CENTIMETRE = 0.01  # [m]
INCH = 0.0254  # [m]
CMU_UNIT = INCH / 0.45  # [m] the CMU database writes lengths in inches divided by 0.45


class Frame(Enum):
    """`R_ours_theirs`, row by row: row i says which of their axes is our axis i."""

    Y_UP = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))  # glTF, Kimodo, BVH by habit
    Z_UP_X_FORWARD = ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0))  # MuJoCo, ROS: our (x y z) = their (y z x)
    Z_UP_Y_BACK = ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, -1.0, 0.0))  # Blender: x stays, their −y is our z
    Z_UP_Y_FORWARD = ((-1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0))  # AMASS, as Kimodo exchanges it: their y is our z
    Y_DOWN = ((-1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0))  # splat files: viewers turn them by half a turn about z

    def matrix(self, like: Tensor) -> Float[Tensor, "3 3"]:
        return torch.tensor(self.value, dtype=like.dtype, device=like.device)


def vectors_from(frame: Frame, v_theirs: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 3"]:
    return v_theirs @ frame.matrix(v_theirs).T


def vectors_to(frame: Frame, v_ours: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 3"]:
    return v_ours @ frame.matrix(v_ours)


def rotations_from(frame: Frame, R_theirs: Float[Tensor, "*batch 3 3"]) -> Float[Tensor, "*batch 3 3"]:
    """A turn between two of *their* frames, seen as the same turn between two of ours (both sides change)."""
    R = frame.matrix(R_theirs)
    return R @ R_theirs @ R.T


def rotations_to(frame: Frame, R_ours: Float[Tensor, "*batch 3 3"]) -> Float[Tensor, "*batch 3 3"]:
    R = frame.matrix(R_ours)
    return R.T @ R_ours @ R


def wxyz_from_xyzw(quat: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch 4"]:
    return torch.cat([quat[..., 3:], quat[..., :3]], dim=-1)


def xyzw_from_wxyz(quat: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch 4"]:
    return torch.cat([quat[..., 1:], quat[..., :1]], dim=-1)
