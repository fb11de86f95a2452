"""Joints moved by hand: what is changed moves that joint alone, and mistakes get a sentence."""

from __future__ import annotations

import pytest
import torch

from bunraku.errors import BadValue
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.library import skeleton
from bunraku.rig.fit import nudged

BODY = skeleton("soma30")


def test_places_where_joints_are_change_nothing() -> None:
    rest = rest_poses(BODY).p_world_joint
    again = nudged(BODY, {name: (float(x), float(y), float(z)) for name, (x, y, z) in zip(BODY.joints, rest.tolist(), strict=True)})
    torch.testing.assert_close(rest_poses(again).p_world_joint, rest, atol=1e-5, rtol=0)
    assert again.roles == BODY.roles


def test_one_joint_moves_alone() -> None:
    joint, place = BODY.role("left_knee"), (0.2, 0.5, 0.1)
    moved = nudged(BODY, {BODY.joints[joint]: place})
    before, after = rest_poses(BODY), rest_poses(moved)
    others = torch.arange(len(BODY)) != joint
    torch.testing.assert_close(after.p_world_joint[joint], torch.tensor(place))
    torch.testing.assert_close(after.p_world_joint[others], before.p_world_joint[others], atol=1e-5, rtol=0)
    torch.testing.assert_close(after.R_world_joint, before.R_world_joint, atol=1e-5, rtol=0)


def test_a_joint_that_is_not_there() -> None:
    with pytest.raises(BadValue, match=r"no joint 'Hipps' to move in skeleton 'soma30'.* did you mean 'Hips'"):
        nudged(BODY, {"Hipps": (0.0, 0.0, 0.0)})
