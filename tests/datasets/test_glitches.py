"""Glitches put into a good walk are found and mended; a good walk is left alone."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from bunraku.datasets.glitches import repair
from bunraku.datasets.source import Heard, Recording
from bunraku.datasets.uniform import convert, standing_ground
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.walk import walk
from bunraku.math.rotations import exp_quat, quat_distance, quat_multiply

BODY = skeleton("cmu23")


@pytest.fixture(scope="module")
def good() -> Motion:
    return walk(BODY, seconds=6.0)


def flipped(motion: Motion, role: str, frames: slice, degrees: float = 170.0) -> Motion:
    turn = exp_quat(torch.tensor([0.0, math.radians(degrees), 0.0]))
    quats = motion.quats.clone()
    quats[frames, BODY.role(role)] = quat_multiply(quats[frames, BODY.role(role)], turn)
    return replace(motion, quats=quats)


def test_a_good_clip_is_left_alone(good: Motion) -> None:
    mended = repair(good)
    assert mended.pieces == (range(len(good)),)
    assert (mended.repaired, mended.breaks, mended.dropped) == (0, (), 0)
    assert torch.equal(mended.motion.quats, good.quats)


@pytest.mark.parametrize("role", ["left_foot", "right_hip", "left_shoulder", "right_toe", "head"])
@pytest.mark.parametrize("frames", [slice(60, 61), slice(60, 66)])
def test_a_spike_is_interpolated(good: Motion, role: str, frames: slice) -> None:
    mended = repair(flipped(good, role, frames))
    assert mended.pieces == (range(len(good)),)
    assert 0 < mended.repaired <= 12
    assert quat_distance(mended.motion.quats, good.quats).max() < math.radians(40)
    assert torch.equal(mended.motion.quats[:50], good.quats[:50])


def test_a_limb_that_stays_flipped_cuts_the_clip(good: Motion) -> None:
    mended = repair(flipped(good, "left_hip", slice(100, None)))
    assert mended.pieces == (range(100),)
    assert mended.dropped == len(good) - 100


def test_a_foot_that_is_backwards_all_along_is_not_trusted(good: Motion) -> None:
    assert repair(flipped(good, "right_foot", slice(None))).pieces == ()
    recording = Recording(name="r", split="train", captions=(Heard(text="A person walks."),))
    converted = convert(recording, flipped(good, "right_foot", slice(None)), "test")
    assert converted.clips == ()
    assert "too short or flipped" in converted.left_out[0][1]


def test_a_jump_of_the_whole_body_cuts_the_clip_and_its_captions(good: Motion) -> None:
    root = good.root_position.clone()
    root[90:] += torch.tensor([2.0, 0.0, 0.0])
    heard = (Heard(text="whole"), Heard(text="early", stop=2.0), Heard(text="late", start=4.0), Heard(text="label", weight=0.25))
    converted = convert(Recording(name="r", split="train", captions=heard), replace(good, root_position=root), "test")
    assert [(info.name, info.frames) for info, _ in converted.clips] == [("r#1", 90), ("r#2", 90)]
    assert [[(c.text, c.start, c.stop) for c in info.captions] for info, _ in converted.clips] == [
        [("early", 0, 60), ("label", 0, 90)],
        [("late", 30, 90), ("label", 0, 90)],
    ]
    assert any("the caption 'whole'" in why for _, why in converted.left_out)


@pytest.mark.parametrize("height", [-0.12, 0.0, 0.13, 0.6])
def test_feet_are_set_on_the_ground(good: Motion, height: float) -> None:
    raised = replace(good, root_position=good.root_position + torch.tensor([0.0, height, 0.0]))
    assert standing_ground(raised) == pytest.approx(height + standing_ground(good), abs=1e-4)
    converted = convert(Recording(name="r", split="train", captions=()), raised, "test")
    ((_, rows),) = converted.clips
    assert rows.contacts.any(dim=1).float().mean() > 0.8
    p = forward_kinematics(rows.motion(skeleton("soma30"), 30.0)).p_world_joint
    assert -0.005 < float(p[..., 1].min()) < 0.06


def test_a_clip_of_three_frames_is_left_out(good: Motion) -> None:
    converted = convert(Recording(name="r", split="train", captions=()), good[:3], "test")
    assert converted.clips == ()
    assert "3 frames; at least 4" in converted.left_out[0][1]


def test_other_frame_rates_become_30() -> None:
    fast = walk(BODY, seconds=2.0, fps=120.0)
    ((info, _),) = convert(Recording(name="r", split="train", captions=(Heard(text="x", start=1.0, stop=9.0),)), fast, "test").clips
    assert info.frames == 60
    assert (info.captions[0].start, info.captions[0].stop) == (30, 60)


def test_a_skeleton_without_feet_is_left_out_with_a_sentence(good: Motion) -> None:
    nameless = replace(good, skeleton=replace(good.skeleton, roles={}))
    converted = convert(Recording(name="r", split="train", captions=()), nameless, "test")
    assert converted.clips == ()
    assert "no feet" in converted.left_out[0][1] or "no joint" in converted.left_out[0][1]
