"""Changing the rest pose moves no joint, has an inverse, and makes the chosen pose the one without turns."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bunraku.kinematics.forward import forward_kinematics, pose_joints, rest_poses
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.rest import rebase, rebase_skeleton
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import exp_matrix, exp_quat, geodesic_distance, quat_distance, quat_to_matrix


def body_float64(name: str) -> Skeleton:
    body = skeleton(name)
    return replace(body, offsets=body.offsets.double(), rest_quats=torch.nn.functional.normalize(body.rest_quats.double(), dim=-1))


def random_motion(body: Skeleton, frames: int = 7, *, stretching: bool = False) -> Motion:
    translations = body.offsets + 0.1 * torch.randn(frames, len(body), 3, dtype=torch.float64) if stretching else None
    quats = exp_quat(torch.randn(frames, len(body), 3, dtype=torch.float64))
    return Motion(skeleton=body, fps=30.0, root_position=torch.randn(frames, 3, dtype=torch.float64), quats=quats, translations=translations)


@pytest.mark.parametrize("stretching", [False, True])
@pytest.mark.parametrize("name", ["cmu23", "g1"])
def test_no_joint_moves_and_frames_turn_by_the_rest(name: str, stretching: bool) -> None:
    motion = random_motion(body_float64(name), stretching=stretching)
    R_rest = exp_matrix(torch.randn(len(motion.skeleton), 3, dtype=torch.float64))
    before, after = forward_kinematics(motion), forward_kinematics(rebase(motion, R_rest))
    assert (after.p_world_joint - before.p_world_joint).abs().max() < 1e-12
    assert (after.R_world_joint - before.R_world_joint @ R_rest.transpose(-1, -2)).abs().max() < 1e-12


def test_the_inverse_gives_every_number_back() -> None:
    motion = random_motion(body_float64("g1"), stretching=True)
    R_rest = exp_matrix(torch.randn(len(motion.skeleton), 3, dtype=torch.float64))
    back = rebase(rebase(motion, R_rest), R_rest.transpose(-1, -2))
    assert quat_distance(back.quats, motion.quats).max() < 1e-7
    assert (back.translations - motion.translations).abs().max() < 1e-12
    assert (back.skeleton.offsets - motion.skeleton.offsets).abs().max() < 1e-12
    assert quat_distance(back.skeleton.rest_quats, motion.skeleton.rest_quats).max() < 1e-7
    assert (back.skeleton.hinges.axes - motion.skeleton.hinges.axes).abs().max() < 1e-6


def test_the_chosen_pose_has_no_turns_afterwards() -> None:
    body = body_float64("g1")
    assert (body.rest_quats[:, 0].abs() < 0.999).any()  # otherwise this test says nothing
    unturned = rebase_skeleton(body, rest_poses(body).R_world_joint)
    assert quat_distance(unturned.rest_quats, torch.tensor([1.0, 0, 0, 0], dtype=torch.float64)).max() < 1e-7
    assert (rest_poses(unturned).p_world_joint - rest_poses(body).p_world_joint).abs().max() < 1e-12


def test_tips_and_hinges_stay_where_they_are_in_the_world() -> None:
    body, R = body_float64("cmu23"), exp_matrix(torch.randn(23, 3, dtype=torch.float64))
    turned = rebase_skeleton(body, R)
    R_local = exp_matrix(torch.randn(23, 3, dtype=torch.float64))
    motion = Motion(skeleton=body, fps=30.0, root_position=torch.zeros(1, 3, dtype=torch.float64), quats=exp_quat(torch.randn(1, 23, 3, dtype=torch.float64)))
    R_old, R_new = forward_kinematics(motion).R_world_joint[0], forward_kinematics(rebase(motion, R)).R_world_joint[0]
    for joint, tip in body.tips.items():
        assert (R_new[joint] @ torch.tensor(turned.tips[joint], dtype=torch.float64) - R_old[joint] @ torch.tensor(tip, dtype=torch.float64)).norm() < 1e-12

    robot = body_float64("g1")
    R = exp_matrix(torch.randn(len(robot), 3, dtype=torch.float64))
    R_local = quat_to_matrix(exp_quat(torch.randn(len(robot), 3, dtype=torch.float64)))
    row = robot.hinges.joints.index("left_knee_skel")
    old = pose_joints(robot, torch.zeros(3, dtype=torch.float64), R_local).R_world_joint[robot.index["left_knee_skel"]]
    new = old @ R[robot.index["left_knee_skel"]].T
    assert (new @ rebase_skeleton(robot, R).hinges.axes[row].double() - old @ robot.hinges.axes[row].double()).norm() < 1e-6


def test_float32_stays_float32_and_exact_enough() -> None:
    motion = random_motion(skeleton("soma77"), frames=600).to(torch.float32)
    R_rest = exp_matrix(torch.randn(77, 3, dtype=torch.float64))
    turned = rebase(motion, R_rest)
    assert turned.quats.dtype == turned.skeleton.offsets.dtype == torch.float32
    before, after = forward_kinematics(motion), forward_kinematics(turned)
    assert (after.p_world_joint - before.p_world_joint).abs().max() < 1e-5
    assert geodesic_distance(after.R_world_joint.double(), before.R_world_joint.double() @ R_rest.transpose(-1, -2)).max() < 1e-4
