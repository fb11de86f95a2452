"""Where the hands of a retargeted body go when they are near something: each other, the head, the hips, a thigh.

Far from the body a hand simply follows the arm's turns. Close to it, what matters is the relation: hands that clap must meet,
a hand on the hip must reach the hip, however long the arms are. The nearer, the more the relation counts.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.neutral import limb_start
from bunraku.kinematics.skeleton import SIDES, Skeleton

NEAR = 0.25  # [m, person-sized] the distance at which a relation has faded to 1/e
NEAR_LEGS = 0.22  # [m, person-sized] likewise, for hips and thighs: arms that swing past them in a walk are hardly held to them
# Bones, by the roles of their ends. Hips and thighs as bones: whose hips are broader has to hold a hanging hand further out.
_ANCHORS = (("head", "head"), ("left_hip", "right_hip"), ("left_hip", "left_knee"), ("right_hip", "right_knee"))


# For each target hand: where it should be, and how much that matters (0 … 1).
Wishes = dict[int, tuple[Float[Tensor, "F 3"], Float[Tensor, " F"]]]


def hand_wishes(source: Skeleton, p_source: Float[Tensor, "F J 3"], target: Skeleton, p_target: Float[Tensor, "F K 3"], size: float) -> Wishes:
    """Where the target's hands should be so that they keep their relation to the body.

    `p_target` are the joints of the body as it stands, its arms turned as the source's; `size` is the source's against a person. Relations scale with the
    width of the shoulders: a broad chest holds the hands apart, however short the legs below it.
    """
    if not all(s.has("left_hand", "right_hand", "left_shoulder", "right_shoulder") for s in (source, target)):
        return {}
    scale = _shoulder_width(target) / _shoulder_width(source)
    hands_source = {side: p_source[:, source.role(f"{side}_hand")] for side in SIDES}
    hands_target = {side: p_target[:, target.role(f"{side}_hand")] for side in SIDES}
    bones = [(a, b) for a, b in _ANCHORS if source.has(a, b) and target.has(a, b)]
    between = [(hands["left"] + hands["right"]) / 2 for hands in (hands_source, hands_target)]
    wishes = {}
    for side in SIDES:
        hand = hands_source[side]
        anchors = [(*_nearest(hand, _ends(source, p_source, bone), _ends(target, p_target, bone)), NEAR if bone[0] == bone[1] else NEAR_LEGS) for bone in bones]
        anchors.append((between[0], between[1], NEAR / 2))  # for hands that meet; each is half as far from the middle as from the other
        pull, total = torch.zeros_like(hand), torch.zeros_like(hand[:, 0])
        for anchor_source, anchor_target, near in anchors:
            away = hand - anchor_source
            weight = torch.exp(-((away.norm(dim=-1) / (near * size)) ** 2))
            pull = pull + weight[:, None] * (anchor_target + away * scale - hands_target[side])
            total = total + weight
        wishes[target.role(f"{side}_hand")] = (hands_target[side] + pull / total.clamp_min(1)[:, None], total.clamp_max(1))
    return wishes


def _ends(skeleton: Skeleton, p_world_joint: Float[Tensor, "F J 3"], bone: tuple[str, str]) -> tuple[Float[Tensor, "F 3"], Float[Tensor, "F 3"]]:
    return p_world_joint[:, skeleton.role(bone[0])], p_world_joint[:, skeleton.role(bone[1])]


def _nearest(p: Float[Tensor, "F 3"], bone: tuple[Tensor, Tensor], same_bone: tuple[Tensor, Tensor]) -> tuple[Float[Tensor, "F 3"], Float[Tensor, "F 3"]]:
    """The point of a bone nearest to `p`, and the same share of the way along the other body's bone."""
    along = bone[1] - bone[0]
    share = (((p - bone[0]) * along).sum(-1) / along.square().sum(-1).clamp_min(1e-12)).clamp(0, 1)[:, None]
    return torch.lerp(*bone, share), torch.lerp(*same_bone, share)


def _shoulder_width(skeleton: Skeleton) -> float:
    p = rest_poses(skeleton).p_world_joint
    return max(float((p[_arm_start(skeleton, "left")] - p[_arm_start(skeleton, "right")]).norm()), 1e-6)


def _arm_start(skeleton: Skeleton, side: str) -> int:
    upper, lower = f"{side}_shoulder", f"{side}_elbow"
    return limb_start(skeleton, upper, lower) if skeleton.has(lower) else skeleton.role(upper)
