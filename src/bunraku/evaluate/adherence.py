"""How closely a motion keeps its constraints: the worst miss of each, in metres and radians."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.kinematics.forward import WorldPoses, forward_kinematics
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.neutral import facing_yaw
from bunraku.kinematics.smooth_root import smoothed_root
from bunraku.math.rotations import geodesic_distance, quat_distance, quat_to_matrix
from bunraku.timeline.constraints import Constraint, EffectorTarget, FootPlan, Heading, PoseKey, RootPath


@dataclass(frozen=True, kw_only=True)
class Adherence:
    """The worst that a motion misses one constraint by; 0 for what the constraint does not ask."""

    constraint: Constraint
    position: float  # [m]
    position_frame: int
    turn: float  # [rad]
    turn_frame: int


def adherence(motion: Motion, constraints: Sequence[Constraint]) -> list[Adherence]:
    """One entry for each constraint, in order. A foot plan asks for no place: it is met by the contacts of the motion."""
    motion = motion.to(torch.float64)
    poses = forward_kinematics(motion)
    return [_worst(c, *_misses(motion, poses, c)) for c in constraints]


def _worst(constraint: Constraint, away: Float[Tensor, "K n"], turned: Float[Tensor, "K m"]) -> Adherence:
    frames = constraint.frames.tolist()

    def worst(values: Tensor) -> tuple[float, int]:
        if not values.numel():
            return 0.0, frames[0] if frames else 0
        row = int(values.amax(dim=-1).argmax())
        return float(values[row].max()), frames[row]

    (position, position_frame), (turn, turn_frame) = worst(away), worst(turned)
    return Adherence(constraint=constraint, position=position, position_frame=position_frame, turn=turn, turn_frame=turn_frame)


def _misses(motion: Motion, poses: WorldPoses, constraint: Constraint) -> tuple[Tensor, Tensor]:
    """Distances (K n) [m] and angles (K m) [rad]."""
    f = constraint.frames
    nothing = torch.zeros(len(f), 0, dtype=torch.float64)
    match constraint:
        case PoseKey(effectors=None, poses=key):
            key = key.to(torch.float64)
            away = (poses.p_world_joint[f] - forward_kinematics(key).p_world_joint).norm(dim=-1)
            return away, quat_distance(motion.quats[f], key.quats)
        case PoseKey(effectors=effectors, poses=key):
            keyed = forward_kinematics(key.to(torch.float64))
            joints = [motion.skeleton.role(effector) for effector in effectors or ()]
            toes = [motion.skeleton.roles[toe] for e in effectors or () if (toe := e.replace("foot", "toe")) != e and motion.skeleton.has(toe)]
            away = (poses.p_world_joint[f][:, joints + toes] - keyed.p_world_joint[:, joints + toes]).norm(dim=-1)
            return away, geodesic_distance(poses.R_world_joint[f][:, joints], keyed.R_world_joint[:, joints])
        case EffectorTarget(effector=effector, position=position, quats=quats):
            j = motion.skeleton.role(effector)
            away = nothing if position is None else (poses.p_world_joint[f, j] - position).norm(dim=-1, keepdim=True)
            return away, nothing if quats is None else geodesic_distance(poses.R_world_joint[f, j], quat_to_matrix(quats.double()))[:, None]
        case Heading(heading=heading):
            return nothing, _heading_miss(motion, poses, f, heading)
        case RootPath(xz=xz, heading=heading):
            away = (smoothed_root(poses.p_world_joint[:, motion.skeleton.roles.get("hips", 0)])[f][:, [0, 2]] - xz).norm(dim=-1, keepdim=True)
            return away, nothing if heading is None else _heading_miss(motion, poses, f, heading)
        case FootPlan():
            return nothing, nothing


def _heading_miss(motion: Motion, poses: WorldPoses, frames: Tensor, heading: Float[Tensor, " K"]) -> Float[Tensor, "K 1"]:
    away = facing_yaw(motion.skeleton, poses.p_world_joint[frames]) - heading
    return torch.atan2(torch.sin(away), torch.cos(away)).abs()[:, None]
