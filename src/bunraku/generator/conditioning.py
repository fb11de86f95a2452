"""What constraints say in the language of features: which columns of which frames are known, and their values.

    constraint                  smoothed root x z | height | heading  | joint positions    | joint rotations      | contacts
    RootPath                    yes               |        | if given |                    |                      |
    Heading                                       |        | yes      |                    |                      |
    PoseKey, whole body         yes               | yes    | yes      | all                |                      |
    PoseKey, some effectors     yes               | yes    | yes      | of those effectors | of their base joints |
    EffectorTarget                                |        |          | if given           | if given             |
    FootPlan                                      |        |          |                    |                      | yes

The rows of RootPath and PoseKey are the release's. Where two constraints speak of the same column of a frame, the first one counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.generator.features import FeatureLayout, on_ground
from bunraku.kinematics.effectors import effector_joints
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.heading import heading_of, heading_vector
from bunraku.math.rotations import matrix_to_rot6d, quat_to_matrix
from bunraku.timeline.constraints import Constraint, EffectorTarget, FootPlan, Heading, PoseKey, RootPath


@dataclass(frozen=True, kw_only=True, eq=False)
class Observation:
    """Known features of a clip, not normalised."""

    values: Float[Tensor, "F D"]
    mask: Bool[Tensor, "F D"]
    # x and z of joints whose place in the world is known but not that of the smoothed root, from which the feature is counted:
    # their values are world coordinates, and the root must be taken off them once there is a guess at it
    floating: Bool[Tensor, "F D"]

    @property
    def empty(self) -> bool:
        return not bool(self.mask.any())


def observe(layout: FeatureLayout, constraints: Sequence[Constraint], frames: int) -> Observation:
    """The features that the constraints fix in a clip of so many frames."""
    sheet = _Sheet(layout, frames)
    for constraint in constraints:
        sheet.write(constraint)
    # EffectorTargets come last: whether their x and z float depends on what the others say of the root
    for constraint in constraints:
        if isinstance(constraint, EffectorTarget):
            sheet.write_target(constraint)
    return Observation(values=sheet.values, mask=sheet.mask, floating=sheet.floating)


class _Sheet:
    """A table of features that is filled in, first come first served."""

    def __init__(self, layout: FeatureLayout, frames: int) -> None:
        self.layout = layout
        self.values = torch.zeros(frames, layout.width)
        self.mask = torch.zeros(frames, layout.width, dtype=torch.bool)
        self.floating = torch.zeros(frames, layout.width, dtype=torch.bool)

    def write(self, constraint: Constraint) -> None:
        rows = constraint.frames
        if isinstance(constraint, RootPath):
            self._put(rows, _XZ, constraint.xz)
            if constraint.heading is not None:
                self._put(rows, self.layout.heading, heading_vector(constraint.heading))
        elif isinstance(constraint, Heading):
            self._put(rows, self.layout.heading, heading_vector(constraint.heading))
        elif isinstance(constraint, FootPlan):
            self._put(rows, self.layout.contacts, constraint.contacts.float())
        elif isinstance(constraint, PoseKey):
            self._put_pose(constraint)

    def _put_pose(self, key: PoseKey) -> None:
        layout, poses = self.layout, forward_kinematics(key.poses)
        p_root = key.poses.root_position
        xz = p_root[:, [0, 2]] if key.smooth_xz is None else key.smooth_xz
        smooth = torch.stack([xz[:, 0], p_root[:, 1], xz[:, 1]], dim=-1)
        self._put(key.frames, layout.smooth_root, smooth)
        self._put(key.frames, layout.heading, heading_vector(heading_of(layout.skeleton, poses.p_world_joint)))
        if key.effectors is None:
            seen, turned = list(range(layout.joints)), []
        else:
            chains = [effector_joints(layout.skeleton, effector) for effector in key.effectors]
            seen, turned = [joint for chain in chains for joint in chain], [chain[0] for chain in chains]
        for joint in seen:
            self._put(key.frames, layout.position_columns(joint), poses.p_world_joint[:, joint] - on_ground(smooth))
        for joint in turned:
            self._put(key.frames, layout.rotation_columns(joint), matrix_to_rot6d(poses.R_world_joint[:, joint]))

    def write_target(self, target: EffectorTarget) -> None:
        base, *ends = effector_joints(self.layout.skeleton, target.effector)
        R_world = None if target.quats is None else quat_to_matrix(target.quats)
        if R_world is not None:
            self._put(target.frames, self.layout.rotation_columns(base), matrix_to_rot6d(R_world))
        if target.position is not None:
            self._put_place(target.frames, base, target.position)
            if R_world is not None:
                for end in ends:
                    if self.layout.skeleton.parents[end] == base:  # a turn of the base alone says where it is
                        self._put_place(target.frames, end, target.position + R_world @ self.layout.skeleton.offsets[end])

    def _put_place(self, rows: Tensor, joint: int, p_world: Float[Tensor, "K 3"]) -> None:
        columns = self.layout.position_columns(joint)
        known = self.mask[rows, 0] & self.mask[rows, 2]
        root = self.values[rows, self.layout.smooth_root] * known[:, None]
        fresh = ~self.mask[rows][:, columns]
        self._put(rows, columns, p_world - on_ground(root))
        ground_columns = torch.tensor([True, False, True])
        self.floating[rows, columns] |= fresh & ~known[:, None] & ground_columns

    def _put(self, rows: Tensor, columns: slice | list[int], values: Tensor) -> None:
        numbers = torch.arange(self.layout.width)[columns]
        at = (rows[:, None], numbers[None])
        self.values[at] = torch.where(self.mask[at], self.values[at], values.to(self.values))
        self.mask[at] = True


_XZ = [0, 2]  # columns of the smoothed root's place on the ground
