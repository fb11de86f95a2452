"""Which joint is the other side's: the left–right pairs of a skeleton, by role, then by name, then by where joints rest."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.kinematics.body_plan import body_height
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.joint_names import name_without_side, parse
from bunraku.kinematics.skeleton import SIDES, Skeleton

NO_PARTNER = -1
_SAME_PLACE = 0.05  # how far a joint may rest from the mirror image of its partner, in body heights


def mirror_pairs(skeleton: Skeleton) -> tuple[int, ...]:
    """For every joint its partner across the body's middle: itself on the middle, NO_PARTNER where the other side lacks it.

    Partners hang below partners, so that a mirrored joint can be told in its mirrored parent's frame.
    """
    p = rest_poses(skeleton).p_world_joint
    partner = [NO_PARTNER] * len(skeleton)
    partner[0] = 0
    for joint in range(len(skeleton)):
        other = partner[joint]
        if other == NO_PARTNER or other < joint:  # a pair is followed down once, from its lower number
            continue
        for a, b in _match(skeleton, p, joint, other):
            partner[a], partner[b] = b, a
    return tuple(partner)


def _match(skeleton: Skeleton, p: Float[Tensor, "J 3"], joint: int, other: int) -> list[tuple[int, int]]:
    """Pairs between the children of two partners; a child on the middle is paired with itself."""
    free_here, free_there = list(skeleton.children[joint]), list(skeleton.children[other])
    pairs: list[tuple[int, int]] = []

    def take(a: int, b: int) -> None:
        pairs.append((a, b))
        for joints in (free_here, free_there):
            joints[:] = [joint for joint in joints if joint not in (a, b)]

    for same in (_same_role, _same_name):
        for a in list(free_here):
            found = [b for b in free_there if b != a and same(skeleton, a, b)]
            if a in free_here and found:
                take(a, found[0])
    height, mirror = body_height(p), torch.tensor([-1.0, 1.0, 1.0]).to(p)
    for a in list(free_here):
        if a not in free_here:
            continue
        if joint == other and abs(float(p[a, 0])) < 0.01 * height:
            take(a, a)
            continue
        distance = {b: float((p[a] * mirror - p[b]).norm()) for b in free_there}
        nearest = min(distance, key=lambda b: distance[b], default=NO_PARTNER)
        if nearest != NO_PARTNER and distance[nearest] < _SAME_PLACE * height:
            take(a, nearest)
        elif joint == other:
            take(a, a)
    return pairs


def _same_role(skeleton: Skeleton, a: int, b: int) -> bool:
    roles = {joint: role for role, joint in skeleton.roles.items()}
    side_a, _, part_a = roles.get(a, "").partition("_")
    side_b, _, part_b = roles.get(b, "").partition("_")
    return bool(part_a) and part_a == part_b and {side_a, side_b} == set(SIDES)


def _same_name(skeleton: Skeleton, a: int, b: int) -> bool:
    name_a, name_b = skeleton.joints[a], skeleton.joints[b]
    return {parse(name_a).side, parse(name_b).side} == set(SIDES) and name_without_side(name_a) == name_without_side(name_b)
