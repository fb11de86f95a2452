"""How well a clip closes, wherever it went."""

from __future__ import annotations

import pytest
import torch
from evaluate_figure import make_figure, move, turn, walk

from bunraku.evaluate.quality import check
from bunraku.kinematics.motion import rest_motion


def test_a_walk_of_whole_cycles_closes_though_it_travels_and_turns() -> None:
    straight = walk(make_figure(), frames=61, speed=0)
    heading = torch.linspace(0, 120, 61, dtype=torch.float64)
    for motion in (straight, move(straight, x=torch.linspace(0, 2, 61)), turn(straight, "hips", "y", heading)):
        report = check(motion)
        assert report["loop_pose"] == pytest.approx(0, abs=1e-3)
        assert report["loop_position"] == pytest.approx(0, abs=1e-4)


def test_the_velocity_at_the_seam() -> None:
    closed = walk(make_figure(), frames=62, speed=0.5)  # two cycles and a frame: the last step repeats the first
    assert check(closed)["loop_velocity"] == pytest.approx(0, abs=1e-6)
    speed = torch.cat([torch.zeros(10), torch.full((10,), 0.25)]).double()
    accelerating = move(rest_motion(make_figure(), 20), z=torch.cumsum(speed, 0) / 30)
    assert check(accelerating)["loop_velocity"] == pytest.approx(25)


def test_a_joint_left_turned_and_a_body_left_higher() -> None:
    frames = 30
    ramp = torch.linspace(0, 1, frames, dtype=torch.float64)
    report = check(turn(rest_motion(make_figure(), frames), "left_hand", "y", 30 * ramp))
    assert report["loop_pose"] == pytest.approx(30)
    assert report["loop_position"] == pytest.approx(0, abs=1e-9)
    assert check(move(rest_motion(make_figure(), frames), y=0.12 * ramp))["loop_position"] == pytest.approx(12)


def test_a_known_gap_is_found_whatever_way_the_body_went() -> None:
    frames = 61
    ramp = torch.linspace(0, 1, frames, dtype=torch.float64)
    open_loop = move(turn(walk(make_figure(), frames=frames, speed=0), "head", "y", 25 * ramp), y=-0.07 * ramp)
    for motion in (open_loop, turn(move(open_loop, x=3 * ramp, z=-ramp), "hips", "y", 200 * ramp)):
        report = check(motion)
        assert report["loop_pose"] == pytest.approx(25, abs=1e-3)
        assert report["loop_position"] == pytest.approx(7, abs=1e-3)


def test_a_speed_that_jumps_at_the_seam_is_found_on_a_curve() -> None:
    """The first step goes 40 cm/s along the heading of its own frame, the last 100 cm/s along another: 60 cm/s of difference."""
    heading = torch.tensor([0.0, 0.0, 90.0, 90.0], dtype=torch.float64)
    turned = turn(rest_motion(make_figure(), 4), "hips", "y", heading)
    moved = move(turned, x=torch.tensor([0.0, 0.0, 0.0, 1.0 / 30]), z=torch.tensor([0.0, 0.4 / 30, 0.4 / 30, 0.4 / 30]))
    assert check(moved)["loop_velocity"] == pytest.approx(60, abs=1e-3)


def test_a_tilt_of_the_body_is_no_heading() -> None:
    report = check(turn(rest_motion(make_figure(), 30), "hips", "x", torch.linspace(0, 20, 30, dtype=torch.float64)))
    assert report["loop_pose"] == pytest.approx(20)


@pytest.mark.parametrize(("frames", "missing"), [(1, {"loop_pose", "loop_position", "loop_velocity"}), (2, {"loop_velocity"}), (3, set())])
def test_short_clips(frames: int, missing: set[str]) -> None:
    report = check(rest_motion(make_figure(), frames))
    assert {name for name in ("loop_pose", "loop_position", "loop_velocity") if report[name] is None} == missing
