"""Inverse kinematics: reaches what can be reached, keeps limits, disturbs nothing else, and its derivatives are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bunraku.kinematics import inverse
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.hinges import hinge_angles
from bunraku.kinematics.inverse import Effort, Freedom, PositionTarget, RotationTarget, solve
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.math.rotations import exp_matrix, exp_quat, geodesic_distance, quat_multiply

ARM = ("left_shoulder", "left_elbow", "left_hand")


def bent(name: str, frames: int = 12, size: float = 0.4) -> Motion:
    """A pose with every joint turned a little, the same in all frames."""
    body = skeleton(name)
    rest = rest_motion(body, frames)
    return replace(rest, quats=quat_multiply(rest.quats, exp_quat(torch.randn(len(body), 3) * size)))


def test_reaches_a_position_and_a_turn_that_a_real_pose_has() -> None:
    goal, start = forward_kinematics(bent("soma30")), rest_motion(skeleton("soma30"), 12)
    body = start.skeleton
    roles = [role for role in body.roles if role != "hips"]
    every = torch.full((12,), 100.0)
    targets: list[inverse.Target] = []
    for role in ("left_hand", "right_hand", "left_foot", "right_foot", "head"):
        j = body.role(role)
        targets.append(PositionTarget(joint=j, p_world=goal.p_world_joint[:, j], weight=every))
        targets.append(RotationTarget(joint=j, R_world=goal.R_world_joint[:, j], weight=every))
    found = solve(start, targets, Freedom.of(body, {body.role(role): 1.0 for role in roles}, 0), Effort(stay=1e-3, stay_moving=1e-3, iterations=60))
    poses = forward_kinematics(found)
    for target in targets:
        if isinstance(target, PositionTarget):
            assert (poses.p_world_joint[:, target.joint] - target.p_world).norm(dim=-1).max() < 1e-3
        else:
            assert geodesic_distance(poses.R_world_joint[:, target.joint], target.R_world).max() < 2e-3


def test_joints_that_are_not_free_do_not_turn() -> None:
    start = bent("soma30")
    body = start.skeleton
    target = PositionTarget(joint=body.role("left_hand"), p_world=torch.randn(12, 3), weight=torch.full((12,), 10.0))
    free = {body.role(role): 1.0 for role in ARM}
    found = solve(start, [target], Freedom.of(body, free, 0))
    held = [j for j in range(len(body)) if j not in free]
    torch.testing.assert_close(found.quats[:, held], start.quats[:, held], atol=1e-6, rtol=0)


def test_without_targets_nothing_moves() -> None:
    start = bent("g1", size=0.0)
    found = solve(start, [], Freedom.of(start.skeleton, dict.fromkeys(range(len(start.skeleton)), 1.0), 0))
    torch.testing.assert_close(found.quats, start.quats, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.root_position, start.root_position, atol=1e-6, rtol=0)


def test_hinges_stay_within_their_limits_even_when_the_target_is_out_of_reach() -> None:
    body = skeleton("g1")
    start = rest_motion(body, 20)
    assert body.hinges is not None
    far = torch.tensor([2.0, 3.0, -2.0]).expand(20, 3)
    targets = [PositionTarget(joint=body.role(role), p_world=far, weight=torch.full((20,), 50.0)) for role in ("left_hand", "right_foot")]
    found = solve(start, targets, Freedom.of(body, {body.index[name]: 1.0 for name in body.hinges.joints}, 0), Effort(stay_moving=1e3, iterations=30))
    angles, off_axis = hinge_angles(found)
    assert (angles >= body.hinges.lower - 1e-5).all()
    assert (angles <= body.hinges.upper + 1e-5).all()
    assert off_axis.abs().max() < 1e-5
    assert ((angles - body.hinges.lower).abs().min() < 1e-4) or ((angles - body.hinges.upper).abs().min() < 1e-4)  # it did try


def test_a_moving_joint_below_the_root_leaves_the_root_where_it_is() -> None:
    start = bent("soma30")
    body = start.skeleton
    chest = body.role("chest")
    goal = forward_kinematics(start).p_world_joint[:, chest] + torch.tensor([0.1, 0.2, -0.1])
    found = solve(start, [PositionTarget(joint=chest, p_world=goal, weight=torch.full((12,), 1e3))], Freedom.of(body, {body.role("head"): 1.0}, chest))
    poses = forward_kinematics(found)
    assert (poses.p_world_joint[:, chest] - goal).norm(dim=-1).max() < 1e-3
    torch.testing.assert_close(found.root_position, start.root_position)


def test_target_rows_are_the_derivative_of_the_misses() -> None:
    motion = bent("g1", frames=2, size=0.3).to(torch.float64)
    body = motion.skeleton
    freedom = Freedom.of(body, dict.fromkeys(range(len(body)), 1.0), body.role("chest"))
    poses = forward_kinematics(motion)
    targets: list[inverse.Target] = []
    for role in ("left_hand", "chest", "right_toe"):
        j = body.role(role)
        near = exp_matrix(torch.full((2, 3), 1e-5, dtype=torch.float64))  # the Gauss–Newton rows are exact where the turn is reached
        targets.append(PositionTarget(joint=j, p_world=poses.p_world_joint[:, j] + 0.1, weight=torch.tensor([2.0, 3.0]).double()))
        targets.append(RotationTarget(joint=j, R_world=near @ poses.R_world_joint[:, j], weight=torch.tensor([0.5, 1.5]).double()))
    rows, missed = inverse._target_rows(poses, targets, freedom), inverse.misses(poses, targets)
    h = 1e-6
    for n in range(rows.shape[-1]):
        step = torch.zeros(2, rows.shape[-1], dtype=torch.float64)
        step[:, n] = h
        moved = inverse.misses(forward_kinematics(inverse._apply(motion, step, freedom)), targets)
        torch.testing.assert_close((moved - missed) / h, rows[..., n], atol=3e-4, rtol=0)


@pytest.mark.parametrize("frames", [1, 2, 3, 4, 9])
def test_banded_matrix_is_the_dense_one(frames: int) -> None:
    N = 5
    A = torch.randn(frames, N, N, dtype=torch.float64)
    H, smooth = A @ A.transpose(-1, -2), torch.rand(N, dtype=torch.float64)
    damping, free = torch.rand(frames, N, dtype=torch.float64), torch.rand(frames, N) > 0.2
    dense = torch.block_diag(*H) + torch.diag(damping.flatten())
    if frames > 2:
        D2 = torch.zeros(frames - 2, frames, dtype=torch.float64)
        for r in range(frames - 2):
            D2[r, r : r + 3] = torch.tensor([1.0, -2.0, 1.0])
        dense += torch.kron(D2.T @ D2, torch.diag(smooth))
    keep = free.flatten()
    dense = torch.where(keep[:, None] & keep[None, :], dense, torch.zeros(1).double())
    dense[range(len(dense)), range(len(dense))] = torch.where(keep, dense.diagonal(), torch.ones(1).double())
    band = inverse._banded(H.clone(), smooth, damping, free)
    rebuilt = np.zeros((frames * N, frames * N))
    for k in range(band.shape[0]):
        for c in range(frames * N - k):
            rebuilt[c + k, c] = rebuilt[c, c + k] = band[k, c]
    np.testing.assert_allclose(rebuilt, dense.numpy(), atol=1e-12)


def test_a_long_clip_is_solved_in_windows_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    body = skeleton("soma30")
    frames = 150
    start = rest_motion(body, frames)
    hand = body.role("left_hand")
    t = torch.arange(frames) / 30
    path = forward_kinematics(start).p_world_joint[:, hand] + torch.stack([-0.2 + 0.05 * torch.sin(t), 0.1 * torch.cos(t), 0.2 + 0 * t], dim=-1)
    target = [PositionTarget(joint=hand, p_world=path, weight=torch.full((frames,), 100.0))]
    freedom = Freedom.of(body, {body.role(role): 1.0 for role in ARM}, 0)
    effort = Effort(stay_moving=1e3, iterations=40)
    whole = forward_kinematics(solve(start, target, freedom, effort)).p_world_joint
    shares: list[float] = []
    monkeypatch.setattr(inverse, "MAX_WINDOW", 60)
    monkeypatch.setattr(inverse, "WINDOW_OVERLAP", 20)
    windowed = forward_kinematics(solve(start, target, freedom, effort, on_progress=shares.append)).p_world_joint
    assert (windowed - whole).norm(dim=-1).max() < 0.01
    acceleration = torch.diff(windowed, n=2, dim=0).norm(dim=-1).max()
    assert acceleration < 3 * torch.diff(whole, n=2, dim=0).norm(dim=-1).max()
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
