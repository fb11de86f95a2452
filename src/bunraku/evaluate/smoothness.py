"""How smoothly joints move: jerk, acceleration, and turns too fast for a body."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.evaluate.clip import Clip
from bunraku.evaluate.metric import metric
from bunraku.math.rotations import log_quat, quat_conjugate, quat_multiply

POP_ANGLE = math.radians(60)  # [rad] a joint that turns further than this in POP_TIME jumped: the glitch measure of the CMU recordings
POP_TIME = 1 / 30  # [s]


@dataclass(frozen=True, kw_only=True)
class SmoothnessMetrics:
    """None where the clip has too few frames for the difference."""

    jerk_mean: float | None = metric("m/s³", "mean over joints and frames of the third derivative of position")
    jerk_p99: float | None = metric("m/s³", "its 99th percentile")
    angular_jerk_mean: float | None = metric("rad/s³", "mean over joints and frames of the second derivative of the joints' angular velocity")
    angular_jerk_p99: float | None = metric("rad/s³", "its 99th percentile")
    acceleration_max: float | None = metric("m/s²", "largest acceleration of any joint")
    turn_max: float | None = metric("deg/s", "fastest turn of any joint in its parent")
    pops: int | None = metric("1", "joint steps faster than 60 degrees per 1/30 s")
    pop_frames: int | None = metric("1", "frame steps with at least one pop")


def smoothness_metrics(clip: Clip) -> SmoothnessMetrics:
    frames, fps = len(clip.motion), clip.fps
    found: dict[str, float | int] = {}
    v = clip.poses.p_world_joint.diff(dim=0) * fps
    w = joint_turns(clip.motion.quats) * fps
    if frames > 1:
        turn = w.norm(dim=-1)
        pops = turn > POP_ANGLE / POP_TIME
        found |= {"turn_max": math.degrees(float(turn.max())), "pops": int(pops.sum()), "pop_frames": int(pops.any(dim=-1).sum())}
    if frames > 2:
        found["acceleration_max"] = float((v.diff(dim=0) * fps).norm(dim=-1).max())
    if frames > 3:
        found |= _mean_and_p99("jerk", v.diff(n=2, dim=0).norm(dim=-1) * fps**2)
        found |= _mean_and_p99("angular_jerk", w.diff(n=2, dim=0).norm(dim=-1) * fps**2)
    return SmoothnessMetrics(**found)  # type: ignore[arg-type]


def joint_turns(quats: Float[Tensor, "F J 4"]) -> Float[Tensor, "G J 3"]:
    """The rotation vector [rad] from each frame to the next, in the parent's frame."""
    return log_quat(quat_multiply(quats[1:], quat_conjugate(quats[:-1])))


def _mean_and_p99(name: str, values: Float[Tensor, "G J"]) -> dict[str, float]:
    values = values.flatten()
    p99 = torch.topk(values, k=len(values) - math.ceil(0.99 * len(values)) + 1).values[-1]  # nearest rank
    return {f"{name}_mean": float(values.mean()), f"{name}_p99": float(p99)}
