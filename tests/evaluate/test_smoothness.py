"""Derivatives of motions that have a formula."""

from __future__ import annotations

import math

import pytest
import torch
from evaluate_figure import make_figure, move, turn

from bunraku.evaluate.quality import check
from bunraku.kinematics.motion import rest_motion

AMPLITUDE, HERTZ, SECONDS = 0.1, 1.0, 20


def sine(fps: float, amplitude: float) -> torch.Tensor:
    return amplitude * torch.sin(2 * math.pi * HERTZ * torch.arange(round(fps * SECONDS) + 3, dtype=torch.float64) / fps)


def derivative(order: int, fps: float, amplitude: float) -> float:
    """The amplitude of the order-th finite difference of `sine`, exactly: each difference multiplies by 2 sin(ω dt / 2)."""
    return amplitude * (2 * math.sin(math.pi * HERTZ / fps) * fps) ** order


@pytest.mark.parametrize("fps", [30.0, 120.0])
def test_jerk_of_a_body_that_bobs_like_a_sine(fps: float) -> None:
    motion = move(rest_motion(make_figure(), round(fps * SECONDS) + 3, fps), y=sine(fps, AMPLITUDE))
    report = check(motion)
    jerk = derivative(3, fps, AMPLITUDE)
    assert jerk == pytest.approx(AMPLITUDE * (2 * math.pi * HERTZ) ** 3, rel=0.01)
    assert report["jerk_mean"] == pytest.approx(jerk * 2 / math.pi, rel=0.005)
    assert report["jerk_p99"] == pytest.approx(jerk, rel=0.01)
    assert report["acceleration_max"] == pytest.approx(derivative(2, fps, AMPLITUDE), rel=0.01)
    assert report["angular_jerk_mean"] == pytest.approx(0, abs=1e-6)


def test_angular_jerk_of_a_head_that_shakes() -> None:
    fps, body = 60.0, make_figure()
    motion = turn(rest_motion(body, round(fps * SECONDS) + 3, fps), "head", "y", torch.rad2deg(sine(fps, 0.2)))
    report = check(motion)
    jerk = derivative(3, fps, 0.2)
    assert report["angular_jerk_mean"] == pytest.approx(jerk * 2 / math.pi / len(body), rel=0.005)
    assert report["turn_max"] == pytest.approx(math.degrees(derivative(1, fps, 0.2)), rel=0.005)
    assert report["jerk_mean"] == pytest.approx(0, abs=1e-6)  # no joint hangs on the head


@pytest.mark.parametrize(("fps", "degrees", "pops"), [(30.0, 59.0, 0), (30.0, 61.0, 1), (60.0, 29.0, 0), (60.0, 31.0, 1), (120.0, 16.0, 1)])
def test_a_joint_that_jumps(fps: float, degrees: float, pops: int) -> None:
    jump = torch.zeros(20, dtype=torch.float64)
    jump[10:] = degrees
    report = check(turn(rest_motion(make_figure(), 20, fps), "left_elbow", "y", -jump))
    assert report["pops"] == pops
    assert report["pop_frames"] == pops


def test_a_spike_of_two_joints_is_four_pops_in_two_steps() -> None:
    spike = torch.zeros(20, dtype=torch.float64)
    spike[10] = 90
    report = check(turn(turn(rest_motion(make_figure(), 20), "left_elbow", "y", -spike), "head", "x", spike))
    assert (report["pops"], report["pop_frames"]) == (4, 2)


@pytest.mark.parametrize("frames", [1, 2, 3, 4])
def test_each_derivative_appears_with_the_frames_it_needs(frames: int) -> None:
    report = check(rest_motion(make_figure(), frames))
    assert (report["turn_max"] is None) == (frames < 2)
    assert (report["acceleration_max"] is None) == (frames < 3)
    assert (report["jerk_mean"] is None) == (frames < 4)
