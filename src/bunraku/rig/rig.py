"""How skin follows bone: a skeleton, its rest transforms, and how much every vertex listens to every joint."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.neutral import facing_yaw
from bunraku.kinematics.skeleton import SIDES, Skeleton
from bunraku.math.rigid import rigid

_OWN_SKIN = 0.5  # a vertex that listens to a joint more than this belongs to it


@dataclass(frozen=True, kw_only=True, eq=False)
class Rig:
    """Rows of `weights` sum to 1. `T_world_joint_rest` is where the joints are while the mesh has its rest shape.

    It follows from the skeleton (`rig_for` fills it in) and is kept because every use of a rig begins with it.
    """

    skeleton: Skeleton
    weights: Float[Tensor, "V J"]
    T_world_joint_rest: Float[Tensor, "J 4 4"]

    def __post_init__(self) -> None:
        if self.weights.shape[1] != len(self.skeleton):
            raise BadValue(f"the weights have {self.weights.shape[1]} columns, but skeleton '{self.skeleton.name}' has {len(self.skeleton)} joints.")
        if not torch.isfinite(self.weights).all() or bool((self.weights < 0).any()):
            raise BadValue("skin weights must be finite and not negative.")
        worst = float((self.weights.sum(1) - 1).abs().max()) if len(self.weights) else 0.0
        if worst > 1e-3:
            raise BadValue(f"the skin weights of every vertex must sum to 1; one sum is off by {worst:.3g}.")


def rig_for(skeleton: Skeleton, weights: Float[Tensor, "V J"]) -> Rig:
    """A rig whose rest transforms are the skeleton's rest pose."""
    rest = rest_poses(skeleton)
    return Rig(skeleton=skeleton, weights=weights, T_world_joint_rest=rigid(rest.R_world_joint, rest.p_world_joint).to(weights))


def with_toe_tips(skeleton: Skeleton, vertices: Float[Tensor, "V 3"], weights: Float[Tensor, "V J"]) -> Skeleton:
    """The skeleton with tips where its feet end, as far ahead as their skin reaches at rest.

    Many rigs end a leg in one joint at the ankle; without a tip nobody would know that the shoe in front of it goes into the ground.
    Feet whose bones tell where they end are left alone.
    """
    rest, yaw = rest_poses(skeleton), float(facing_yaw(skeleton, rest_poses(skeleton).p_world_joint))
    ahead = vertices.new_tensor([math.sin(yaw), 0.0, math.cos(yaw)])
    tips = dict(skeleton.tips)
    for side in SIDES:
        joint = skeleton.roles.get(f"{side}_toe", skeleton.roles.get(f"{side}_foot"))
        if joint is None or joint in tips or skeleton.children[joint]:
            continue
        arms = vertices[weights[:, joint] > _OWN_SKIN] - rest.p_world_joint[joint].to(vertices)
        if len(arms) and float((arms @ ahead).max()) > 0:
            tip = rest.R_world_joint[joint].to(vertices).T @ arms[int((arms @ ahead).argmax())]
            tips[joint] = (float(tip[0]), float(tip[1]), float(tip[2]))
    return replace(skeleton, tips=tips)
