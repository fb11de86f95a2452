"""Skate, penetration and float of feet whose speed and height are known."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from evaluate_figure import make_figure, move, ramp, turn

from bunraku.evaluate.quality import check
from bunraku.kinematics.motion import Motion, rest_motion


def sliding(speed: float, frames: int = 31, fps: float = 30.0, size: float = 1.0) -> Motion:
    return move(rest_motion(make_figure(size), frames, fps), x=ramp(frames, speed / fps))


def stored(motion: Motion, value: bool = True) -> Motion:
    return replace(motion, contacts=torch.full((len(motion), 4), value))


@pytest.mark.parametrize("fps", [20.0, 30.0, 120.0])
def test_feet_that_slide_at_3_cm_per_second(fps: float) -> None:
    report = check(sliding(0.03, fps=fps))
    assert report.contacts == "detected"
    assert report["skate"] == pytest.approx(3.0)
    assert report["skate_max"] == pytest.approx(3.0)
    assert report["skate_from_height"] == pytest.approx(3.0)
    assert report["skate_ratio"] == 0
    assert report["contact_share"] == 1


def test_stored_contacts_show_the_skate_that_detection_cannot_see() -> None:
    fast = sliding(0.30)
    assert check(fast)["skate"] is None
    report = check(stored(fast))
    assert report.contacts == "stored"
    assert report["skate"] == pytest.approx(30.0)
    assert report["contact_consistency"] == 0
    assert report["skate_ratio"] == 1


def test_skate_counts_only_feet_in_contact() -> None:
    motion = turn(sliding(0.06), "right_hip", "x", torch.linspace(-40, -80, 31))
    contacts = torch.tensor([True, True, False, False]).expand(31, 4)
    assert check(replace(motion, contacts=contacts))["skate"] == pytest.approx(6.0)


def test_skate_ratio_is_the_share_of_fast_steps() -> None:
    x = torch.zeros(21, dtype=torch.float64)
    x[1:6] = torch.arange(1, 6) * 0.25 / 30
    x[6:] = x[5]
    assert check(move(rest_motion(make_figure(), 21), x=x))["skate_ratio"] == pytest.approx(5 / 20)


def test_contacts_that_agree_with_the_geometry() -> None:
    assert check(stored(sliding(0.03)))["contact_consistency"] == 1
    assert check(stored(sliding(0.03), value=False))["contact_consistency"] == 0
    assert check(sliding(0.03))["contact_consistency"] is None


def test_a_clip_that_stands_on_the_ground_neither_sinks_nor_floats() -> None:
    report = check(sliding(0))
    for name in ("skate", "penetration_mean", "penetration_max", "penetration_share", "float_mean", "float_max", "ground_level"):
        assert report[name] == pytest.approx(0, abs=1e-6), name


def test_feet_that_sink_for_half_the_clip() -> None:
    depth = torch.zeros(40, dtype=torch.float64)
    depth[20:30], depth[30:] = 0.02, 0.04
    report = check(move(rest_motion(make_figure(), 40), y=-depth))
    assert report["penetration_max"] == pytest.approx(40)
    assert report["penetration_mean"] == pytest.approx(30)
    assert report["penetration_share"] == pytest.approx(0.5)


def test_toe_tips_count_as_feet() -> None:
    down = turn(rest_motion(make_figure(), 3), "left_toe", "x", 90)  # the tip points straight down, its sole 3 cm behind it
    assert check(down)["penetration_max"] == pytest.approx(1000 * (0.06 - 0.03))


def test_a_clip_that_hovers() -> None:
    report = check(move(rest_motion(make_figure(), 30), y=0.2))
    assert report["float_mean"] == pytest.approx(200)
    assert report["float_max"] == pytest.approx(200)
    assert report["ground_level"] == pytest.approx(20)
    assert report["penetration_max"] == 0
    raised = check(move(rest_motion(make_figure(), 30), y=0.2), ground=0.2)
    assert raised["float_mean"] == pytest.approx(0, abs=1e-6)
    assert raised["ground_level"] == pytest.approx(0, abs=1e-6)


def test_feet_without_toes_are_measured_at_the_ankle() -> None:
    body = make_figure()
    body = replace(body, roles={role: j for role, j in body.roles.items() if not role.endswith("toe")})
    report = check(move(rest_motion(body, 31), x=ramp(31, 0.05 / 30)))
    assert report["skate"] == pytest.approx(5.0)
    assert report["skate_from_height"] is None


def test_no_feet_no_foot_metrics() -> None:
    body = replace(make_figure(), roles={})
    report = check(rest_motion(body, 5))
    assert report.contacts is None
    assert report["skate"] is None
    assert report["penetration_max"] is None
