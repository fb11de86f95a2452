"""Bones as segments in space: from each joint to each of its children, and on to the tip where there is none."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.joint_names import parse
from bunraku.kinematics.skeleton import Skeleton

# words in the names of joints that pull others and move no skin
HANDLES = {"ik", "pole", "ctrl", "ctl", "control", "controller", "target", "goal", "effector", "slot", "handslot", "socket"}
_ENDS = {"end", "nub", "site"}
_LEAF = 0.5  # of its parent's bone: how far a joint without child and tip goes on


@dataclass(frozen=True, kw_only=True, eq=False)
class Bones:
    """B segments at rest [m, world]; bone b moves with joint `joints[b]`, the one at its head."""

    heads: Float[Tensor, "B 3"]
    tails: Float[Tensor, "B 3"]
    joints: Int[Tensor, " B"]

    def __len__(self) -> int:
        return len(self.joints)

    def to_joints(self, weights: Float[Tensor, "V B"], joints: int) -> Float[Tensor, "V J"]:
        """Weights of bones as weights of the joints that move them."""
        return torch.zeros(len(weights), joints, dtype=weights.dtype).index_add_(1, self.joints, weights)


def moving_bones(skeleton: Skeleton) -> Bones:
    """The bones that skin follows: without the handles of inverse kinematics, and without what stands above the hips of a body with legs.

    A leaf that is called an end is where its parent's bone ends, and has none of its own.
    """
    names = [parse(name).words for name in skeleton.joints]
    idle = {joint for joint, words in enumerate(names) if words & HANDLES}
    if skeleton.has("hips", "left_hip", "right_hip"):
        idle |= set(skeleton.ancestors(skeleton.role("hips")))
    idle -= set(skeleton.roles.values())  # some rigs know a foot only as the handle of its leg
    bones = bones_of(skeleton, frozenset(idle) if len(idle) < len(skeleton) else frozenset())
    ends = [joint for joint, words in enumerate(names) if words & _ENDS and not skeleton.children[joint] and joint not in skeleton.roles.values()]
    keep = ~torch.isin(bones.joints, torch.tensor(ends, dtype=torch.long))
    return Bones(heads=bones.heads[keep], tails=bones.tails[keep], joints=bones.joints[keep]) if keep.any() else bones


def bones_of(skeleton: Skeleton, without: frozenset[int] = frozenset()) -> Bones:
    """At least one bone for every joint. A joint with children has one to each; a leaf ends at its tip or goes on as its parent's bone did.

    Joints in `without` have no bones, nor do bones lead to them.
    """
    rest = rest_poses(skeleton)
    p, R = rest.p_world_joint, rest.R_world_joint
    joints, tails = [], []
    for joint, children in enumerate(skeleton.children):
        if joint in without:
            continue
        tips = [p[joint] + R[joint] @ torch.tensor(skeleton.tips[joint]).to(p)] if joint in skeleton.tips else []
        ends = [p[child] for child in children if child not in without] + tips or [_leaf_end(skeleton, p, joint)]
        longest = max(float((end - p[joint]).norm()) for end in ends)
        ends = [end for end in ends if float((end - p[joint]).norm()) > 1e-6 * longest] or ends[:1]  # a child on the same spot is no bone
        joints += [joint] * len(ends)
        tails += ends
    of = torch.tensor(joints)
    return Bones(heads=p[of], tails=torch.stack(tails), joints=of)


def _leaf_end(skeleton: Skeleton, p_world_joint: Float[Tensor, "J 3"], joint: int) -> Float[Tensor, "3"]:
    """As the last bone above that has a length goes on."""
    chain = skeleton.ancestors(joint)
    for below, above in pairwise(chain):
        arm = p_world_joint[below] - p_world_joint[above]
        if float(arm.norm()) > 0:
            return p_world_joint[joint] + _LEAF * arm
    return p_world_joint[joint]
