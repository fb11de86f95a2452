"""Does the clip close? Its last frame against its first, wherever the body has gone and whichever way it has turned meanwhile."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.evaluate.clip import Clip
from bunraku.evaluate.metric import metric
from bunraku.math.rotations import matrix_to_quat, quat_distance, quat_normalize, quat_to_matrix


@dataclass(frozen=True, kw_only=True)
class LoopMetrics:
    """A loop repeats its first frame as its last. None for one frame; velocity needs three."""

    loop_pose: float | None = metric("deg", "largest turn of a joint between first and last frame, the heading left out")
    loop_position: float | None = metric("cm", "largest distance of a joint between first and last frame, travel and heading left out")
    loop_velocity: float | None = metric("cm/s", "largest difference of a joint's velocity between the first and the last step, heading left out")


def loop_metrics(clip: Clip) -> LoopMetrics:
    if len(clip.motion) < 2:
        return LoopMetrics()
    p, R = clip.poses.p_world_joint, clip.poses.R_world_joint
    R_first_last = _heading_change(R[0, clip.hips], R[-1, clip.hips])
    local = quat_distance(clip.motion.quats[0, 1:], clip.motion.quats[-1, 1:])
    body = quat_distance(matrix_to_quat(R[0, :1]), matrix_to_quat(R_first_last @ R[-1, :1]))
    on_ground = torch.tensor([1.0, 0.0, 1.0], dtype=p.dtype)
    first = p[0] - p[0, clip.hips] * on_ground
    last = (p[-1] - p[-1, clip.hips] * on_ground) @ R_first_last.T
    step_first, step_last = p[1] - p[0], (p[-1] - p[-2]) @ R_first_last.T
    return LoopMetrics(
        loop_pose=math.degrees(float(torch.cat([local, body]).max())),
        loop_position=100 * float((last - first).norm(dim=-1).max()),
        loop_velocity=100 * clip.fps * float((step_last - step_first).norm(dim=-1).max()) if len(clip.motion) > 2 else None,
    )


def _heading_change(R_world_first: Float[Tensor, "3 3"], R_world_last: Float[Tensor, "3 3"]) -> Float[Tensor, "3 3"]:
    """The turn about the vertical that best takes the last heading to the first: the twist of the turn between them."""
    turn = matrix_to_quat(R_world_first @ R_world_last.T)
    twist = turn * torch.tensor([1.0, 0.0, 1.0, 0.0], dtype=turn.dtype)
    return quat_to_matrix(quat_normalize(twist))
