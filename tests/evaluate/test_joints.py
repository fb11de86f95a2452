"""Hinges against exact limits, knees and elbows against anatomy."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from evaluate_figure import make_figure, mirrored, turn

from bunraku.evaluate.clip import prepare
from bunraku.evaluate.joints import limb_bend
from bunraku.evaluate.quality import check
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.math.rotations import exp_quat, quat_multiply


def hinged(angle: float, off_axis: float = 0.0) -> Motion:
    """The G1 with its left knee turned by an angle [rad], and by another about an axis across."""
    body = skeleton("g1")
    row = body.hinges.joints.index("left_knee_skel")
    axis = body.hinges.axes[row]
    across = torch.linalg.cross(axis, torch.tensor([0.0, 0.0, 1.0]))
    motion = rest_motion(body, 4)
    quats = motion.quats.clone()
    j = body.index["left_knee_skel"]
    quats[:, j] = quat_multiply(quats[:, j], exp_quat(angle * axis + off_axis * across))
    return replace(motion, quats=quats)


def knee_limits() -> tuple[float, float]:
    hinges = skeleton("g1").hinges
    row = hinges.joints.index("left_knee_skel")
    return float(hinges.lower[row]), float(hinges.upper[row])


def test_a_robot_at_rest_is_within_its_hinges() -> None:
    report = check(rest_motion(skeleton("g1"), 3))
    assert (report["hinge_violations"], report["hinge_excess_max"]) == (0, 0)
    assert report["bend_frames"] is None


@pytest.mark.parametrize("end", [0, 1])
def test_a_hinge_turned_5_degrees_too_far(end: int) -> None:
    beyond = math.radians(5) * (-1, 1)[end]
    report = check(hinged(knee_limits()[end] + beyond))
    assert report["hinge_violations"] == 4
    assert report["hinge_excess_max"] == pytest.approx(5, abs=1e-3)
    assert report["hinge_off_axis_max"] == pytest.approx(0, abs=1e-3)
    assert check(hinged(knee_limits()[end] - beyond))["hinge_violations"] == 0


def test_a_hinge_turned_about_something_else() -> None:
    assert check(hinged(0.0, off_axis=math.radians(10)))["hinge_off_axis_max"] == pytest.approx(10, abs=0.01)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("degrees", [-35.0, 0.0, 90.0, 160.0])
def test_fold_of_a_knee_and_how_much_of_it_is_backwards(side: str, degrees: float) -> None:
    clip = prepare(turn(rest_motion(make_figure(), 2), f"{side}_knee", "x", degrees), 0.0)
    fold, backwards = limb_bend(clip, [f"{side}_{part}" for part in ("hip", "knee", "foot")], -1.0)
    torch.testing.assert_close(fold, torch.full_like(fold, abs(degrees)))
    torch.testing.assert_close(backwards, torch.full_like(fold, max(-degrees, 0)))


def test_a_limb_bent_sideways_is_not_bent_backwards() -> None:
    clip = prepare(turn(rest_motion(make_figure()), "left_elbow", "z", 90), 0.0)
    fold, backwards = limb_bend(clip, ["left_shoulder", "left_elbow", "left_hand"], 1.0)
    assert (float(fold), float(backwards)) == (pytest.approx(90), pytest.approx(0, abs=1e-9))


def test_a_knee_bent_backwards() -> None:
    backwards = torch.tensor([0.0, -10.0, -35.0, -50.0, 80.0], dtype=torch.float64)
    left = turn(rest_motion(make_figure(), 5), "left_knee", "x", backwards)
    for motion in (left, mirrored(left)):
        report = check(motion)
        assert report["bend_frames"] == 2
        assert report["bend_excess_max"] == pytest.approx(30)


@pytest.mark.parametrize(("side", "axis_sign"), [("left", -1), ("right", 1)])
def test_elbows_fold_forwards_only(side: str, axis_sign: int) -> None:
    def bent(degrees: float) -> Motion:
        return turn(rest_motion(make_figure(), 2), f"{side}_elbow", "y", axis_sign * degrees)

    assert check(bent(150))["bend_frames"] == 0
    assert check(bent(-45))["bend_excess_max"] == pytest.approx(15)


def test_a_twisted_shoulder_carries_the_elbow_with_it() -> None:
    motion = turn(turn(rest_motion(make_figure(), 2), "left_shoulder", "x", 90), "left_elbow", "y", -120)
    assert check(motion)["bend_frames"] == 0


@pytest.mark.parametrize("name", ["soma30", "soma77", "smplx22", "cmu23"])
def test_library_people_rest_within_anatomy(name: str) -> None:
    assert check(rest_motion(skeleton(name), 2))["bend_frames"] == 0
