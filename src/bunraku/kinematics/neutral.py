"""The neutral pose: one stance that every humanoid can take, so that turns mean the same on different skeletons.

Rest poses differ (T, A, arms hanging, a robot with bent elbows). From its rest pose each skeleton is turned, bone by bone along
its limbs and by the smallest turn, until it faces +Z with straight legs, soles on the ground and arms held out sideways. A
joint's turn away from its neutral pose is then comparable between any two skeletons.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.kinematics.forward import pose_joints, rest_poses
from bunraku.kinematics.skeleton import SIDES, Skeleton
from bunraku.math.rotations import quat_to_matrix, swing_between, yaw_quat

_UP = torch.tensor([0.0, 1.0, 0.0])
_LEGS = (("hip", "knee"), ("knee", "foot"))
_ARMS = (("shoulder", "elbow"), ("elbow", "hand"))


def facing_yaw(skeleton: Skeleton, p_world_joint: Float[Tensor, "*batch J 3"]) -> Float[Tensor, "*batch"]:
    """The direction a pose faces [rad]: 0 is +Z, positive towards +X. From the line between the hip joints, flat on the ground.

    Skeletons without named legs are taken to face +Z.
    """
    for part in ("hip", "shoulder"):
        if skeleton.has(f"left_{part}", f"right_{part}"):
            across = p_world_joint[..., skeleton.role(f"left_{part}"), :] - p_world_joint[..., skeleton.role(f"right_{part}"), :]
            return torch.atan2(-across[..., 2], across[..., 0])
    return torch.zeros(p_world_joint.shape[:-2], dtype=p_world_joint.dtype)


def segment_joint(skeleton: Skeleton, upper: str, lower: str) -> int:
    """The joint that really carries the segment between two roles.

    On most characters it is the upper role's own joint. Where several joints share the segment (a robot's three single-axis
    shoulder joints, a twist bone) it is the last one with a good part of the segment still below it.
    """
    return _last_above(skeleton, upper, lower, 0.3)


def limb_start(skeleton: Skeleton, upper: str, lower: str) -> int:
    """The joint in which the straight line of a segment begins.

    A robot's first hinges lie beside the limb (the G1's hip pitch 5 cm nearer to the middle than its thigh): seen from there, a leg
    that hangs straight down would seem to lean outwards.
    """
    return _last_above(skeleton, upper, lower, 0.75)


def _last_above(skeleton: Skeleton, upper: str, lower: str, share: float) -> int:
    """The last joint between two roles with at least this share of the segment still below it."""
    path = skeleton.path(skeleton.role(upper), skeleton.role(lower))
    if len(path) < 3:
        return skeleton.role(upper)
    lengths = skeleton.offsets[path[1:]].norm(dim=-1)
    below = lengths.flip(0).cumsum(0).flip(0)  # from each joint of the path down to its end
    return [joint for joint, left in zip(path, below, strict=False) if left >= share * below[0]][-1]


def tip_direction(skeleton: Skeleton, joint: int, p_world_joint: Float[Tensor, "J 3"], R_world_joint: Float[Tensor, "J 3 3"]) -> Float[Tensor, "3"] | None:
    """Where a hand or toe points in a pose: to the mean of what hangs below it, or to its own tip. None if nothing tells."""
    below = [p_world_joint[child] for child in skeleton.children[joint]]
    if not below and joint in skeleton.tips:
        below = [p_world_joint[joint] + R_world_joint[joint] @ torch.tensor(skeleton.tips[joint]).to(p_world_joint)]
    if not below:
        return None
    way = torch.stack(below).mean(dim=0) - p_world_joint[joint]
    return way if way.norm() > 1e-4 else None


def neutral_rotations(skeleton: Skeleton) -> Float[Tensor, "J 3 3"]:
    """World turns of every joint in the neutral pose."""
    return _NeutralPose(skeleton).R


class _NeutralPose:
    """A pose that is turned limb by limb; `R` and `p` are its world turns and positions."""

    def __init__(self, skeleton: Skeleton) -> None:
        self.skeleton = skeleton
        self.local = quat_to_matrix(skeleton.rest_quats)
        self._pose()
        self._turn(0, quat_to_matrix(yaw_quat(-facing_yaw(skeleton, self.p))))
        for side, out in zip(SIDES, (1.0, -1.0), strict=True):
            self._straighten(side, _LEGS, -_UP)
            self._flatten_foot(side)
            self._straighten(side, _ARMS, torch.tensor([out, 0.0, 0.0]))
            self._point_hand(side, torch.tensor([out, 0.0, 0.0]))

    def _pose(self) -> None:
        poses = pose_joints(self.skeleton, self.skeleton.offsets[0], self.local)
        self.p, self.R = poses.p_world_joint, poses.R_world_joint

    def _turn(self, joint: int, R_turn_world: Float[Tensor, "3 3"]) -> None:
        """Turns a joint, and all that hangs below it, by a world rotation."""
        parent = self.skeleton.parents[joint]
        R_world_parent = self.R[parent] if parent >= 0 else torch.eye(3)
        self.local = self.local.clone()
        self.local[joint] = R_world_parent.T @ R_turn_world @ self.R[joint]
        self._pose()

    def _straighten(self, side: str, segments: tuple[tuple[str, str], ...], v_world: Float[Tensor, "3"]) -> None:
        for upper, lower in segments:
            upper, lower = f"{side}_{upper}", f"{side}_{lower}"
            if self.skeleton.has(upper, lower):
                j = self.skeleton.role(upper)
                along = self.p[self.skeleton.role(lower)] - self.p[limb_start(self.skeleton, upper, lower)]
                if along.norm() > 1e-4:
                    self._turn(j, quat_to_matrix(swing_between(along, v_world)))

    def _flatten_foot(self, side: str) -> None:
        """The sole as it rests, which is flat on the ground, but pointing straight ahead."""
        foot, toe = f"{side}_foot", f"{side}_toe"
        if not self.skeleton.has(foot):
            return
        j = self.skeleton.role(foot)
        rest = rest_poses(self.skeleton)
        yaw = -facing_yaw(self.skeleton, rest.p_world_joint)
        if self.skeleton.has(toe):
            along = rest.p_world_joint[self.skeleton.role(toe)] - rest.p_world_joint[j]
            if torch.hypot(along[0], along[2]) > 0.3 * along.norm():  # a foot on tiptoe at rest says nothing about its yaw
                yaw = -torch.atan2(along[0], along[2])
        self._turn(j, quat_to_matrix(yaw_quat(yaw)) @ rest.R_world_joint[j] @ self.R[j].T)

    def _point_hand(self, side: str, v_world: Float[Tensor, "3"]) -> None:
        if not self.skeleton.has(f"{side}_hand"):
            return
        j = self.skeleton.role(f"{side}_hand")
        along = tip_direction(self.skeleton, j, self.p, self.R)
        if along is not None:
            self._turn(j, quat_to_matrix(swing_between(along, v_world)))
