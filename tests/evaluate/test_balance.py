"""The centre of mass and the support under it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from evaluate_figure import make_figure, move, ramp, turn

from bunraku.evaluate.balance import HEAD_MASS, LEG_AND_ARM, TRUNK_MASS, centre_of_mass, outside_hull
from bunraku.evaluate.clip import prepare
from bunraku.evaluate.quality import check
from bunraku.kinematics.motion import Motion, rest_motion

SQUARE = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [9.0, 9.0]]], dtype=torch.float64)
PRESENT = torch.tensor([[True, True, True, True, False]])


def leaning(degrees: float, frames: int = 5) -> Motion:
    """The whole body tilted forward about its ankles, soles flat."""
    motion = turn(rest_motion(make_figure(), frames), "hips", "x", degrees)
    for side in ("left", "right"):
        motion = turn(motion, f"{side}_foot", "x", -degrees)
    height = 0.95 - 0.08
    lean = math.radians(degrees)
    return move(motion, y=height * (math.cos(lean) - 1), z=height * math.sin(lean))


@pytest.mark.parametrize(("x", "z", "distance"), [(2.0, 0.5, 1.0), (0.5, -3.0, 3.0), (4.0, 5.0, 5.0), (0.5, 0.5, -0.5), (1.0, 0.5, 0.0)])
def test_distance_outside_a_square(x: float, z: float, distance: float) -> None:
    outside = outside_hull(torch.tensor([[x, z]], dtype=torch.float64), SQUARE, PRESENT)
    assert float(outside) == pytest.approx(distance, abs=0.002 * max(1, distance))


def test_the_segments_weigh_one_body() -> None:
    assert TRUNK_MASS + HEAD_MASS + 2 * (0.006 + sum(mass for _, _, mass, _ in LEG_AND_ARM)) == pytest.approx(1)


def test_the_centre_of_mass_of_a_symmetric_figure_lies_in_its_middle_at_hip_height() -> None:
    p = centre_of_mass(prepare(rest_motion(make_figure()), 0.0))[0]
    assert float(p[0]) == pytest.approx(0, abs=1e-12)
    assert 0.9 < float(p[1]) < 1.1


def test_a_raised_foot_moves_the_centre_of_mass_by_its_share() -> None:
    rest = centre_of_mass(prepare(rest_motion(make_figure()), 0.0))[0]
    kicked = centre_of_mass(prepare(turn(rest_motion(make_figure()), "left_hip", "x", -90), 0.0))[0]
    leg = 0.100 * 0.433 * 0.42 + 0.0465 * (0.42 + 0.433 * 0.40) + 0.0145 * (0.82 + 0.5 * 0.05)
    assert float((kicked - rest)[2]) == pytest.approx(leg - 0.0145 * 0.5 * 0.14, abs=1e-12)


def test_standing_is_supported() -> None:
    report = check(rest_motion(make_figure(), 5))
    assert (report["still_share"], report["support_share"], report["support_outside_max"]) == (1, 1, 0)


def test_leaning_far_over_the_toes_is_not() -> None:
    motion = leaning(40)
    p_com = centre_of_mass(prepare(motion, 0.0))[0]
    report = check(motion)
    assert report["support_share"] == 0
    toe_tip = 0.14 + 0.06
    assert report["support_outside_max"] == pytest.approx(100 * (float(p_com[2]) - toe_tip), rel=0.002)
    assert report["support_outside_max"] > 20
    assert check(leaning(10))["support_share"] == 1


def test_standing_on_one_foot_needs_the_body_above_that_foot() -> None:
    contacts = torch.tensor([True, True, False, False]).expand(5, 4)
    report = check(replace(rest_motion(make_figure(), 5), contacts=contacts))
    assert report["support_share"] == 0
    assert report["support_outside_max"] == pytest.approx(10, rel=0.002)


def test_a_body_that_moves_is_not_judged() -> None:
    motion = move(rest_motion(make_figure(), 10), x=ramp(10, 0.2 / 30))
    report = check(replace(motion, contacts=torch.ones(10, 4, dtype=torch.bool)))
    assert report["still_share"] == 0
    assert report["support_share"] is None
