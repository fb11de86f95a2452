"""Forward kinematics backwards: skeletons and motions from where every joint is in the world, as file readers find it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.kinematics.forward import WorldPoses, local_rotations, local_translations
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import matrix_to_quat, quat_continuous, quat_distance

_RIGID = 1e-6  # of the body's size: bones that keep their place in their parent this well need no translations
_SAME_BONE, _SAME_TURN = 1e-4, 1e-3  # [m], [rad]: what a file's rounding may change


def skeleton_from_poses(name: str, joints: Sequence[str], parents: Sequence[int], rest: WorldPoses) -> Skeleton:
    """The skeleton that rests in these world poses: (J 3) and (J 3 3)."""
    bare = Skeleton(name=name, joints=tuple(joints), parents=tuple(parents), offsets=torch.zeros(len(joints), 3))
    rest_quats = matrix_to_quat(local_rotations(bare, rest.R_world_joint)).float()
    return replace(bare, offsets=local_translations(bare, rest).float(), rest_quats=rest_quats)


def motion_from_poses(skeleton: Skeleton, poses: WorldPoses, fps: float) -> Motion:
    """The motion with these world poses; translations only if some bone changes its place in its parent."""
    local = local_translations(skeleton, poses)
    rigid = len(skeleton) == 1 or float((local - skeleton.offsets.to(local))[:, 1:].abs().max()) <= _RIGID * _size(poses.p_world_joint)
    quats = matrix_to_quat(local_rotations(skeleton, poses.R_world_joint))
    return Motion(
        skeleton=skeleton,
        fps=fps,
        root_position=poses.p_world_joint[:, 0].float(),
        quats=quat_continuous(quats.transpose(0, 1)).transpose(0, 1).float().contiguous(),
        translations=None if rigid else local.float(),
    )


def _size(p_world_joint: Float[Tensor, "F J 3"]) -> float:
    return float((p_world_joint[0].amax(0) - p_world_joint[0].amin(0)).max())


def alike(a: Skeleton, b: Skeleton) -> bool:
    """The same joints in the same tree and rest pose, up to a file's rounding."""
    if a.joints != b.joints or a.parents != b.parents:
        return False
    return float((a.offsets - b.offsets).abs().max()) < _SAME_BONE and float(quat_distance(a.rest_quats, b.rest_quats).max()) < _SAME_TURN
