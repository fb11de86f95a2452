"""Joints bent further than the body allows: a robot's hinges against their limits, a person's knees and elbows against anatomy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.evaluate.clip import Clip
from bunraku.evaluate.metric import metric
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.skeleton import SIDES, Hinges, Skeleton
from bunraku.math.rotations import log_quat, quat_conjugate, quat_multiply

HINGE_TOLERANCE = 1e-3  # [rad] rounding of files
STRAIGHT_BELOW = 0.5  # a limb that points this little away from forward at rest has no known bending plane

# (upper joint, middle joint, end joint, which way the lower segment bends along z, most backwards [deg], most folded [deg]).
# People reach about 10 backwards and 150 folded; the rest is room for other proportions and for joint centres off by a centimetre.
LIMBS = (("hip", "knee", "foot", -1.0, 20.0, 165.0), ("shoulder", "elbow", "hand", 1.0, 30.0, 165.0))


@dataclass(frozen=True, kw_only=True)
class JointMetrics:
    """Hinge metrics are None for a skeleton without hinges; bend metrics for one with hinges or without limbs."""

    hinge_violations: int | None = metric("1", "hinge angles outside their limits, over all frames")
    hinge_excess_max: float | None = metric("deg", "furthest beyond a hinge's limit")
    hinge_off_axis_max: float | None = metric("deg", "furthest turn of a hinge joint about anything but its axis")
    bend_frames: int | None = metric("1", "frames with a knee or elbow bent backwards or beyond folding")
    bend_excess_max: float | None = metric("deg", "furthest beyond the anatomical limit")


def joint_metrics(clip: Clip) -> JointMetrics:
    if clip.skeleton.hinges is not None:
        return _hinge_metrics(clip, clip.skeleton.hinges)
    excess = [e for side in SIDES for limb in LIMBS if (e := _bend_excess(clip, side, *limb)) is not None]
    if not excess:
        return JointMetrics()
    worst = torch.stack(excess).amax(dim=0)
    return JointMetrics(bend_frames=int((worst > 0).sum()), bend_excess_max=float(worst.max().clamp_min(0)))


def _hinge_metrics(clip: Clip, hinges: Hinges) -> JointMetrics:
    joints = [clip.skeleton.index[name] for name in hinges.joints]
    rest = clip.skeleton.rest_quats[joints].to(clip.motion.quats)
    axes, lower, upper = (values.to(clip.motion.quats) for values in (hinges.axes, hinges.lower, hinges.upper))
    turn = log_quat(quat_multiply(quat_conjugate(rest), clip.motion.quats[:, joints]))
    angle = (turn * axes).sum(dim=-1)
    off_axis = (turn - angle[..., None] * axes).norm(dim=-1)
    excess = torch.maximum(lower - angle, angle - upper).clamp_min(0)
    return JointMetrics(
        hinge_violations=int((excess > HINGE_TOLERANCE).sum()),
        hinge_excess_max=math.degrees(float(excess.max())),
        hinge_off_axis_max=math.degrees(float(off_axis.max())),
    )


def _bend_excess(clip: Clip, side: str, top: str, middle: str, end: str, towards: float, back: float, folded: float) -> Float[Tensor, " F"] | None:
    """How far beyond its limits a limb is bent in each frame [deg], negative inside; None where it cannot be said."""
    roles = [f"{side}_{part}" for part in (top, middle, end)]
    if not clip.skeleton.has(*roles):
        return None
    bends = limb_bend(clip, roles, towards)
    return None if bends is None else torch.maximum(bends[0] - folded, bends[1] - back)


def limb_bend(clip: Clip, roles: list[str], towards: float) -> tuple[Float[Tensor, " F"], Float[Tensor, " F"]] | None:
    """How far a limb is folded, 0 = straight, and how much of that is backwards [deg].

    The bending axis lies across the upper segment and the direction `towards` · z at rest (a shin folds backwards, a forearm
    forwards) and is carried by the bone above the middle joint, with whatever twist it has. A fold about the opposite axis is
    wholly backwards, one to the side not at all.
    """
    top, middle, end = (clip.skeleton.role(role) for role in roles)
    carrier = clip.skeleton.parents[middle]
    axis_rest = _bending_axis(clip.skeleton, top, middle, carrier, towards)
    if axis_rest is None:
        return None
    p, R = clip.poses.p_world_joint, clip.poses.R_world_joint
    axis = R[:, carrier] @ axis_rest.to(p)
    upper, lower = p[:, middle] - p[:, top], p[:, end] - p[:, middle]
    normal = torch.linalg.cross(upper, lower)
    sine = normal.norm(dim=-1)
    fold = torch.rad2deg(torch.atan2(sine, (upper * lower).sum(dim=-1)))
    opposite = -(normal * axis).sum(dim=-1) / sine.clamp_min(torch.finfo(p.dtype).tiny)
    return fold, fold * opposite.clamp(0, 1)


def _bending_axis(skeleton: Skeleton, top: int, middle: int, carrier: int, towards: float) -> Float[Tensor, " 3"] | None:
    """The limb's bending axis at rest, in the frame of the bone that carries it."""
    rest = rest_poses(skeleton)
    upper = torch.nn.functional.normalize(rest.p_world_joint[middle] - rest.p_world_joint[top], dim=0)
    across = torch.linalg.cross(upper, torch.tensor([0.0, 0.0, towards], dtype=upper.dtype))
    if float(across.norm()) < STRAIGHT_BELOW:
        return None
    return rest.R_world_joint[carrier].T @ torch.nn.functional.normalize(across, dim=0)
