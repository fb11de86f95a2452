"""How skin follows bone: a skeleton, its rest transforms, and how much every vertex listens to every joint."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rigid import rigid


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
