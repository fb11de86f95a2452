"""The report of a rig: what belongs to one joint has its colour, in the bones as on the skin."""

from __future__ import annotations

import numpy as np

import bunraku
from bunraku.picture.rig_sheet import joint_colours, rig_sheet


def test_joints_next_to_each_other_differ_in_colour() -> None:
    colours = joint_colours(60)
    assert colours.shape == (60, 3)
    assert colours.min() >= 0
    assert colours.max() <= 1
    assert np.linalg.norm(np.diff(colours, axis=0), axis=1).min() > 0.2


def test_left_and_right_hands_are_seen_apart() -> None:
    character = bunraku.mannequin(bunraku.skeleton("smplx22"))
    sheet = np.asarray(rig_sheet(character, (160, 200)), np.float64)
    assert sheet.shape == (200, 4 * 160 + 9, 3)
    skin = sheet[:, 163:323]  # the second picture: whose skin, from the front
    left, right = (skin[:, side].reshape(-1, 3) for side in (slice(80, None), slice(None, 80)))
    vivid = [pixels[np.ptp(pixels, axis=1) > 40].mean(0) for pixels in (left, right)]
    assert np.abs(vivid[0] - vivid[1]).max() > 5
    assert np.ptp(skin, axis=-1).max() > 60  # in colour
