"""The built-in walk does what it says: speed, contacts without skate, alternating legs, whatever the body."""

from __future__ import annotations

import pytest
import torch

from bunraku.errors import BadValue
from bunraku.evaluate.quality import check
from bunraku.kinematics.contacts import contact_joints
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.walk import walk


@pytest.mark.parametrize("name", ["soma30", "soma77", "smplx22", "cmu23"])
def test_walks_at_the_speed_that_was_asked(name: str) -> None:
    motion = walk(skeleton(name), seconds=3.0, speed=1.1)
    hips = forward_kinematics(motion).p_world_joint[:, motion.skeleton.role("hips")]
    assert abs(float((hips[-1] - hips[0])[2]) / (motion.seconds - 1 / motion.fps) - 1.1) < 0.03
    assert hips[:, 0].abs().max() < 0.05
    report = check(motion)
    assert report["skate"] < 2.0
    assert abs(report["phase"] - 0.5) < 0.02
    assert report["penetration_max"] < 5.0
    assert report["bend_frames"] == 0
    assert report["pops"] == 0


def test_a_foot_that_stands_flat_does_not_move() -> None:
    motion = walk(skeleton("soma30"))
    assert motion.contacts is not None
    _, joints = contact_joints(motion.skeleton)
    p = forward_kinematics(motion).p_world_joint[:, joints]
    flat = motion.contacts[1:] & motion.contacts[:-1]
    for foot in (0, 2):
        assert flat[:, foot].sum() > 20
        assert (p[1:, foot] - p[:-1, foot]).norm(dim=-1)[flat[:, foot]].max() * motion.fps < 0.05


def test_the_walk_repeats_after_one_cycle() -> None:
    motion = walk(skeleton("soma30"), seconds=3.0, fps=50.0)
    cycle = 54  # frames of 1.08 s at 50 fps
    local = forward_kinematics(motion).p_world_joint - motion.root_position[:, None]
    torch.testing.assert_close(local[20 : 20 + cycle // 2], local[20 + cycle : 20 + cycle + cycle // 2], atol=0.01, rtol=0)


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e6])
def test_absurd_lengths_are_refused(seconds: float) -> None:
    with pytest.raises(BadValue, match="cannot be made"):
        walk(skeleton("soma30"), seconds=seconds)
