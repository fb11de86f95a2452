"""The skeletons that come with the package: complete, standing upright on the ground, and facing +Z."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from bunraku.errors import BadValue
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.library import raw, skeleton, skeleton_names
from bunraku.kinematics.skeleton import ROLES

SIZES = {"soma30": 30, "soma77": 77, "g1": 34, "smplx22": 22, "cmu23": 23}
G1_LACKS = {"neck", "head", "left_collar", "right_collar"}


def test_which_skeletons_there_are() -> None:
    assert {name: len(skeleton(name)) for name in skeleton_names()} == SIZES
    assert skeleton("g1") is skeleton("g1")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(BadValue, match=r"no built-in skeleton 'smpl'.*cmu23, g1, smplx22, soma30, soma77"):
        skeleton("smpl")


@pytest.mark.parametrize("name", sorted(SIZES))
def test_roles_are_complete_and_distinct(name: str) -> None:
    s = skeleton(name)
    assert set(ROLES) - set(s.roles) == (G1_LACKS if name == "g1" else set())
    assert len(set(s.roles.values())) == len(s.roles)
    assert s.name == name


@pytest.mark.parametrize("name", sorted(SIZES))
def test_the_rest_pose_stands_on_the_ground_upright_with_left_at_plus_x(name: str) -> None:
    s = skeleton(name)
    p = rest_poses(s).p_world_joint
    at = {role: p[joint] for role, joint in s.roles.items()}
    assert 0.5 < float(at["hips"][1]) < 1.3
    assert -0.01 <= float(p[:, 1].min()) < 0.1
    for part in ("hip", "knee", "foot", "toe", "shoulder", "elbow", "hand"):
        left, right = at[f"left_{part}"], at[f"right_{part}"]
        assert float(left[0]) > 0.02 > -0.02 > float(right[0])
        assert torch.allclose(left * torch.tensor([-1.0, 1.0, 1.0]), right, atol=0.06), part
    for side in ("left", "right"):
        heights = [float(at[f"{side}_{part}"][1]) for part in ("hip", "knee", "foot", "toe")]
        assert heights == sorted(heights, reverse=True)
        assert float(at[f"{side}_toe"][2] - at[f"{side}_foot"][2]) > 0.02  # toes point to +Z
    assert float(at["chest"][1]) > float(at["spine"][1]) >= float(at["hips"][1]) - 0.05


@pytest.mark.parametrize("name", sorted(SIZES))
def test_roles_follow_the_tree(name: str) -> None:
    s = skeleton(name)
    chains = [("hips", "spine", "chest")]
    for side in ("left", "right"):
        chains += [("hips", f"{side}_hip", f"{side}_knee", f"{side}_foot", f"{side}_toe"), ("chest", f"{side}_shoulder", f"{side}_elbow", f"{side}_hand")]
    for chain in chains:
        for above, below in pairwise(chain):
            assert s.role(above) in s.ancestors(s.role(below))[1:], (above, below)


def test_rest_turns_are_unit_quaternions() -> None:
    for name in SIZES:
        norms = skeleton(name).rest_quats.norm(dim=-1)
        torch.testing.assert_close(norms, torch.ones_like(norms))


def test_the_robot_has_29_hinges_with_unit_axes_and_ordered_limits() -> None:
    hinges = skeleton("g1").hinges
    assert hinges is not None
    assert len(hinges.joints) == 29
    assert set(hinges.joints) <= set(skeleton("g1").joints)
    torch.testing.assert_close(hinges.axes.norm(dim=-1), torch.ones(29))
    assert bool((hinges.lower < 0).all())
    assert bool((hinges.upper > 0).all())
    assert skeleton("soma30").hinges is None


def test_soma30_is_a_part_of_soma77() -> None:
    small, large = skeleton("soma30"), skeleton("soma77")
    assert set(small.joints) <= set(large.joints)
    for role in ROLES:
        assert small.joints[small.role(role)] == large.joints[large.role(role)]


def test_data_beside_the_tree_is_kept() -> None:
    assert "hinges" in raw("g1")
    assert len(raw("soma77")["relaxed_hands_wxyz"]) == 77
