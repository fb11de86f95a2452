"""The parts of a biped from the shape of its joint tree alone, for characters whose joint names say nothing.

A biped is recognised by two mirrored chains that end on the ground below a joint, and two mirrored chains further up the tree.
Where the shape does not say it clearly, nothing is returned.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.kinematics.skeleton import Skeleton

_MIRRORED = 0.1  # how far a pair of joints may be from mirror images, in body heights
_ON_GROUND = 0.15  # how high above the lowest joint a leg may end, in body heights


def body_height(p_world_joint: Float[Tensor, "J 3"]) -> float:
    """The largest extent of the joints along an axis [m]; never zero."""
    return max(float((p_world_joint.amax(0) - p_world_joint.amin(0)).max()), 1e-6)


def biped_limbs(skeleton: Skeleton, p: Float[Tensor, "J 3"]) -> dict[str, int]:
    """Limb roles of an unnamed biped, or nothing. `p` are the joints' rest positions in the world [m]."""
    height, ground = body_height(p), float(p[:, 1].min())
    for hips in range(len(skeleton)):
        for pair in _mirrored_children(skeleton, p, hips):
            legs = [_chain_down(skeleton, p, joint) for joint in pair]
            if any(float(p[leg[-1], 1]) - ground > _ON_GROUND * height or float(p[leg[0], 1]) - ground < 0.25 * height for leg in legs):
                continue
            parts = [leg_parts(p, leg) for leg in legs]
            if all(parts) and (arms := _arms(skeleton, p, hips, pair)):
                return _sided(p, parts, arms)
    return {}


def leg_parts(p: Float[Tensor, "J 3"], chain: list[int]) -> dict[str, int]:
    """hip, knee, foot and toe along a chain of joints from the hip down; nothing if it is too short to be a leg."""
    y = p[chain, 1]
    reach = float(y[0] - y.min())
    foot = next((i for i in range(2, len(chain)) if float(y[i] - y.min()) < 0.25 * reach), 0)
    if foot == 0:
        return {}
    parts = {"hip": chain[0], "knee": chain[_middle(p, chain[: foot + 1])], "foot": chain[foot]}
    return parts | ({"toe": chain[foot + 1]} if foot + 1 < len(chain) else {})


def arm_parts(p: Float[Tensor, "J 3"], chain: list[int]) -> dict[str, int]:
    """collar, shoulder, elbow and hand along a chain: upper arm and forearm are its two longest neighbouring bones."""
    if len(chain) < 3:
        return {}
    bones = (p[chain[1:]] - p[chain[:-1]]).norm(dim=-1).tolist()
    first = max(range(len(bones) - 1), key=lambda i: min(bones[i], bones[i + 1]))
    parts = {"shoulder": chain[first], "elbow": chain[first + 1], "hand": chain[first + 2]}
    return parts | ({"collar": chain[first - 1]} if first > 0 else {})


def _middle(p: Float[Tensor, "J 3"], chain: list[int]) -> int:
    """The place in a chain of three or more, ends excluded, that is nearest to half its length."""
    lengths = (p[chain[1:]] - p[chain[:-1]]).norm(dim=-1).cumsum(0)
    return 1 + int((lengths[:-1] - lengths[-1] / 2).abs().argmin())


def _mirrored_children(skeleton: Skeleton, p: Float[Tensor, "J 3"], joint: int) -> list[tuple[int, int]]:
    """Pairs of children, the one at larger x first, that rest as mirror images of each other about their parent."""
    children = skeleton.children[joint]
    if len(children) < 2:
        return []
    height, here = body_height(p), p[list(children)] - p[joint]
    apart = here[:, None, 0] - here[None, :, 0] > 0.01 * height
    images = (here[:, None] - here[None] * torch.tensor([-1.0, 1.0, 1.0]).to(p)).norm(dim=-1) < _MIRRORED * height
    return [(children[a], children[b]) for a, b in (apart & images).nonzero().tolist()]


def _chain_down(skeleton: Skeleton, p: Float[Tensor, "J 3"], joint: int) -> list[int]:
    """The joints from `joint` on, at every branch towards the lower child."""
    chain = [joint]
    while skeleton.children[chain[-1]]:
        chain.append(min(skeleton.children[chain[-1]], key=lambda child: float(p[child, 1])))
    return chain


def _arms(skeleton: Skeleton, p: Float[Tensor, "J 3"], hips: int, legs: tuple[int, int]) -> list[dict[str, int]]:
    """The mirrored pair of chains above the hips that reaches furthest to the sides."""
    best, reach = [], 0.0
    for joint in range(len(skeleton)):
        above = skeleton.path(hips, joint)
        if not above or joint == hips or above[1] in legs:
            continue
        for pair in _mirrored_children(skeleton, p, joint):
            parts = [arm_parts(p, _chain_to_branch(skeleton, top)) for top in pair]
            if all(parts) and float(p[parts[0]["hand"], 0] - p[parts[1]["hand"], 0]) > reach:
                best, reach = parts, float(p[parts[0]["hand"], 0] - p[parts[1]["hand"], 0])
    return best


def _chain_to_branch(skeleton: Skeleton, joint: int) -> list[int]:
    chain = [joint]
    while len(skeleton.children[chain[-1]]) == 1:
        chain.append(skeleton.children[chain[-1]][0])
    return chain


def _sided(p: Float[Tensor, "J 3"], legs: list[dict[str, int]], arms: list[dict[str, int]]) -> dict[str, int]:
    """Sides for pairs given as (+X, −X): +X is left where the toes point to +Z, and right where they point to −Z."""
    toes = sum(float(p[leg["toe"], 2] - p[leg["foot"], 2]) for leg in legs if "toe" in leg)
    sides = ("left", "right") if toes >= 0 else ("right", "left")
    return {f"{side}_{part}": joint for side, leg, arm in zip(sides, legs, arms, strict=True) for part, joint in {**leg, **arm}.items()}
