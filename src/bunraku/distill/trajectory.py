"""What is optimised: three angles for every bone, six numbers for the root, in every frame or as curves (akd §4.4).

    coefficients ─► basis ─► angles about three axes ─► turns away from rest ─► forward kinematics ─► world poses
                        └──► way and turn of the root, from a start at constant speed

Angles are about the world's axes as they lie in the bone's parent at rest, so they mean the same whatever a rig's joint frames are:
x pitches, z tilts sideways, y twists. The middle one of the product is the tilt, which limbs need least near a right angle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from bunraku.distill.time_basis import Basis, basis_matrix
from bunraku.errors import BadValue
from bunraku.kinematics.body_plan import body_height
from bunraku.kinematics.forward import WorldPoses, pose_joints, rest_poses
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.neutral import facing_yaw
from bunraku.math.rotations import euler_to_quat, matrix_to_quat, quat_conjugate, quat_continuous, quat_multiply, quat_to_matrix
from bunraku.rig.rig import Rig

ORDER = "xzy"  # of the three columns
_CARRIES = 1e-3  # share of the skin that the bones from a joint on must carry for it to be moved


@dataclass(frozen=True, kw_only=True)
class Timing:
    """When a clip is looked at."""

    frames: int
    fps: float

    def __post_init__(self) -> None:
        if self.frames < 2 or not 0 < self.fps < math.inf:
            raise BadValue(f"a motion needs two frames or more and a positive frame rate; got {self.frames} at {self.fps:g} fps.")

    @property
    def seconds(self) -> float:
        return self.frames / self.fps


class Trajectory(nn.Module):
    """The coefficients of one motion. All zeros: the rest pose, moved ahead at the speed that was given."""

    basis: Tensor
    joints: Tensor
    quats_axes: Tensor
    quats_rest: Tensor
    start: Tensor
    height: float

    def __init__(self, rig: Rig, timing: Timing, *, basis: Basis = "spline", knots_per_second: float = 4.0, speed: float = 0.0) -> None:
        """`speed` [m/s] is that of the start, straight ahead."""
        super().__init__()
        skeleton, rest = rig.skeleton, rest_poses(rig.skeleton)
        self.skeleton, self.timing = skeleton, timing
        self.register_buffer("basis", basis_matrix(basis, timing.frames, timing.fps, knots_per_second), persistent=False)
        self.register_buffer("joints", moved_joints(rig), persistent=False)
        parents = torch.tensor(skeleton.parents)[self.joints]
        self.register_buffer("quats_axes", matrix_to_quat(rest.R_world_joint[parents].float()), persistent=False)
        self.register_buffer("quats_rest", skeleton.rest_quats.float().clone(), persistent=False)
        self.height = body_height(rest.p_world_joint)
        yaw = float(facing_yaw(skeleton, rest.p_world_joint))
        seconds = torch.arange(timing.frames) / timing.fps
        ahead = torch.tensor([math.sin(yaw), 0.0, math.cos(yaw)]) * speed
        self.register_buffer("start", rest.p_world_joint[0].float() + seconds[:, None] * ahead, persistent=False)
        knots = self.basis.shape[1]
        self.angles = nn.Parameter(torch.zeros(knots, len(self.joints), 3))  # [rad]
        self.root_turn = nn.Parameter(torch.zeros(knots, 3))  # [rad]
        self.root_way = nn.Parameter(torch.zeros(knots, 3))  # [body heights], so that one learning rate serves all

    def values(self) -> Float[Tensor, "F C"]:
        """All that is optimised, frame by frame."""
        return self.basis @ torch.cat([self.angles.flatten(1), self.root_turn, self.root_way], dim=1)

    def bone_angles(self) -> Float[Tensor, "F M 3"]:
        """[rad] of the moved joints."""
        return torch.einsum("fk,kma->fma", self.basis, self.angles)

    def root_positions(self) -> Float[Tensor, "F 3"]:
        return self.start + self.height * (self.basis @ self.root_way)

    def quats(self) -> Float[Tensor, "F J 4"]:
        """Every joint in its parent."""
        return self.quats_of(self.bone_angles(), torch.arange(self.timing.frames))

    def quats_of(self, angles: Float[Tensor, "N M 3"], frames: Int[Tensor, " N"]) -> Float[Tensor, "N J 4"]:
        """Every joint in its parent, with angles of one's own [rad]; the root as it is in those frames."""
        axes = self.quats_axes
        turn = quat_multiply(quat_multiply(quat_conjugate(axes), euler_to_quat(ORDER, angles)), axes)
        local = self.quats_rest.expand(len(angles), -1, -1)
        moved = quat_multiply(turn, local[:, self.joints])
        root = quat_multiply(euler_to_quat(ORDER, (self.basis @ self.root_turn)[frames]), local[:, 0])
        local = local.index_copy(1, self.joints, moved)
        return torch.cat([root[:, None], local[:, 1:]], dim=1)

    def poses(self) -> WorldPoses:
        """World poses of all frames, differentiable in the coefficients."""
        return pose_joints(self.skeleton, self.root_positions(), quat_to_matrix(self.quats()))

    @torch.no_grad()
    def motion(self) -> Motion:
        quats = quat_continuous(self.quats().transpose(0, 1)).transpose(0, 1)
        return Motion(skeleton=self.skeleton, fps=self.timing.fps, root_position=self.root_positions(), quats=quats)


def moved_joints(rig: Rig) -> Int[Tensor, " M"]:
    """Joints below the root that skin follows, themselves or further down; handles and empty ends stay as they are."""
    carried = rig.weights.sum(0).double()
    for joint in reversed(range(1, len(rig.skeleton))):
        carried[rig.skeleton.parents[joint]] += carried[joint]
    found = [joint for joint in range(1, len(rig.skeleton)) if carried[joint] > _CARRIES * float(rig.weights.sum())]
    return torch.tensor(found, dtype=torch.long)
