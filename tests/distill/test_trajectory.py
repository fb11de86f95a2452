"""Trajectories: zeros are the rest pose, angles mean the same in every rig, gradients reach all coefficients."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from bunraku.distill.trajectory import Timing, Trajectory, moved_joints
from bunraku.errors import BadValue
from bunraku.kinematics.forward import forward_kinematics, rest_poses
from bunraku.kinematics.library import skeleton
from bunraku.math.rotations import exp_quat, geodesic_distance, quat_to_matrix
from bunraku.rig.mannequin import mannequin
from bunraku.rig.rig import rig_for
from tests.splats.puppet import puppet

TIMING = Timing(frames=6, fps=8.0)


def test_zeros_are_the_rest_pose_moving_ahead() -> None:
    rig = mannequin(skeleton("cmu23")).rig
    motion = Trajectory(rig, TIMING, speed=1.2).motion()
    poses, rest = forward_kinematics(motion), rest_poses(rig.skeleton)
    ahead = torch.arange(6)[:, None, None] / 8 * 1.2 * torch.tensor([0.0, 0.0, 1.0])
    assert torch.allclose(poses.p_world_joint, rest.p_world_joint + ahead, atol=1e-5)
    assert torch.allclose(poses.R_world_joint, rest.R_world_joint.expand_as(poses.R_world_joint), atol=1e-5)


@pytest.mark.parametrize("basis", ["frames", "spline"])
def test_the_motion_has_the_poses_that_were_optimised(basis: str) -> None:
    trajectory = Trajectory(mannequin(skeleton("soma30")).rig, Timing(frames=20, fps=8.0), basis=basis)  # type: ignore[arg-type]
    for p in trajectory.parameters():
        p.data = 0.3 * torch.randn_like(p)
    poses, again = trajectory.poses(), forward_kinematics(trajectory.motion())
    assert torch.allclose(poses.p_world_joint, again.p_world_joint, atol=1e-4)
    assert torch.allclose(poses.R_world_joint, again.R_world_joint, atol=1e-4)


def test_an_angle_turns_about_the_same_axis_whatever_the_joint_frames() -> None:
    """The elbow pitched by 0.7: in the world, a turn about x, also where the rig's frames point elsewhere."""
    body = puppet()
    turned = exp_quat(torch.tensor([[0.3, -1.0, 0.4], [0.9, 0.2, -0.5]]))
    other = replace(body.skeleton, rest_quats=turned, offsets=torch.stack([body.skeleton.offsets[0], quat_to_matrix(turned[0]).T @ body.skeleton.offsets[1]]))
    for bones in (body.skeleton, other):
        trajectory = Trajectory(rig_for(bones, body.rig.weights), TIMING, basis="frames")
        trajectory.angles.data[:, 0, 0] = 0.7
        moved, rest = trajectory.poses().R_world_joint[0, 1], rest_poses(bones).R_world_joint[1]
        pitch = quat_to_matrix(exp_quat(torch.tensor([0.7, 0.0, 0.0])))
        assert float(geodesic_distance(moved, pitch @ rest)) < 1e-3


def test_handles_stay_where_they_are() -> None:
    body = puppet()
    bones = replace(body.skeleton, joints=("root", "elbow", "handle"), parents=(-1, 0, 0), offsets=torch.cat([body.skeleton.offsets, torch.zeros(1, 3)]),
                    rest_quats=torch.cat([body.skeleton.rest_quats, torch.tensor([[1.0, 0, 0, 0]])]))  # fmt: skip
    rig = rig_for(bones, torch.cat([body.rig.weights, torch.zeros(len(body.rig.weights), 1)], dim=1))
    assert moved_joints(rig).tolist() == [1]


@pytest.mark.parametrize("basis", ["frames", "spline"])
def test_gradients_are_those_of_finite_differences(basis: str) -> None:
    trajectory = Trajectory(puppet(torch.float64).rig, Timing(frames=16, fps=8.0), basis=basis, knots_per_second=2).double()  # type: ignore[arg-type]
    pull = torch.randn(16, 2, 3, dtype=torch.float64)
    for p in trajectory.parameters():
        p.data = 0.4 * torch.randn_like(p)

    def value() -> torch.Tensor:
        poses = trajectory.poses()
        return (poses.p_world_joint * pull).sum() + (poses.R_world_joint[..., 1] * pull).sum()

    value().backward()
    for p in trajectory.parameters():
        direction, step = torch.randn_like(p), 1e-6
        with torch.no_grad():
            p += step * direction
            high = value()
            p -= 2 * step * direction
            low = value()
            p += step * direction
        assert p.grad is not None
        assert float((p.grad * direction).sum()) == pytest.approx(float(high - low) / (2 * step), rel=1e-5)


@pytest.mark.parametrize(("frames", "fps"), [(1, 8.0), (10, 0.0), (10, math.inf)])
def test_impossible_timings_are_refused(frames: int, fps: float) -> None:
    with pytest.raises(BadValue, match="two frames or more"):
        Timing(frames=frames, fps=fps)
