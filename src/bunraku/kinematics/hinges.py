"""Robots turn about one axis per joint: from free joint turns to hinge angles and back.

A hinge's zero is the skeleton's rest pose: the local turn is `rest_quat · exp(axis · angle)`, the axis in the joint's own frame.
A free turn is split into the twist about the axis, which the hinge can make, and the swing that is left over, which it cannot.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import SkeletonMismatch
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Hinges, Skeleton
from bunraku.math.rotations import exp_quat, quat_conjugate, quat_distance, quat_multiply


def hinge_angles(motion: Motion) -> tuple[Float[Tensor, "F H"], Float[Tensor, "F H"]]:
    """Hinge angles [rad] in the robot's order, and the angle [rad] of the turn about other axes that no hinge can make.

    Of the angles 2π apart, the one nearest the middle of the hinge's range is taken; a hinge without limits runs on through full turns.
    """
    hinges, joints = require_hinges(motion.skeleton)
    turn = quat_multiply(quat_conjugate(motion.skeleton.rest_quats[joints].to(motion.quats)), motion.quats[:, joints])
    w, u = turn[..., 0], turn[..., 1:]
    along = (u * hinges.axes.to(turn)).sum(-1)
    angles = _nearest_turn(2 * torch.atan2(along, w), hinges)
    off_axis = 2 * torch.atan2((u - along[..., None] * hinges.axes.to(turn)).norm(dim=-1), torch.hypot(w, along))
    return angles, off_axis


def fixed_joint_turns(motion: Motion) -> Float[Tensor, " F"]:
    """The largest turn away from rest [rad] among the joints that have no hinge and are not the root: a robot holds them fixed."""
    hinges, _ = require_hinges(motion.skeleton)
    fixed = [j for j, name in enumerate(motion.skeleton.joints) if j > 0 and name not in hinges.joints]
    if not fixed:
        return torch.zeros(len(motion), dtype=motion.quats.dtype)
    return quat_distance(motion.skeleton.rest_quats[fixed].to(motion.quats), motion.quats[:, fixed]).amax(dim=-1)


def motion_from_hinges(
    skeleton: Skeleton, root_position: Float[Tensor, "F 3"], root_quats: Float[Tensor, "F 4"], angles: Float[Tensor, "F H"], fps: float
) -> Motion:
    """The motion that hinge angles [rad] make; joints without a hinge stay at rest."""
    hinges, joints = require_hinges(skeleton)
    if angles.shape[-1] != len(joints):
        raise SkeletonMismatch(f"skeleton '{skeleton.name}' has {len(joints)} hinges; {angles.shape[-1]} angles per frame were given.")
    quats = skeleton.rest_quats.to(angles).expand(angles.shape[0], -1, -1).clone()
    quats[:, 0] = root_quats
    quats[:, joints] = quat_multiply(quats[:, joints], exp_quat(hinges.axes.to(angles) * angles[..., None]))
    return Motion(skeleton=skeleton, fps=fps, root_position=root_position, quats=quats)


def limit_violations(hinges: Hinges, angles: Float[Tensor, "F H"]) -> Float[Tensor, "F H"]:
    """How far [rad] each angle lies outside its hinge's limits; 0 inside."""
    return (hinges.lower.to(angles) - angles).clamp_min(0) + (angles - hinges.upper.to(angles)).clamp_min(0)


def clamp_to_limits(hinges: Hinges, angles: Float[Tensor, "F H"]) -> Float[Tensor, "F H"]:
    """The nearest angles that the hinges allow."""
    return torch.minimum(torch.maximum(angles, hinges.lower.to(angles)), hinges.upper.to(angles))


def require_hinges(skeleton: Skeleton) -> tuple[Hinges, list[int]]:
    """The skeleton's hinges and the joint number of each."""
    if skeleton.hinges is None:
        raise SkeletonMismatch(f"skeleton '{skeleton.name}' has no hinges: it is no robot. Use retarget(motion, 'g1'), or a robot read from MJCF or URDF.")
    return skeleton.hinges, [skeleton.index[joint] for joint in skeleton.hinges.joints]


def _nearest_turn(angles: Float[Tensor, "F H"], hinges: Hinges) -> Float[Tensor, "F H"]:
    lower, upper = hinges.lower.to(angles), hinges.upper.to(angles)
    limited = torch.isfinite(lower) & torch.isfinite(upper)
    middle = torch.where(limited, (lower + upper) / 2, torch.zeros_like(lower))
    wrapped = middle + torch.remainder(angles - middle + math.pi, 2 * math.pi) - math.pi
    steps = torch.diff(wrapped, dim=0)
    turns = torch.cat([torch.zeros_like(wrapped[:1]), torch.cumsum(-torch.round(steps / (2 * math.pi)), dim=0)])
    return torch.where(limited, wrapped, wrapped + 2 * math.pi * turns)
