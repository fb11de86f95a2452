"""What the denoiser sees of a motion: one vector per frame, in the released order (kimodo §4.1).

    smooth_root       3    smoothed root [m]: x, height of the hips, z; world
    heading           2    cos and sin of the hips' heading
    joint_positions   3J   world positions [m] with x and z taken from the smoothed root
    joint_rotations   6J   world rotations, first two columns
    joint_velocities  3J   world velocities [m/s]
    contacts          4    of skeleton.CONTACT_ROLES, 0 or 1

The first five are the *root*, the rest is the *body*: the two stages of the denoiser predict one each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.errors import SkeletonMismatch
from bunraku.kinematics.contacts import contacts_from_positions
from bunraku.kinematics.forward import forward_kinematics, local_rotations
from bunraku.kinematics.heading import heading_of, heading_vector
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.kinematics.smooth_root import smoothed_root
from bunraku.math.curves import velocity
from bunraku.math.rotations import matrix_to_quat, matrix_to_rot6d, quat_continuous, quat_to_matrix, rot6d_to_matrix, yaw_quat

ROOT_WIDTH = 5
LOCAL_ROOT_WIDTH = 4
CONTACT_THRESHOLD = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureLayout:
    """Which columns of the feature vector of a skeleton hold what."""

    skeleton: Skeleton
    fps: float = 30.0
    smooth: bool = True  # False: the root is the hips themselves (an ablation of the paper)

    @cached_property
    def joints(self) -> int:
        return len(self.skeleton)

    @cached_property
    def width(self) -> int:
        return ROOT_WIDTH + self.body_width

    @cached_property
    def body_width(self) -> int:
        return 12 * self.joints + 4

    smooth_root = slice(0, 3)
    heading = slice(3, 5)
    root = slice(0, 5)

    @cached_property
    def body(self) -> slice:
        return slice(ROOT_WIDTH, self.width)

    @cached_property
    def joint_positions(self) -> slice:
        return self._block(0, 3)

    @cached_property
    def joint_rotations(self) -> slice:
        return self._block(3, 6)

    @cached_property
    def joint_velocities(self) -> slice:
        return self._block(9, 3)

    @cached_property
    def contacts(self) -> slice:
        return slice(self.width - 4, self.width)

    def _block(self, before: int, each: int) -> slice:
        start = ROOT_WIDTH + before * self.joints
        return slice(start, start + each * self.joints)

    def position_columns(self, joint: int) -> slice:
        """The three columns of one joint's position."""
        start = self.joint_positions.start + 3 * joint
        return slice(start, start + 3)

    def rotation_columns(self, joint: int) -> slice:
        """The six columns of one joint's rotation."""
        start = self.joint_rotations.start + 6 * joint
        return slice(start, start + 6)


# --- motion → features → motion --------------------------------------------------------------------------------------


def encode(layout: FeatureLayout, motion: Motion) -> Float[Tensor, "F D"]:
    """The features of a motion at the layout's frame rate. Contacts the motion does not carry are detected."""
    _require(layout, motion)
    poses = forward_kinematics(motion)
    p, contacts = poses.p_world_joint, motion.contacts
    root = smoothed_root(p[:, 0]) if layout.smooth else p[:, 0]
    if contacts is None:
        contacts = contacts_from_positions(layout.skeleton, p, layout.fps)
    heading = heading_vector(heading_of(layout.skeleton, p))
    blocks = (p - on_ground(root)[:, None], matrix_to_rot6d(poses.R_world_joint), velocity(p, layout.fps), contacts.to(p))
    return torch.cat([root, heading, *(block.flatten(1) for block in blocks)], dim=-1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Decoded:
    """A motion read from features, and what else they said."""

    motion: Motion
    smooth_root: Float[Tensor, "F 3"]  # [m]
    heading: Float[Tensor, "F 2"]  # cos, sin


def decode(layout: FeatureLayout, features: Float[Tensor, "F D"]) -> Decoded:
    """The motion that features describe: rotations and the root joint decide, predicted positions of other joints do not."""
    root = features[:, layout.smooth_root]
    p_hips = features[:, layout.position_columns(0)] + on_ground(root)
    R_world = rot6d_to_matrix(features[:, layout.joint_rotations].unflatten(-1, (layout.joints, 6)))
    motion = Motion(
        skeleton=layout.skeleton,
        fps=layout.fps,
        root_position=p_hips,
        quats=quat_continuous(matrix_to_quat(local_rotations(layout.skeleton, R_world)).transpose(0, 1)).transpose(0, 1),
        contacts=features[:, layout.contacts] > CONTACT_THRESHOLD,
    )
    return Decoded(motion=motion, smooth_root=root, heading=features[:, layout.heading])


def _require(layout: FeatureLayout, motion: Motion) -> None:
    if motion.skeleton.joints != layout.skeleton.joints:
        given = f"'{motion.skeleton.name}' ({len(motion.skeleton)} joints)"
        raise SkeletonMismatch(f"the model's features are of '{layout.skeleton.name}' ({layout.joints} joints), the motion is on {given}. Use retarget first.")
    if abs(motion.fps - layout.fps) > 1e-3:
        raise SkeletonMismatch(f"the model's features are at {layout.fps:g} fps, the motion is at {motion.fps:g}. Use resample(motion, {layout.fps:g}) first.")


def on_ground(p: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 3"]:
    """The point straight below: x and z kept, height 0."""
    return p * p.new_tensor([1.0, 0.0, 1.0])


# --- the root as the second stage sees it ----------------------------------------------------------------------------


def local_root(root: Float[Tensor, "B F 5"], fps: float, valid: Bool[Tensor, "B F"] | None = None) -> Float[Tensor, "B F 4"]:
    """Turning [rad/s], velocity on the ground along world x and z [m/s], height [m]; the last valid frame repeats the one before.

    It forgets where the body is and which way it faces, so that the body stage does not have to learn that neither matters.
    """
    heading = torch.atan2(root[..., 4], root[..., 3])
    turn = torch.diff(heading, dim=1)
    turn = torch.atan2(turn.sin(), turn.cos())
    moves = torch.cat([turn[..., None], torch.diff(root[..., 0:3:2], dim=1)], dim=-1) * fps
    moves = torch.cat([moves, moves[:, -1:] if root.shape[1] > 1 else torch.zeros_like(root[..., :3])], dim=1)
    if valid is not None:
        frames = torch.arange(root.shape[1], device=root.device)
        last_step = (valid.sum(dim=1, keepdim=True) - 2).clamp_min(0)
        moves = moves.gather(1, torch.minimum(frames, last_step)[..., None].expand_as(moves))
        moves = moves * (valid.sum(dim=1) > 1)[:, None, None]  # a clip of one frame stands still, whatever is in the padding behind it
    return torch.cat([moves, root[..., 1:2]], dim=-1)


# --- moving features about -------------------------------------------------------------------------------------------


def turn_features(layout: FeatureLayout, features: Float[Tensor, "*batch D"], yaw: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch D"]:
    """The same motion turned about the world's up axis through the origin."""
    R = quat_to_matrix(yaw_quat(yaw))
    vectors = torch.cat([features[..., layout.smooth_root], features[..., layout.root.stop :][..., : 12 * layout.joints]], dim=-1)
    turned = torch.einsum("...ij,...nj->...ni", R, vectors.unflatten(-1, (-1, 3))).flatten(-2)
    cos, sin = features[..., 3], features[..., 4]
    heading = torch.stack([cos * yaw.cos() - sin * yaw.sin(), sin * yaw.cos() + cos * yaw.sin()], dim=-1)
    return torch.cat([turned[..., :3], heading, turned[..., 3:], features[..., layout.contacts]], dim=-1)


def shift_features(layout: FeatureLayout, features: Float[Tensor, "*batch D"], xz: Float[Tensor, "*batch 2"]) -> Float[Tensor, "*batch D"]:
    """The same motion moved over the ground [m]: only the smoothed root says where it is."""
    moved = features.clone()
    moved[..., 0] += xz[..., 0]
    moved[..., 2] += xz[..., 1]
    return moved


def canonical_features(layout: FeatureLayout, features: Float[Tensor, "F D"]) -> Float[Tensor, "F D"]:
    """Moved so that the smoothed root starts above the origin, as the models were trained. The heading stays."""
    return shift_features(layout, features, -features[:1, [0, 2]].expand(len(features), 2))
