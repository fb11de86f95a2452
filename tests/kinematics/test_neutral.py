"""The neutral pose is the same stance for every body, whatever its rest pose."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bunraku.kinematics.forward import forward_kinematics, local_rotations, pose_joints, rest_poses
from bunraku.kinematics.library import skeleton, skeleton_names
from bunraku.kinematics.motion import rest_motion
from bunraku.kinematics.neutral import facing_yaw, limb_start, neutral_rotations, segment_joint
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import exp_matrix, matrix_to_quat, quat_multiply, quat_to_matrix, yaw_quat


def neutral_positions(body: Skeleton) -> torch.Tensor:
    return pose_joints(body, body.offsets[0], local_rotations(body, neutral_rotations(body))).p_world_joint


def along(body: Skeleton, upper: str, lower: str) -> torch.Tensor:
    p = neutral_positions(body)
    return torch.nn.functional.normalize(p[body.role(lower)] - p[limb_start(body, upper, lower)], dim=0)


@pytest.mark.parametrize("name", skeleton_names())
def test_legs_hang_and_arms_stretch_sideways(name: str) -> None:
    body = skeleton(name)
    for side, out in (("left", 1.0), ("right", -1.0)):
        for upper, lower in (("hip", "knee"), ("knee", "foot")):
            torch.testing.assert_close(along(body, f"{side}_{upper}", f"{side}_{lower}"), torch.tensor([0.0, -1.0, 0.0]), atol=1e-4, rtol=0)
        for upper, lower in (("shoulder", "elbow"), ("elbow", "hand")):
            torch.testing.assert_close(along(body, f"{side}_{upper}", f"{side}_{lower}"), torch.tensor([out, 0.0, 0.0]), atol=1e-4, rtol=0)
        toe = along(body, f"{side}_foot", f"{side}_toe")
        assert abs(float(toe[0])) < 1e-4
        assert toe[2] > 0.5


def a_posed(body: Skeleton) -> Skeleton:
    """The same body with its arms hanging at 45° in the rest pose, and standing with its back to the camera."""
    rest = rest_motion(body)
    quats = rest.quats[0].clone()
    for side, sign in (("left", -1.0), ("right", 1.0)):
        j = body.role(f"{side}_shoulder")
        R_world_parent = forward_kinematics(rest).R_world_joint[0, body.parents[j]]
        turn = R_world_parent.T @ exp_matrix(torch.tensor([0.0, 0.0, sign * 0.785])) @ R_world_parent
        quats[j] = matrix_to_quat(turn @ quat_to_matrix(quats[j]))
    quats[0] = quat_multiply(yaw_quat(torch.tensor(2.5)), quats[0])
    return replace(body, rest_quats=quats)


@pytest.mark.parametrize(("name", "twist"), [("soma30", 0.002), ("cmu23", 0.002), ("smplx22", 0.1)])
def test_the_rest_pose_does_not_matter(name: str, twist: float) -> None:
    """Up to a little twist where arms rest neither level nor in one plane: a smallest turn has no opinion on it."""
    body = skeleton(name)
    torch.testing.assert_close(neutral_rotations(a_posed(body)), neutral_rotations(body), atol=twist, rtol=0)


def test_facing_is_zero_at_plus_z_and_positive_towards_the_left() -> None:
    p = rest_poses(skeleton("soma30")).p_world_joint
    for yaw in (0.0, 0.7, -2.0, 3.0):
        turned = p @ quat_to_matrix(yaw_quat(torch.tensor(yaw))).T
        assert abs(float(facing_yaw(skeleton("soma30"), turned)) - yaw) < 0.02
    body = skeleton("smplx22")  # its legs' line is slightly turned by its real geometry; without roles any body faces +Z
    assert facing_yaw(replace(body, roles={}), rest_poses(body).p_world_joint) == 0


def test_a_robots_segments_are_carried_by_the_last_of_their_hinges() -> None:
    body = skeleton("g1")
    segments = (("hip", "knee"), ("knee", "foot"), ("shoulder", "elbow"))
    carried = {upper: body.joints[segment_joint(body, f"left_{upper}", f"left_{lower}")] for upper, lower in segments}
    assert carried == {"hip": "left_hip_yaw_skel", "knee": "left_knee_skel", "shoulder": "left_shoulder_yaw_skel"}


def test_a_robots_limbs_are_straight_in_neutral_although_their_first_hinges_lie_beside_them() -> None:
    """The G1's zero pose hangs its legs straight down; seen from its hip pitch joints they would lean 9° outwards."""
    body = skeleton("g1")
    assert body.joints[limb_start(body, "left_hip", "left_knee")] == "left_hip_roll_skel"
    away = neutral_rotations(body) @ rest_poses(body).R_world_joint.transpose(-1, -2)
    for side in ("left", "right"):
        thigh = away[segment_joint(body, f"{side}_hip", f"{side}_knee")]
        assert abs(float(torch.rad2deg(thigh[1, 0]))) < 1.0  # how far the thigh leans sideways
