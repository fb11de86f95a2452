"""Rigs and characters refuse what does not fit together."""

from __future__ import annotations

import pytest
import torch

from bunraku.errors import BadValue
from bunraku.geometry.primitives import capsule
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import exp_quat
from bunraku.rig.character import Character
from bunraku.rig.rig import rig_for


def arm() -> Skeleton:
    offsets = torch.tensor([[0, 1.0, 0], [0.3, 0, 0], [0.25, 0, 0.1]])
    return Skeleton(name="arm", joints=("a", "b", "c"), parents=(-1, 0, 1), offsets=offsets, rest_quats=exp_quat(torch.randn(3, 3)))


def test_rest_transforms_are_the_rest_pose() -> None:
    skeleton = arm()
    rig = rig_for(skeleton, torch.tensor([[0.25, 0.75, 0.0]]))
    rest = rest_poses(skeleton)
    torch.testing.assert_close(rig.T_world_joint_rest[:, :3, :3], rest.R_world_joint)
    torch.testing.assert_close(rig.T_world_joint_rest[:, :3, 3], rest.p_world_joint)
    assert rig.T_world_joint_rest[:, 3].tolist() == [[0, 0, 0, 1]] * 3


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([[0.5, 0.5]], "2 columns"),
        ([[0.5, 0.4, 0.0]], "off by 0.1"),
        ([[1.5, -0.5, 0.0]], "not negative"),
        ([[float("nan"), 1.0, 0.0]], "finite"),
    ],
)
def test_weights_that_do_not_fit_are_refused(unchecked_shapes: None, weights: list[list[float]], message: str) -> None:
    with pytest.raises(BadValue, match=message):
        rig_for(arm(), torch.tensor(weights))


def test_a_character_has_weights_for_every_vertex(unchecked_shapes: None) -> None:
    mesh = capsule(torch.zeros(3), torch.tensor([0, 1.0, 0]), 0.1, 0.1)
    rig = rig_for(arm(), torch.tensor([[1.0, 0, 0]]))
    with pytest.raises(BadValue, match="weights for 1"):
        Character(name="stick", mesh=mesh, rig=rig)
    whole = Character(name="stick", mesh=mesh, rig=rig_for(arm(), torch.tensor([[1.0, 0, 0]]).expand(len(mesh.vertices), 3)))
    assert whole.skeleton.joints == ("a", "b", "c")
    assert repr(whole) == f"Character('stick', {len(mesh.vertices)} vertices, 3 joints, 0 clips)"
