"""Forward kinematics: from joint turns to world poses, one gather and one matmul per depth of the tree."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import quat_to_matrix, quat_to_matrix_entries_first


@dataclass(frozen=True, kw_only=True, eq=False)
class WorldPoses:
    """Where every joint is and how it is turned, in the world."""

    p_world_joint: Float[Tensor, "*batch J 3"]  # [m]
    R_world_joint: Float[Tensor, "*batch J 3 3"]


def forward_kinematics(motion: Motion) -> WorldPoses:
    """World poses of a motion: (F J 3) and (F J 3 3)."""
    order = _order(motion.skeleton, motion.quats.device)
    R_local = quat_to_matrix_entries_first(motion.quats.permute(2, 1, 0).contiguous().index_select(1, order))
    return _pose(motion.skeleton, (len(motion),), motion.root_position, R_local, motion.translations)


def rest_poses(skeleton: Skeleton) -> WorldPoses:
    """World poses of the rest pose: (J 3) and (J 3 3)."""
    return pose_joints(skeleton, skeleton.offsets[0], quat_to_matrix(skeleton.rest_quats))


def pose_joints(
    skeleton: Skeleton,
    p_world_root: Float[Tensor, "*batch 3"],
    R_parent_joint: Float[Tensor, "*batch J 3 3"],
    p_parent_joint: Float[Tensor, "*batch J 3"] | None = None,
) -> WorldPoses:
    """World poses from local rotations, any batch shape, differentiable in all three.

    Each level of the tree is computed from the one above and the levels are joined at the end, so nothing is written in place.
    Components come first and the batch last while it runs: products of 3 × 3 matrices are then sums of long rows, several times
    faster than torch's matmul of many tiny matrices.
    """
    batch = R_parent_joint.shape[:-3]
    order = _order(skeleton, R_parent_joint.device)
    R_local = R_parent_joint.reshape(-1, len(skeleton), 3, 3).permute(2, 3, 1, 0).index_select(2, order)
    return _pose(skeleton, batch, p_world_root, R_local, p_parent_joint)


def _order(skeleton: Skeleton, device: torch.device) -> Int[Tensor, " J"]:
    """Joint numbers level by level, the root first."""
    return torch.cat([torch.zeros(1, dtype=torch.long), *(joints for joints, _ in skeleton.depth_levels)]).to(device)


def _pose(
    skeleton: Skeleton, batch: tuple[int, ...], p_world_root: Tensor, R_local: Float[Tensor, "3 3 J B"], p_parent_joint: Tensor | None
) -> WorldPoses:
    """Levels of the tree one after the other; `R_local` has its joints in `_order`."""
    device = R_local.device
    order = _order(skeleton, device)
    if p_parent_joint is None:
        p_parent_joint = skeleton.offsets.to(R_local)
    p_local = p_parent_joint.reshape(-1, len(skeleton), 3).permute(2, 1, 0).index_select(1, order)  # 3 J B, or B = 1
    R_levels, p_levels, first = [R_local[:, :, :1]], [p_world_root.reshape(-1, 3).T[:, None]], 1
    for joints, rows_above in skeleton.depth_levels:
        here, above = slice(first, first + len(joints)), rows_above.to(device)
        R_above, p_above = R_levels[-1].index_select(2, above), p_levels[-1].index_select(1, above)
        R_levels.append(_product(R_above, R_local[:, :, here]))
        p_levels.append(p_above + _product(R_above, p_local[:, None, here])[:, 0])
        first = here.stop
    back = torch.argsort(order)
    return WorldPoses(
        p_world_joint=torch.cat(p_levels, dim=1).index_select(1, back).permute(2, 1, 0).reshape(*batch, len(skeleton), 3),
        R_world_joint=torch.cat(R_levels, dim=2).index_select(2, back).permute(3, 2, 0, 1).reshape(*batch, len(skeleton), 3, 3),
    )


def _product(A: Float[Tensor, "3 3 n B"], M: Float[Tensor, "3 k n b"]) -> Float[Tensor, "3 k n B"]:
    """A @ M with the matrix axes in front."""
    return A[:, 0, None] * M[None, 0] + A[:, 1, None] * M[None, 1] + A[:, 2, None] * M[None, 2]


def local_rotations(skeleton: Skeleton, R_world_joint: Float[Tensor, "*batch J 3 3"]) -> Float[Tensor, "*batch J 3 3"]:
    """The inverse of the rotation half of `pose_joints`: every joint in its parent."""
    R_world_parent = R_world_joint.index_select(-3, skeleton.parents_or_self.to(R_world_joint.device))
    local = R_world_parent.transpose(-1, -2) @ R_world_joint
    return torch.cat([R_world_joint[..., :1, :, :], local[..., 1:, :, :]], dim=-3)


def local_translations(skeleton: Skeleton, poses: WorldPoses) -> Float[Tensor, "*batch J 3"]:
    """Where every joint sits in its parent's frame, given world poses; the root's row is its world position."""
    parents = skeleton.parents_or_self.to(poses.p_world_joint.device)
    step = poses.p_world_joint - poses.p_world_joint.index_select(-2, parents)
    local = (poses.R_world_joint.index_select(-3, parents).transpose(-1, -2) @ step[..., None]).squeeze(-1)
    return torch.cat([poses.p_world_joint[..., :1, :], local[..., 1:, :]], dim=-2)
