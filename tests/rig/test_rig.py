"""Rigs and characters refuse what does not fit together, and skin tells where feet end."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.geometry.primitives import capsule
from bunraku.kinematics import library
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import exp_quat, quat_to_matrix, yaw_quat
from bunraku.rig.character import Character
from bunraku.rig.rig import rig_for, with_toe_tips


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


def shod(toe: bool) -> tuple[Skeleton, Tensor, Tensor]:
    """SMPL-X with or without toe roles, turned to face +X, its feet in boxes that reach 0.25 m ahead of the ankle."""
    body = library.skeleton("smplx22")
    feet = ("left_ankle", "right_ankle")
    keep = [j for j, name in enumerate(body.joints) if toe or name not in ("left_foot", "right_foot")]
    body = Skeleton(
        name="shod",
        joints=tuple(body.joints[j] for j in keep),
        parents=tuple(-1 if body.parents[j] < 0 else keep.index(body.parents[j]) for j in keep),
        offsets=body.offsets[keep] @ quat_to_matrix(yaw_quat(torch.tensor(torch.pi / 2))).T,
        roles={role: keep.index(j) for role, j in body.roles.items() if j in keep},
    )
    rest = rest_poses(body).p_world_joint
    vertices = torch.cat([rest[body.index[foot]] + torch.tensor([[0.25, -0.04, 0.0], [-0.05, -0.04, 0.0], [0.1, 0.1, 0.0]]) for foot in feet])
    weights = torch.zeros(6, len(body))
    for foot, rows in zip(feet, (slice(0, 3), slice(3, 6)), strict=True):
        weights[rows, body.index[foot]] = 1
    return body, vertices, weights


def test_skin_tells_where_a_foot_of_one_joint_ends() -> None:
    body, vertices, weights = shod(toe=False)
    tips = with_toe_tips(body, vertices, weights).tips
    assert set(tips) == {body.role("left_foot"), body.role("right_foot")}
    for tip in tips.values():
        assert tip == pytest.approx((0.25, -0.04, 0.0), abs=1e-6)


def test_feet_that_know_their_end_keep_it() -> None:
    body, vertices, weights = shod(toe=True)
    assert with_toe_tips(body, vertices, weights).tips == {}  # no skin of their own on the toes, and no guess
    body, vertices, weights = shod(toe=False)
    known = replace(body, tips={body.role("left_foot"): (0.1, 0.0, 0.0)})
    assert with_toe_tips(known, vertices, weights).tips[body.role("left_foot")] == (0.1, 0.0, 0.0)
