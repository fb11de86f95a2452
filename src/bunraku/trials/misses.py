"""By how much a motion misses its constraints, family by family, as the paper counts: the mean over constrained frames and joints.

    family            what is compared
    fullbody          every joint's place, at whole-body poses
    effector          the places of the hand's or foot's joints, and the turn of its base joint
    root              the smoothed root of the motion, measured on the motion itself, against waypoints and paths
    pelvis            the hips on the ground against the same, its mean and 95th percentile over all frames of all cases
    heading           which way the hips face, where a path or a heading says so
    contacts          agreement with a plan of the feet
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.evaluate.metric import metric
from bunraku.kinematics.effectors import effector_joints
from bunraku.kinematics.forward import WorldPoses, forward_kinematics
from bunraku.kinematics.heading import heading_of
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.smooth_root import smoothed_root
from bunraku.math.rotations import geodesic_distance, quat_to_matrix
from bunraku.timeline.constraints import Constraint, EffectorTarget, FootPlan, Heading, PoseKey, RootPath


@dataclass(frozen=True, kw_only=True, eq=False)
class Misses:
    """Every miss of one motion, one number for each constrained frame (and joint); empty where nothing of the kind was asked."""

    fullbody: Float[Tensor, " a"]  # [m]
    effector: Float[Tensor, " b"]  # [m]
    effector_turn: Float[Tensor, " c"]  # [rad]
    root: Float[Tensor, " d"]  # [m]
    pelvis: Float[Tensor, " d"]  # [m]
    heading: Float[Tensor, " e"]  # [rad]
    contacts: Float[Tensor, " f"]  # 0 where they agree, 1 where not


@dataclass(frozen=True, kw_only=True)
class MissMetrics:
    """The misses of many motions: the mean of each motion's mean."""

    fullbody: float | None = metric("cm", "whole-body poses: mean distance of joints")
    effector: float | None = metric("cm", "hands and feet: mean distance")
    effector_turn: float | None = metric("deg", "hands and feet: mean angle")
    root: float | None = metric("cm", "2D root: mean distance of the smoothed root")
    pelvis: float | None = metric("cm", "2D root: mean distance of the hips on the ground")
    pelvis_p95: float | None = metric("cm", "2D root: 95th percentile of that distance over all frames")
    root_within: float | None = metric("1", "2D root: share of the frames with the hips within 10 cm")
    heading: float | None = metric("deg", "heading: mean angle")
    contacts: float | None = metric("1", "foot plan: share of contacts as planned")


WITHIN = 0.10  # [m] of `root_within`, as the released benchmark has it


def misses(motion: Motion, constraints: Sequence[Constraint]) -> Misses:
    """Every miss, measured in float64 on the motion alone: what a model says of its own root is not asked."""
    motion = motion.to(torch.float64)
    poses = forward_kinematics(motion)
    found: dict[str, list[Tensor]] = {field.name: [] for field in fields(Misses)}
    for constraint in constraints:
        for family, values in _of_one(motion, poses, constraint).items():
            found[family].append(values.flatten().double())
    return Misses(**{family: torch.cat(rows) if rows else torch.zeros(0, dtype=torch.float64) for family, rows in found.items()})


def miss_metrics(all_misses: Iterable[Misses]) -> MissMetrics:
    rows = list(all_misses)

    def mean(family: str, unit: float) -> float | None:
        means = [float(values.mean()) for row in rows if len(values := getattr(row, family))]
        return unit * sum(means) / len(means) if means else None

    pelvis = torch.cat([row.pelvis for row in rows]) if rows else torch.zeros(0)
    disagree = mean("contacts", 1.0)
    return MissMetrics(
        fullbody=mean("fullbody", 100.0),
        effector=mean("effector", 100.0),
        effector_turn=mean("effector_turn", math.degrees(1)),
        root=mean("root", 100.0),
        pelvis=mean("pelvis", 100.0),
        pelvis_p95=100 * float(pelvis.quantile(0.95)) if len(pelvis) else None,
        root_within=float((pelvis <= WITHIN).double().mean()) if len(pelvis) else None,
        heading=mean("heading", math.degrees(1)),
        contacts=None if disagree is None else 1 - disagree,
    )


def _of_one(motion: Motion, poses: WorldPoses, constraint: Constraint) -> dict[str, Tensor]:
    f = constraint.frames
    match constraint:
        case PoseKey(effectors=None, poses=key):
            return {"fullbody": (poses.p_world_joint[f] - forward_kinematics(key.to(torch.float64)).p_world_joint).norm(dim=-1)}
        case PoseKey(effectors=effectors, poses=key):
            keyed = forward_kinematics(key.to(torch.float64))
            chains = [effector_joints(motion.skeleton, effector) for effector in effectors or ()]
            joints, bases = [joint for chain in chains for joint in chain], [chain[0] for chain in chains]
            away = (poses.p_world_joint[f][:, joints] - keyed.p_world_joint[:, joints]).norm(dim=-1)
            return {"effector": away, "effector_turn": geodesic_distance(poses.R_world_joint[f][:, bases], keyed.R_world_joint[:, bases])}
        case EffectorTarget(effector=effector, position=position, quats=quats):
            base = motion.skeleton.role(effector)
            found = {} if position is None else {"effector": (poses.p_world_joint[f, base] - position).norm(dim=-1)}
            if quats is not None:
                found["effector_turn"] = geodesic_distance(poses.R_world_joint[f, base], quat_to_matrix(quats.double()))
            return found
        case RootPath(xz=xz, heading=heading):
            p_hips = poses.p_world_joint[:, motion.skeleton.roles.get("hips", 0)]
            found = {
                "root": (smoothed_root(p_hips)[f][:, [0, 2]] - xz).norm(dim=-1),
                "pelvis": (p_hips[f][:, [0, 2]] - xz).norm(dim=-1),
            }
            return found if heading is None else found | {"heading": _heading_miss(motion, poses, f, heading)}
        case Heading(heading=heading):
            return {"heading": _heading_miss(motion, poses, f, heading)}
        case FootPlan(contacts=contacts):
            return {} if motion.contacts is None else {"contacts": motion.contacts[f] != contacts}


def _heading_miss(motion: Motion, poses: WorldPoses, frames: Tensor, heading: Float[Tensor, " K"]) -> Float[Tensor, " K"]:
    away = heading_of(motion.skeleton, poses.p_world_joint[frames]) - heading
    return torch.atan2(away.sin(), away.cos()).abs()
