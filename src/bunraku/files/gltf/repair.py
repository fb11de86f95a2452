"""Feet that hang on the wrong bone. Rigs baked from inverse kinematics often keep the foot below the root or a handle, not below the leg.

For motion a foot belongs to its leg: `Foot.L` to `LowerLeg.L`, `IKBackLeg.L` to `BackLowerLeg.L`. What is moved here is only the
skeleton's idea of its parents; the document keeps its tree, and writing back goes through world poses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from bunraku.kinematics.joint_names import parse

_FEET, _HANDS = {"foot", "feet", "paw", "hoof"}, {"hand"}
_LEGS, _ARMS = ("leg", "shin", "calf", "shank", "tibia"), ("arm",)
_HANDLES = {"pole", "poletarget", "target", "pt", "knee", "elbow", "slot", "armature"}
_REGIONS = {"front": "front", "fore": "front", "back": "back", "hind": "back", "rear": "back", "mid": "mid", "middle": "mid"}
_REACH = 0.5  # of the body's size: how far a foot may lie from the joint where its lower leg begins


def find_detached(names: Sequence[str], parents: Sequence[int], p: Float[np.ndarray, "J 3"], weighted: Bool[np.ndarray, " J"]) -> dict[int, int]:
    """Joint → the leg or arm bone it should hang below, for hands and feet that hang elsewhere."""
    parents = list(parents)  # follows the moves, so that no two of them can make a ring
    children: list[list[int]] = [[] for _ in names]
    for joint, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(joint)
    size = np.ptp(p[weighted], axis=0).max() if weighted.any() else 0.0
    found = {}
    for joint, name in enumerate(names):
        limb = _limb_of_end(name)
        if limb is None or any(_is_limb(names[above], limb, parse(name).side) for above in _above(joint, parents)):
            continue
        bones = [bone for bone in _last_bones(names, parents, children, limb, name) if bone != joint and joint not in _above(bone, parents)]
        near = [bone for bone in bones if np.linalg.norm(p[joint] - p[bone]) <= _REACH * size]
        if not near:
            continue
        bone = min(near, key=lambda bone: float(np.linalg.norm(p[joint] - p[bone])))
        # a handle that moves no skin is a foot only where the leg has no other
        if weighted[_below(joint, children)].any() or not children[bone]:
            found[joint] = parents[joint] = bone
    return found


def _limb_of_end(name: str) -> tuple[str, ...] | None:
    """The limb words that a hand or foot of this name belongs to; None if it is neither."""
    parsed = parse(name)
    words = parsed.words
    if parsed.side is None or words & _HANDLES:
        return None
    if words & _FEET or ("ik" in words and "leg" in words):
        return _LEGS
    return _ARMS if words & _HANDS or ("ik" in words and "arm" in words) else None


def _is_limb(name: str, limb: tuple[str, ...], side: str | None) -> bool:
    parsed = parse(name)
    return parsed.side == side and not parsed.control and not parsed.words & _HANDLES and any(part in word for word in parsed.words for part in limb)


def _last_bones(names: Sequence[str], parents: Sequence[int], children: list[list[int]], limb: tuple[str, ...], end: str) -> list[int]:
    """The last bone of every limb on the same side and in the same region (front, middle, back) as the hand or foot `end`."""
    side, region = parse(end).side, _region(end)
    bones = [j for j, name in enumerate(names) if parents[j] >= 0 and _is_limb(name, limb, side) and _region(name) == region]
    return [bone for bone in bones if not any(other in bones for other in _below(bone, children)[1:])]


def _region(name: str) -> frozenset[str]:
    return frozenset(_REGIONS[word] for word in parse(name).words if word in _REGIONS)


def _above(joint: int, parents: Sequence[int]) -> list[int]:
    chain = []
    while (joint := parents[joint]) >= 0:
        chain.append(joint)
    return chain


def _below(joint: int, children: list[list[int]]) -> list[int]:
    """The joint and everything below it."""
    found = [joint]
    for current in found:
        found += children[current]
    return found
