"""What a motion is charged for beside the prior: jerky curves (akd Eq. 9), bones in the ground (Eq. 10), and, ours, sliding feet,
angles beyond what joints allow, and sides that do not share the work."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bunraku.distill.bone_boxes import BoneBoxes
from bunraku.distill.trajectory import Trajectory
from bunraku.kinematics.forward import WorldPoses
from bunraku.kinematics.symmetry import mirror_pairs

_FREE = math.radians(75)  # an angle up to this costs nothing
_NEAR = 0.02  # [body heights] a corner this near to the ground is taken to stand


@dataclass(frozen=True, kw_only=True)
class Regularisers:
    """The weight of each term. They belong to a loss of the prior that is a mean over the latent."""

    smooth: float = 0.18  # the paper's 2e5 on its sum over 1.1 M numbers
    ground: float = 8.9  # likewise its 1e7
    skate: float = 0.0
    limits: float = 0.0
    sides: float = 0.0


def regularisers(weights: Regularisers, trajectory: Trajectory, poses: WorldPoses, boxes: BoneBoxes, ground: float) -> dict[str, Tensor]:
    """The weighted terms that are in force, by name."""
    corners = boxes.corners(poses)
    height, fps = trajectory.height, trajectory.timing.fps
    terms = {
        "smooth": lambda: smoothness(trajectory.values()),
        "ground": lambda: penetration(corners[..., 1] - ground) / height,
        "skate": lambda: skating(corners, ground, height, fps),
        "limits": lambda: beyond_limits(trajectory.bone_angles()),
        "sides": lambda: one_sided(trajectory),
    }
    return {field.name: weight * terms[field.name]() for field in fields(weights) if (weight := getattr(weights, field.name))}


def smoothness(values: Float[Tensor, "F C"]) -> Float[Tensor, ""]:
    """The mean size of the second difference, first and last frame left out."""
    if len(values) < 3:
        return values.sum() * 0
    return (values[:-2] - 2 * values[1:-1] + values[2:]).abs().mean()


def penetration(heights: Float[Tensor, "F B 8"]) -> Float[Tensor, ""]:
    """The mean depth of all corners below the ground; 0 for those above."""
    return (-heights).clamp_min(0).mean()


def skating(corners: Float[Tensor, "F B 8 3"], ground: float, height: float, fps: float) -> Float[Tensor, ""]:
    """Mean speed along the ground [body heights/s] of corners near it, weighted by how near they are."""
    near = torch.exp(-(((corners[..., 1] - ground) / (_NEAR * height)) ** 2)).detach()
    stands = near[1:] * near[:-1]
    speed = (corners[1:, ..., (0, 2)] - corners[:-1, ..., (0, 2)]).square().sum(-1).add(1e-12).sqrt() * fps / height
    return (stands * speed).sum() / stands.sum().clamp_min(1.0)


def beyond_limits(angles: Float[Tensor, "F M 3"]) -> Float[Tensor, ""]:
    """How far angles go beyond what most joints allow, squared."""
    return (angles.abs() - _FREE).clamp_min(0).square().mean()


def one_sided(trajectory: Trajectory) -> Float[Tensor, ""]:
    """How much more one side moves than the other: left and right do the same over a gait, each at its own time."""
    left, right = _sides(trajectory)
    if not len(left):
        return trajectory.angles.sum() * 0
    angles = trajectory.bone_angles()
    spread = (angles - angles.mean(0)).square().mean((0, 2)).add(1e-8).sqrt()
    return (spread[left] - spread[right]).square().mean()


def _sides(trajectory: Trajectory) -> tuple[Int[Tensor, " P"], Int[Tensor, " P"]]:
    """Numbers of moved joints that are each other's mirror image."""
    partner = mirror_pairs(trajectory.skeleton)
    number = {int(joint): i for i, joint in enumerate(trajectory.joints)}
    pairs = [(number[a], number[b]) for a, b in enumerate(partner) if a < b and a in number and b in number]
    rows = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]
