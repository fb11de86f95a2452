"""Where a newly drawn stretch of motion meets frames that are already there.

The network was told those frames and comes close to them, a few centimetres off. The difference that is left at the seam is taken
over and dies out along the new frames, so that the first of them continues the frame before it; what was there stays as it is.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.generator.features import FeatureLayout
from bunraku.math.curves import smooth_step
from bunraku.math.rotations import exp_matrix, log_matrix, matrix_to_rot6d, rot6d_to_matrix


def bend_to(
    layout: FeatureLayout, drawn: Float[Tensor, "F D"], known: Float[Tensor, " D"], *, at: int, frames: int, after: bool
) -> Float[Tensor, "F D"]:
    """`drawn` with its frame `at` moved to the pose `known`; the correction fades within `frames` frames after it, or before it.

    Places are corrected along straight lines, turns of joints in the world along the shortest arc. On the other side of `at` the
    correction is whole: there lie the frames of the overlap. Velocities and contacts stay as drawn.
    """
    away = torch.arange(len(drawn), dtype=drawn.dtype) - at
    fade = 1 - smooth_step((away if after else -away) / max(frames, 1))[:, None]
    bent = drawn.clone()
    for columns in (layout.smooth_root, layout.joint_positions):
        bent[:, columns] += fade * (known[columns] - drawn[at, columns])
    bent[:, layout.heading] = _turned(drawn[:, layout.heading], known[layout.heading], drawn[at, layout.heading], fade)
    R_drawn = rot6d_to_matrix(drawn[:, layout.joint_rotations].unflatten(-1, (-1, 6)))
    R_known = rot6d_to_matrix(known[layout.joint_rotations].unflatten(-1, (-1, 6)))
    turn = log_matrix(R_known @ R_drawn[at].transpose(-1, -2))
    bent[:, layout.joint_rotations] = matrix_to_rot6d(exp_matrix(fade[..., None] * turn) @ R_drawn).flatten(-2)
    return bent


def _turned(drawn: Tensor, known: Tensor, at: Tensor, fade: Tensor) -> Float[Tensor, "F 2"]:
    """Headings (cos, sin), turned by a fading share of the angle between two of them."""
    between = torch.atan2(known[1] * at[0] - known[0] * at[1], known[0] * at[0] + known[1] * at[1])
    angle = torch.atan2(drawn[:, 1], drawn[:, 0]) + fade[:, 0] * between
    return torch.stack([angle.cos(), angle.sin()], dim=-1)
