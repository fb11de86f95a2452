"""Cadence and phase of legs that swing by a formula."""

from __future__ import annotations

import math

import pytest
import torch
from evaluate_figure import make_figure, mirrored, move, turn, walk

from bunraku.evaluate.quality import check
from bunraku.kinematics.motion import rest_motion


@pytest.mark.parametrize("hertz", [0.8, 1.0, 1.7])
@pytest.mark.parametrize("apart", [0.5, 0.25, 0.0])
def test_cadence_and_phase(hertz: float, apart: float) -> None:
    report = check(walk(make_figure(), frames=121, hertz=hertz, apart=apart))
    assert report["cadence"] == pytest.approx(hertz, rel=0.02)
    assert report["phase"] == pytest.approx(apart, abs=0.015)
    assert report["periodicity"] > 0.98


def test_the_phase_of_a_mirrored_walk_is_the_same() -> None:
    motion = walk(make_figure(), apart=0.3)
    assert check(mirrored(motion))["phase"] == pytest.approx(check(motion)["phase"], abs=1e-6)


def test_a_walk_along_a_curve_keeps_its_rhythm() -> None:
    motion = turn(walk(make_figure(), speed=0), "hips", "y", torch.linspace(0, 270, 91))
    assert check(motion)["phase"] == pytest.approx(0.5, abs=0.015)


def test_hops_on_the_spot_are_in_phase() -> None:
    fold = 30 - 30 * torch.cos(2 * math.pi * 2 * torch.arange(90, dtype=torch.float64) / 30)
    motion = rest_motion(make_figure(), 90)
    for side in ("left", "right"):
        motion = turn(turn(motion, f"{side}_hip", "x", -fold), f"{side}_knee", "x", 2 * fold)
    report = check(motion)
    assert report["cadence"] == pytest.approx(2, rel=0.02)
    assert report["phase"] == pytest.approx(0, abs=0.015)


@pytest.mark.parametrize("start", [0.0, 0.1, 0.25])
@pytest.mark.parametrize("frames", [30, 31])
def test_one_cycle_made_to_be_looped_has_a_rhythm(frames: int, start: float) -> None:
    """With the first frame repeated at the end (31) and without (30); from mid-stance and from the pose of the widest step."""
    report = check(walk(make_figure(), frames=frames, speed=0, start=start))
    assert report["cadence"] == pytest.approx(1, rel=0.02)
    assert report["phase"] == pytest.approx(0.5, abs=0.015)


def test_a_foot_that_stands_still_has_no_phase_with_the_other() -> None:
    tapping = 15 * torch.sin(2 * math.pi * torch.arange(90, dtype=torch.float64) / 30)
    report = check(turn(rest_motion(make_figure(), 90), "left_hip", "x", tapping))
    assert report["cadence"] == pytest.approx(1, rel=0.02)
    assert report["phase"] is None


def test_standing_one_step_and_slides_have_no_rhythm() -> None:
    body = make_figure()
    once = torch.zeros(60, dtype=torch.float64)
    once[15:45] = -60 * torch.sin(math.pi * torch.linspace(0, 1, 30, dtype=torch.float64)) ** 2
    for motion in (
        rest_motion(body, 60),
        turn(rest_motion(body, 60), "left_hip", "x", once),
        turn(rest_motion(body, 60), "left_hip", "x", torch.linspace(-40, 40, 60)),
        move(rest_motion(body, 60), z=torch.linspace(0, 3, 60)),
    ):
        report = check(motion)
        assert (report["cadence"], report["phase"], report["periodicity"]) == (None, None, None)
