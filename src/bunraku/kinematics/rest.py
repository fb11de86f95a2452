"""Changing what "zero rotation" means: the same poses told from another rest pose.

Every joint's frame may be chosen freely; a file format, a rest pose for skinning or a T-pose export just choose differently. Let
R_j be the world rotation of joint j in the pose that is to become the new zero. Then for every pose

    R_world_new = R_world_old · R_jᵀ      and, seen from the parent p,      R_p_j new = R_p · (R_p_j old) · R_jᵀ

so no joint moves. Offsets and tips, which live in the frames of their joints, turn along. `rebase(rebase(m, R), Rᵀ)` is m again.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Hinges, Skeleton
from bunraku.math.rotations import matrix_to_quat, quat_conjugate, quat_identity, quat_multiply

_BLOCK = 256  # frames turned at a time: small enough to stay in the processor's cache, three times as fast as all at once


def rebase(motion: Motion, R_world_rest: Float[Tensor, "J 3 3"]) -> Motion:
    """The same motion on joint frames that are unturned in the pose `R_world_rest`: every joint stays where it was."""
    R_world_rest = R_world_rest.to(motion.quats)
    R_above = _above(motion.skeleton, R_world_rest)
    turned = {} if motion.translations is None else {"translations": (R_above @ motion.translations[..., None]).squeeze(-1)}
    return replace(
        motion,
        skeleton=rebase_skeleton(motion.skeleton, R_world_rest),
        quats=_rebase_quats(motion.skeleton, motion.quats, R_world_rest),
        **turned,
    )


def rebase_skeleton(skeleton: Skeleton, R_world_rest: Float[Tensor, "J 3 3"]) -> Skeleton:
    """The same skeleton on joint frames that are unturned in the pose `R_world_rest`, its own rest pose included."""
    R = R_world_rest.to(skeleton.offsets)
    tips = {joint: tuple((R[joint] @ R.new_tensor(tip)).tolist()) for joint, tip in skeleton.tips.items()}
    return replace(
        skeleton,
        offsets=(_above(skeleton, R) @ skeleton.offsets[..., None]).squeeze(-1),
        rest_quats=_rebase_quats(skeleton, skeleton.rest_quats[None], R)[0],
        tips=tips,
        hinges=None if skeleton.hinges is None else _rebase_hinges(skeleton, skeleton.hinges, R),
    )


def _above(skeleton: Skeleton, R_world_rest: Float[Tensor, "J 3 3"]) -> Float[Tensor, "J 3 3"]:
    """Each joint's parent's row; the root's parent is the world, which keeps its axes."""
    R_above = R_world_rest[skeleton.parents_or_self.to(R_world_rest.device)]
    return torch.cat([torch.eye(3).to(R_above)[None], R_above[1:]])


def _rebase_quats(skeleton: Skeleton, quats: Float[Tensor, "F J 4"], R_world_rest: Float[Tensor, "J 3 3"]) -> Float[Tensor, "F J 4"]:
    rest = matrix_to_quat(R_world_rest).to(quats)
    above = torch.cat([quat_identity(1, like=rest), rest[skeleton.parents_or_self.to(rest.device)][1:]])
    below = quat_conjugate(rest)
    return torch.cat([quat_multiply(quat_multiply(above, block), below) for block in quats.split(_BLOCK)])


def _rebase_hinges(skeleton: Skeleton, hinges: Hinges, R_world_rest: Float[Tensor, "J 3 3"]) -> Hinges:
    R = R_world_rest[[skeleton.index[joint] for joint in hinges.joints]].to(hinges.axes)
    return replace(hinges, axes=(R @ hinges.axes[..., None]).squeeze(-1))
