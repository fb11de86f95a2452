"""The view of a motion: blind to place, heading and smoothed root; turned, mirrored and padded as motions are."""

from __future__ import annotations

import math

import pytest
import torch

import bunraku
from bunraku.generator.features import FeatureLayout, encode
from bunraku.kinematics.edit import mirror, place
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.walk import walk
from bunraku.retrieval.view import mirror_view, motion_view, view_width

LAYOUT = FeatureLayout(skeleton=bunraku.skeleton("soma30"))


def turning() -> Motion:
    """A walk whose arms and body are anything but alike on both sides, along a curve."""
    motion = walk(LAYOUT.skeleton, seconds=2.0)
    frames = [place(motion[i : i + 1], (0.0, 0.0), 0.01 * i) for i in range(len(motion))]
    return bunraku.join(frames)


MOTION = turning()


@pytest.mark.parametrize("yaw", [0.0, 1.0, math.pi, -2.5])
def test_neither_place_nor_heading_matters(yaw: float) -> None:
    moved = motion_view(LAYOUT, encode(LAYOUT, place(MOTION, (3.0, -2.0), yaw)))
    torch.testing.assert_close(moved, motion_view(LAYOUT, encode(LAYOUT, MOTION)), atol=2e-3, rtol=1e-3)


def test_the_smoothed_root_does_not_matter() -> None:
    hips = FeatureLayout(skeleton=LAYOUT.skeleton, smooth=False)
    torch.testing.assert_close(motion_view(hips, encode(hips, MOTION)), motion_view(LAYOUT, encode(LAYOUT, MOTION)), atol=1e-4, rtol=1e-4)


def test_the_turn_is_the_body_s() -> None:
    view = motion_view(LAYOUT, encode(LAYOUT, MOTION))
    hips = walk(LAYOUT.skeleton, seconds=2.0)
    straight = motion_view(LAYOUT, encode(LAYOUT, hips))
    assert view.shape == (60, view_width(LAYOUT))
    assert float((view[:-1, 0] - straight[:-1, 0]).mean()) == pytest.approx(0.3, abs=1e-3)  # 0.01 rad a frame, 30 frames a second
    assert view[-1, 0] == view[-2, 0]


def test_hands_are_where_they_are_seen_from_the_hips() -> None:
    view = motion_view(LAYOUT, encode(LAYOUT, MOTION))
    p = view[:, 1 : 1 + 90].unflatten(-1, (30, 3))
    assert p[:, 0, [0, 2]].abs().max() < 1e-6
    assert (p[:, LAYOUT.skeleton.role("left_hand"), 0] > 0.05).all()  # left is +X whichever way the body faces
    assert (p[:, LAYOUT.skeleton.role("right_hand"), 0] < -0.05).all()


def test_the_mirror_image_is_that_of_the_mirrored_motion() -> None:
    seen = mirror_view(LAYOUT.skeleton, motion_view(LAYOUT, encode(LAYOUT, MOTION)))
    true = motion_view(LAYOUT, encode(LAYOUT, mirror(MOTION)))
    away = (seen - true).abs()
    assert away[:, :91].max() < 0.02  # the two sides of the skeleton differ by millimetres
    assert away[:, 91:181].mean() < 0.02
    assert torch.equal(mirror_view(LAYOUT.skeleton, seen), motion_view(LAYOUT, encode(LAYOUT, MOTION)))
    assert torch.equal(seen[:, -4:], true[:, -4:])


def test_padding_changes_nothing() -> None:
    features = encode(LAYOUT, MOTION)
    padded = torch.cat([features, torch.randn(20, LAYOUT.width)])[None]
    valid = (torch.arange(80) < 60)[None]
    view = motion_view(LAYOUT, padded, valid)
    torch.testing.assert_close(view[0, :60], motion_view(LAYOUT, features))
    assert not view[0, 60:].any()


def test_one_frame_stands_still() -> None:
    assert float(motion_view(LAYOUT, encode(LAYOUT, MOTION[:1]))[0, 0]) == 0.0
