"""Features of a dataset's frames, as the generator sees them: of crops, of whole batches on a device, and in the mirror.

The smoothed root and the contacts are those of the whole clip: the smoothed root of a crop is not the crop of the smoothed root.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bunraku.datasets.rows import PoseRows
from bunraku.errors import SkeletonMismatch
from bunraku.generator.features import FeatureLayout, canonical_features, on_ground, turn_features
from bunraku.kinematics.forward import pose_joints, rest_poses
from bunraku.kinematics.heading import heading_of, heading_vector
from bunraku.kinematics.skeleton import CONTACT_ROLES, Skeleton
from bunraku.kinematics.symmetry import NO_PARTNER, mirror_pairs
from bunraku.math.rotations import matrix_to_rot6d, quat_to_matrix, rot6d_to_matrix

if TYPE_CHECKING:
    from bunraku.datasets.store import Dataset


def crop_features(dataset: Dataset, clip: int, frames: range) -> Float[Tensor, "F D"]:
    """The features of some frames of a clip, where they are in the world; the last frame's velocity repeats the one before."""
    return rows_features(dataset.layout, dataset.rows(clip, frames))


def rows_features(layout: FeatureLayout, rows: PoseRows) -> Float[Tensor, "F D"]:
    return batch_features(layout, rows.root_position[None], rows.smooth_xz[None], rows.quats[None], rows.contacts[None])[0]


def batch_features(
    layout: FeatureLayout,
    root_position: Float[Tensor, "B F 3"],
    smooth_xz: Float[Tensor, "B F 2"],
    quats: Float[Tensor, "B F J 4"],
    contacts: Bool[Tensor, "B F 4"],
    lengths: Int[Tensor, " B"] | None = None,
) -> Float[Tensor, "B F D"]:
    """Features of several crops at once, on whatever device they are.

    `lengths`: how many frames of each crop are valid. What the features of the others are does not matter.
    """
    poses = pose_joints(layout.skeleton, root_position, quat_to_matrix(quats))
    p = poses.p_world_joint
    root = torch.stack([smooth_xz[..., 0], root_position[..., 1], smooth_xz[..., 1]], dim=-1) if layout.smooth else root_position
    heading = heading_vector(heading_of(layout.skeleton, p))
    blocks = (p - on_ground(root)[..., None, :], matrix_to_rot6d(poses.R_world_joint), _velocity(p, layout.fps, lengths), contacts.to(p))
    return torch.cat([root, heading, *(block.flatten(2) for block in blocks)], dim=-1)


def _velocity(p: Float[Tensor, "B F J 3"], fps: float, lengths: Int[Tensor, " B"] | None) -> Float[Tensor, "B F J 3"]:
    """Forward differences [m/s]; the last valid frame repeats the one before."""
    if p.shape[1] < 2:
        return torch.zeros_like(p)
    step = (p[:, 1:] - p[:, :-1]) * fps
    if lengths is None:
        return torch.cat([step, step[:, -1:]], dim=1)
    last = (lengths.to(p.device) - 2).clamp_min(0)[:, None]
    at = torch.minimum(torch.arange(p.shape[1], device=p.device)[None], last)
    return step.gather(1, at[..., None, None].expand(-1, -1, *p.shape[2:]))


def random_heading(layout: FeatureLayout, features: Float[Tensor, "F D"], generator: torch.Generator) -> Float[Tensor, "F D"]:
    """Moved so that the smoothed root starts above the origin, and turned anyhow about the up axis."""
    yaw = torch.rand((), generator=generator) * 2 * torch.pi
    moved = canonical_features(layout, features)
    return turn_features(layout, moved, yaw.to(moved).expand(len(moved)))


# --- left and right swapped --------------------------------------------------------------------------------------------


def mirror_features(layout: FeatureLayout, features: Float[Tensor, "*batch F D"], lengths: Int[Tensor, "*batch"] | None = None) -> Float[Tensor, "*batch F D"]:
    """The features of the motion mirrored across x = 0, as `kinematics.edit.mirror` does it.

    World turns become `S R_world_j' C_j` with the constant `C_j = R_rest_j'ᵀ S R_rest_j`, S = diag(−1, 1, 1) and j' the partner of j.
    Places follow from them along the bones: the two sides of a skeleton differ by millimetres. `lengths` as in `batch_features`.
    """
    partner, change, carries = (table.to(features.device) for table in _mirror_tables(layout.skeleton))
    change, carries = change.to(features.dtype), carries.to(features.dtype)
    S = features.new_tensor([-1.0, 1.0, 1.0])
    R_before = rot6d_to_matrix(features[..., layout.joint_rotations].unflatten(-1, (layout.joints, 6)).index_select(-2, partner))
    R = S[:, None] * R_before @ change
    root = features[..., layout.smooth_root] * S
    p_hips = features[..., layout.position_columns(0)] * S
    bones = (R.index_select(-3, layout.skeleton.parents_or_self.to(R.device)) @ layout.skeleton.offsets.to(R)[..., None]).squeeze(-1)
    p = p_hips[..., None, :] + torch.einsum("jk,...ki->...ji", carries, bones)
    heading = heading_vector(heading_of(layout.skeleton, p))
    p_world = (p + on_ground(root)[..., None, :]).reshape(-1, *p.shape[-3:])
    v = _velocity(p_world, layout.fps, None if lengths is None else lengths.reshape(-1)).reshape(p.shape)
    contacts = features[..., layout.contacts][..., _swapped_contacts()]
    return torch.cat([root, heading, p.flatten(-2), matrix_to_rot6d(R).flatten(-2), v.flatten(-2), contacts], dim=-1)


@cache
def _mirror_tables(skeleton: Skeleton) -> tuple[Int[Tensor, " J"], Float[Tensor, "J 3 3"], Float[Tensor, "J J"]]:
    """The partner of each joint, `C_j`, and which bones (1 or 0) lie between the root and each joint."""
    pairs = mirror_pairs(skeleton)
    if NO_PARTNER in pairs:
        alone = skeleton.joints[pairs.index(NO_PARTNER)]
        raise SkeletonMismatch(f"features of '{skeleton.name}' cannot be mirrored: '{alone}' has no partner on the other side. Mirror motions instead.")
    R_rest = rest_poses(skeleton).R_world_joint.double()
    S = torch.diag(torch.tensor([-1.0, 1.0, 1.0], dtype=torch.float64))
    partner = torch.tensor(pairs)
    carries = torch.zeros(len(skeleton), len(skeleton))
    for joint in range(len(skeleton)):
        carries[joint, skeleton.ancestors(joint)] = 1.0
    carries[:, 0] = 0.0
    return partner, (R_rest[partner].transpose(-1, -2) @ S @ R_rest).float(), carries


def _swapped_contacts() -> list[int]:
    other = {"left": "right", "right": "left"}
    return [CONTACT_ROLES.index(f"{other[role.split('_')[0]]}_{role.split('_')[1]}") for role in CONTACT_ROLES]
