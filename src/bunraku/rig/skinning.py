"""Linear blend skinning: `p_world(f) = Σ_j w_j · T_world_joint(f) · T_joint_world_rest · p_world_rest`."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import SkeletonMismatch
from bunraku.kinematics.forward import WorldPoses, forward_kinematics
from bunraku.kinematics.motion import Motion
from bunraku.math.rigid import rigid, rigid_inverse
from bunraku.rig.character import Character
from bunraku.rig.rig import Rig

_FRAMES_AT_ONCE = 32  # blended transforms take 48 bytes per frame and vertex; this keeps them near 30 MB for 20,000 vertices


def skin_vertices(character: Character, motion: Motion | WorldPoses) -> Float[Tensor, "F V 3"]:
    """Where every vertex is in every frame [m, world]. Differentiable in world poses and in the motion."""
    vertices = character.mesh.vertices
    moved = rest_to_posed(character.rig, motion, f"character '{character.name}'").flatten(-2)
    chunks = [_blend(character.rig.weights, moved[start : start + _FRAMES_AT_ONCE], vertices) for start in range(0, len(moved), _FRAMES_AT_ONCE)]
    return torch.cat(chunks)


def rest_to_posed(rig: Rig, motion: Motion | WorldPoses, name: str = "the rig") -> Float[Tensor, "F J 3 4"]:
    """`T_world_joint(f) · T_joint_world_rest`: how each joint carries along what is rigidly fixed to it. `name` is who complains of another's motion."""
    if isinstance(motion, Motion):
        if motion.skeleton.joints != rig.skeleton.joints:
            raise SkeletonMismatch(
                f"motion has {len(motion.skeleton)} joints of '{motion.skeleton.name}', {name} has "
                f"{len(rig.skeleton)} of '{rig.skeleton.name}'. Use retarget(motion, character.skeleton)."
            )
        motion = forward_kinematics(motion)
    rest = rig.T_world_joint_rest
    T_world_joint = rigid(motion.R_world_joint, motion.p_world_joint).to(rest)
    return (T_world_joint @ rigid_inverse(rest))[..., :3, :]


def _blend(weights: Float[Tensor, "V J"], moved: Float[Tensor, "F J 12"], vertices: Float[Tensor, "V 3"]) -> Float[Tensor, "F V 3"]:
    T = (weights @ moved).unflatten(-1, (3, 4))
    return (T[..., :3] @ vertices[:, :, None]).squeeze(-1) + T[..., 3]
