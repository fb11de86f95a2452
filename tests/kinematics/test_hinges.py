"""Hinge angles out of free turns and back."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bunraku.errors import SkeletonMismatch
from bunraku.kinematics.hinges import clamp_to_limits, fixed_joint_turns, hinge_angles, limit_violations, motion_from_hinges
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.skeleton import Hinges, Skeleton
from bunraku.math.rotations import exp_quat, quat_multiply

G1 = skeleton("g1")


def g1_motion(angles: torch.Tensor) -> Motion:
    return motion_from_hinges(G1, torch.zeros(len(angles), 3).to(angles), exp_quat(torch.randn(len(angles), 3)).to(angles), angles, 30.0)


def crank(lower: float, upper: float) -> Skeleton:
    axis = torch.tensor([[1.0, 2.0, -2.0]], dtype=torch.float64) / 3
    return Skeleton(
        name="crank",
        joints=("base", "handle"),
        parents=(-1, 0),
        offsets=torch.zeros(2, 3, dtype=torch.float64),
        rest_quats=exp_quat(torch.tensor([[0.0, 0, 0], [0.3, -0.2, 0.5]], dtype=torch.float64)),
        hinges=Hinges(joints=("handle",), axes=axis, lower=torch.tensor([lower]).double(), upper=torch.tensor([upper]).double()),
    )


def test_angles_within_the_limits_come_back() -> None:
    h = G1.hinges
    angles = (h.lower + (h.upper - h.lower) * torch.rand(50, 29)).double()
    back, off_axis = hinge_angles(g1_motion(angles))
    assert float((back - angles).abs().max()) < 1e-12
    assert float(off_axis.max()) < 1e-12


def test_rest_is_the_robots_zero() -> None:
    angles, off_axis = hinge_angles(rest_motion(G1))
    assert float(angles.abs().max()) < 1e-6
    assert float(off_axis.max()) < 1e-6


@given(twist=st.floats(-3, 3), swing=st.floats(0, 1.5), direction=st.floats(-3, 3))
def test_a_free_turn_splits_into_twist_and_swing(twist: float, swing: float, direction: float) -> None:
    body = crank(-3.1, 3.1)
    axis = body.hinges.axes[0]
    normal = torch.linalg.cross(axis, torch.tensor([1.0, 0, 0], dtype=torch.float64))
    normal = normal / normal.norm()
    aside = math.cos(direction) * normal + math.sin(direction) * torch.linalg.cross(axis, normal)
    turn = quat_multiply(exp_quat(swing * aside), exp_quat(twist * axis))
    quats = torch.stack([body.rest_quats[0], quat_multiply(body.rest_quats[1], turn)])[None]
    angles, off_axis = hinge_angles(Motion(skeleton=body, fps=1.0, root_position=torch.zeros(1, 3).double(), quats=quats))
    assert abs(float(angles) - twist) < 1e-9
    assert abs(float(off_axis) - swing) < 1e-9


@given(lower=st.floats(-4, 1), width=st.floats(0.1, 6.2), part=st.floats(0, 1))
def test_the_angle_nearest_the_range_is_taken(lower: float, width: float, part: float) -> None:
    body = crank(lower, lower + width)
    angle = lower + part * width
    quats = torch.stack([body.rest_quats[0], quat_multiply(body.rest_quats[1], exp_quat(angle * body.hinges.axes[0]))])[None]
    motion = Motion(skeleton=body, fps=1.0, root_position=torch.zeros(1, 3).double(), quats=quats)
    assert abs(float(hinge_angles(motion)[0]) - angle) < 1e-9
    assert abs(float(hinge_angles(replace(motion, quats=-quats))[0]) - angle) < 1e-9


def test_a_hinge_without_limits_runs_on_through_full_turns() -> None:
    body = crank(-math.inf, math.inf)
    angles = torch.linspace(0.5, 20, 60, dtype=torch.float64)[:, None]
    motion = motion_from_hinges(body, torch.zeros(60, 3).double(), body.rest_quats[:1].expand(60, -1), angles, 30.0)
    assert float((hinge_angles(motion)[0] - angles).abs().max()) < 1e-9


def test_violations_and_clamping() -> None:
    h = G1.hinges
    angles = torch.zeros(2, 29)
    angles[1, 3] = h.upper[3] + 0.25
    angles[0, 5] = h.lower[5] - 0.5
    excess = limit_violations(h, angles)
    assert float(excess[1, 3]) == pytest.approx(0.25)
    assert float(excess[0, 5]) == pytest.approx(0.5)
    assert int((excess > 0).sum()) == 2
    inside = clamp_to_limits(h, angles)
    assert float(limit_violations(h, inside).max()) == 0
    assert float((inside - angles).abs().max()) == pytest.approx(0.5)


def test_turns_of_fixed_joints_are_measured() -> None:
    motion = g1_motion(torch.zeros(3, 29))
    assert float(fixed_joint_turns(motion).max()) < 1e-6
    quats = motion.quats.clone()
    quats[1, G1.role("left_toe")] = exp_quat(torch.tensor([0.3, 0, 0]))
    assert fixed_joint_turns(replace(motion, quats=quats)).tolist() == pytest.approx([0, 0.3, 0], abs=1e-6)


def test_a_body_without_hinges_and_a_wrong_count_are_refused() -> None:
    with pytest.raises(SkeletonMismatch, match="no hinges"):
        hinge_angles(rest_motion(skeleton("soma30")))
    with pytest.raises(SkeletonMismatch, match="29 hinges; 28 angles"):
        g1_motion(torch.zeros(2, 28))
