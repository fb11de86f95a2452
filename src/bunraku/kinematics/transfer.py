"""Turning one skeleton the way another is turned, part by part, through their neutral poses."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.kinematics.forward import WorldPoses
from bunraku.kinematics.neutral import neutral_rotations, segment_joint
from bunraku.kinematics.skeleton import SIDES, Skeleton
from bunraku.math.rotations import matrix_to_quat, quat_to_matrix, slerp

# The limb roles whose segment runs to the next role below; the others turn as their own joint does.
_SEGMENTS = {"hip": "knee", "knee": "foot", "shoulder": "elbow", "elbow": "hand"}


def role_joint(skeleton: Skeleton, role: str) -> int:
    """The joint whose turn is the turn of a role's body part."""
    side, _, part = role.partition("_")
    below = f"{side}_{_SEGMENTS[part]}" if part in _SEGMENTS else ""
    return segment_joint(skeleton, role, below) if below in skeleton.roles else skeleton.role(role)


def transferred_turns(source: Skeleton, poses: WorldPoses, target: Skeleton) -> dict[int, Float[Tensor, "F 3 3"]]:
    """For each target joint that plays a role: its world turn when its body part is turned like the source's.

    Spine and neck chains of different lengths are matched by how far along the chain a joint lies.
    """
    R_source, R_target = neutral_rotations(source).to(poses.R_world_joint), neutral_rotations(target).to(poses.R_world_joint)
    away = poses.R_world_joint @ R_source.transpose(-1, -2)  # every joint's turn from neutral, in the world
    turns: dict[int, Tensor] = {}
    for lower, upper in (("hips", "chest"), ("neck", "head")):
        for joint, turn in _along_chain(source, target, away, lower, upper):
            turns[joint] = turn @ R_target[joint]
    for side in SIDES:
        for part in ("collar", "shoulder", "elbow", "hand", "hip", "knee", "foot", "toe"):
            role = f"{side}_{part}"
            if source.has(role) and target.has(role) and not (part == "hand" and _is_one_of_many(target, target.role(role))):
                # also the role's own joint: where several share a shin, as in an animal's leg, it is the one that stands bent at rest
                for joint in {target.role(role), role_joint(target, role)}:
                    turns[joint] = away[:, role_joint(source, role)] @ R_target[joint]
    return turns


def _is_one_of_many(skeleton: Skeleton, hand: int) -> bool:
    """Is this "hand" only one finger or palm bone among several? Some rigs have no wrist; turning one bone would tear the hand."""
    return len(skeleton.children[skeleton.parents[hand]]) > 2


def _along_chain(source: Skeleton, target: Skeleton, away: Tensor, lower: str, upper: str) -> list[tuple[int, Tensor]]:
    """Turns from neutral of the target's joints between two roles, interpolated along the source's chain."""
    joints = _chain(target, lower, upper)
    known = _chain(source, lower, upper)
    if not joints or not known:
        return []
    quats = matrix_to_quat(away[:, known])
    at_known = _arc(source, known)
    turns = []
    for joint, s in zip(joints, _arc(target, joints), strict=True):
        high = min(int(torch.searchsorted(at_known, s)), len(known) - 1)
        low = max(high - 1, 0)
        span = float(at_known[high] - at_known[low])
        t = torch.full((len(quats),), (float(s - at_known[low]) / span) if span > 0 else 1.0).to(quats)
        turns.append((joint, quat_to_matrix(slerp(quats[:, low], quats[:, high], t))))
    return turns


def _chain(skeleton: Skeleton, lower: str, upper: str) -> list[int]:
    present = [role for role in (lower, upper) if skeleton.has(role)]
    if len(present) == 2:
        return skeleton.path(skeleton.role(lower), skeleton.role(upper)) or [skeleton.role(role) for role in present]
    return [skeleton.role(role) for role in present]


def _arc(skeleton: Skeleton, joints: Sequence[int]) -> Float[Tensor, " N"]:
    """How far along its chain each joint lies, 0 … 1; a chain without length counts its joints."""
    steps = skeleton.offsets[list(joints[1:])].norm(dim=-1).double() + 1e-6
    return torch.cat([torch.zeros(1, dtype=torch.float64), steps.cumsum(0)]) / max(float(steps.sum()), 1e-9)


def compose_turns(target: Skeleton, turns: dict[int, Float[Tensor, "F 3 3"]], frames: int) -> Float[Tensor, "F J 3 3"]:
    """Local turns of the whole target from world turns of some joints; the others keep their rest turn in their parent."""
    rest = quat_to_matrix(target.rest_quats)
    world: list[Tensor] = []
    local: list[Tensor] = []
    for joint, parent in enumerate(target.parents):
        R_world_parent = world[parent] if parent >= 0 else torch.eye(3).expand(frames, 3, 3)
        R = R_world_parent.transpose(-1, -2) @ turns[joint] if joint in turns else rest[joint].expand(frames, 3, 3)
        local.append(R)
        world.append(R_world_parent @ R)
    return torch.stack(local, dim=1)
