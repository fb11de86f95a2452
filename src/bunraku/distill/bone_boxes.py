"""Bones as boxes: the eight corners of what each bone carries, for asking cheaply how deep a body is in the ground (akd Eq. 10)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bunraku.kinematics.forward import WorldPoses
from bunraku.rig.character import Character

_OWN = 0.5  # a vertex that listens to a joint more than this belongs to its box
_FEWEST = 4  # vertices: fewer make no box
_TRIMMED = 0.02  # share of a bone's vertices that may stick out on each side


@dataclass(frozen=True, kw_only=True, eq=False)
class BoneBoxes:
    """B boxes, each fixed to a joint."""

    joints: Int[Tensor, " B"]
    p_joint: Float[Tensor, "B 8 3"]  # corners in the joint's frame [m]

    def corners(self, poses: WorldPoses) -> Float[Tensor, "F B 8 3"]:
        """Where the corners are in the world."""
        R, p = poses.R_world_joint[..., self.joints, :, :], poses.p_world_joint[..., self.joints, :]
        return self.p_joint.to(p) @ R.transpose(-1, -2) + p[..., None, :]


def bone_boxes(character: Character, ground: float) -> BoneBoxes:
    """Boxes along the world's axes at rest about what each joint carries. None reaches below the ground while the character stands at rest."""
    rig, vertices = character.rig, character.mesh.vertices
    joints, corners = [], []
    for joint in range(len(rig.skeleton)):
        own = vertices[rig.weights[:, joint] > _OWN]
        if len(own) < _FEWEST:
            continue
        low, high = (torch.quantile(own, share, dim=0) for share in (_TRIMMED, 1 - _TRIMMED))
        low, high = low.clone(), high.clone()
        low[1], high[1] = low[1].clamp_min(ground), high[1].clamp_min(ground)
        box = torch.stack([torch.stack([(low, high)[side][axis] for axis, side in enumerate(sides)]) for sides in product((0, 1), repeat=3)])
        T = rig.T_world_joint_rest[joint]
        joints.append(joint)
        corners.append((box - T[:3, 3]) @ T[:3, :3])
    if not joints:  # no joint has skin of its own: the joints themselves
        origins = torch.zeros(len(rig.skeleton), 8, 3)
        return BoneBoxes(joints=torch.arange(len(rig.skeleton)), p_joint=origins)
    return BoneBoxes(joints=torch.tensor(joints), p_joint=torch.stack(corners).float())
