"""Behaviour checks on motions made to show a thing, and on ones made not to."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku
from bunraku.datasets.store import Dataset
from bunraku.kinematics.edit import mirror, place
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.walk import walk
from bunraku.math.rotations import exp_quat, quat_multiply, yaw_quat
from bunraku.trials.behaviours import BEHAVIOURS, is_said, measure_checks, shows
from bunraku.trials.body import Body, longest_run

BODY = bunraku.skeleton("soma30")
TIME = torch.arange(90) / 30


def standing() -> Motion:
    return rest_motion(BODY, frames=90)


def lifted(height: torch.Tensor) -> Motion:
    motion = standing()
    return replace(motion, root_position=motion.root_position + torch.stack([torch.zeros(90), height, torch.zeros(90)], dim=-1))


def bent(motion: Motion, role: str, rotvec: torch.Tensor) -> Motion:
    """With a joint turned by a rotation vector (F 3) on top of what it does."""
    quats = motion.quats.clone()
    joint = BODY.role(role)
    quats[:, joint] = quat_multiply(quats[:, joint], exp_quat(rotvec))
    return replace(motion, quats=quats)


def turning(rate: float) -> Motion:
    motion = standing()
    turns = yaw_quat(rate * TIME)
    return replace(motion, quats=torch.cat([quat_multiply(turns, motion.quats[:, 0])[:, None], motion.quats[:, 1:]], dim=1))


def jumping() -> Motion:
    """A second on the ground, 0.5 s in the air, the rest on the ground."""
    t = (TIME - 1.0).clamp(0, 0.5)
    return lifted(0.5 * 9.81 * t * (0.5 - t))


def sitting() -> Motion:
    share = ((TIME - 1) / 0.8).clamp(0, 1)
    motion = lifted(-0.4 * share)
    angle = torch.stack([-math.radians(85) * share, torch.zeros(90), torch.zeros(90)], dim=-1)
    return bent(bent(motion, "left_hip", angle), "right_hip", angle)


def waving(side: str) -> Motion:
    """The upper arm out to the side and up, swung forth and back three times a second."""
    sign = 1.0 if side == "left" else -1.0
    swing = 0.5 * torch.sin(6 * math.pi * TIME)
    return bent(standing(), f"{side}_shoulder", torch.stack([torch.zeros(90), swing, torch.full((90,), sign * 0.6)], dim=-1))


def kicking(side: str) -> Motion:
    angle = -1.5 * torch.exp(-(((TIME - 1.5) / 0.2) ** 2))
    return bent(standing(), f"{side}_hip", torch.stack([angle, torch.zeros(90), torch.zeros(90)], dim=-1))


SHOWING: dict[str, Motion] = {
    "walk": walk(BODY, seconds=3.0),
    "run": walk(BODY, seconds=3.0, speed=3.0),
    "jump": jumping(),
    "turn left": turning(0.5),
    "turn right": turning(-0.5),
    "sit down": sitting(),
    "wave the right hand": waving("right"),
    "kick with the left leg": kicking("left"),
}


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_what_shows_a_thing_passes_and_standing_does_not(name: str) -> None:
    assert shows(name, SHOWING[name])
    assert not shows(name, standing())


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_other_things_do_not_pass(name: str) -> None:
    passed = {other for other, motion in SHOWING.items() if shows(name, motion)}
    assert passed <= {name} | ({"run"} if name == "walk" else set()), passed
    assert name == "walk" or passed == {name}


@pytest.mark.parametrize("name", ["turn left", "wave the right hand", "kick with the left leg"])
def test_the_mirror_image_is_the_other_side(name: str) -> None:
    motion = SHOWING[name]
    assert not shows(name, mirror(motion))
    assert shows(name, mirror(mirror(motion)))


@settings(max_examples=5)
@given(st.floats(-3.0, 3.0), st.floats(-5.0, 5.0))
def test_place_and_heading_do_not_matter(yaw: float, x: float) -> None:
    for name, motion in SHOWING.items():
        assert shows(name, place(motion, (x, 1.0), yaw)), name


def test_a_floor_captured_too_high_is_no_jump() -> None:
    assert Body(lifted(torch.full((90,), 0.2))).airborne == 0.0
    assert Body(lifted(0.3 * (TIME / 3))).airborne == 0.0  # an escalator
    assert Body(jumping()).airborne == pytest.approx(0.43, abs=0.07)  # of 0.5 s in the air, less the first and last centimetres
    box = lifted(torch.where((TIME > 1) & (TIME < 1.8), 0.3, 0.0))
    assert Body(box).airborne < 0.2


def test_numbers_of_a_body() -> None:
    body = Body(walk(BODY, seconds=3.0, speed=1.2))
    assert float(body.speed.median()) == pytest.approx(1.2, abs=0.05)
    assert body.forward == pytest.approx(1.2, abs=0.05)
    assert body.distance == pytest.approx(1.2 * 89 / 30, abs=0.1)
    assert float(Body(turning(3.0)).yaw[-1]) == pytest.approx(3.0 * 89 / 30, abs=1e-3)  # beyond half a turn
    waves = Body(waving("right"))
    assert waves.swings("right_hand", "right_shoulder", 0.08) == pytest.approx(18, abs=2)  # 9 periods
    assert waves.swings("left_hand", "left_shoulder", 0.08) == 0
    assert waves.path("right_hand", "right_shoulder") > 100 * waves.path("left_hand", "left_shoulder")
    assert math.degrees(float(Body(sitting()).thighs.max())) == pytest.approx(85, abs=5)
    assert longest_run(torch.tensor([True, True, False, True])) == 2


def test_one_frame_is_no_error() -> None:
    for name in BEHAVIOURS:
        assert not shows(name, standing()[:1])


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("walk", "a person walks forward.", True),
        ("walk", "a man walks forward, then sits down", False),
        ("run", "someone jogs in a circle", True),
        ("jump", "a person does jumping jacks", False),
        ("turn left", "he turns around to the left", True),
        ("turn left", "he turns his head to the left", False),
        ("turn right", "turning 90 degrees right", True),
        ("turn right", "turns left then right", False),
        ("sit down", "A person sits down.", True),
        ("wave the right hand", "waves with his right hand", True),
        ("wave the right hand", "waves with both hands, right hand first", False),
        ("kick with the left leg", "kicks hard with left foot", True),
        ("kick with the left leg", "kicks with the right leg", False),
    ],
)
def test_what_captions_say(name: str, text: str, said: bool) -> None:
    assert is_said(name, text) is said


def test_checks_are_measured_on_data(held_out_walks: Dataset) -> None:
    found = measure_checks(held_out_walks)
    assert (found["walk"].said, found["walk"].passed, found["walk"].others_passed) == (2, 1.0, 1.0)  # one sentence, and its mirror image
    assert (found["kick with the left leg"].said, found["kick with the left leg"].passed, found["kick with the left leg"].others_passed) == (0, None, 0.0)
    assert measure_checks(held_out_walks, ("val",))["run"].others_passed is None
