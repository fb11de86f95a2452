"""Bones as segments: one for each joint at least, and none for what moves no skin."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bunraku.errors import BadValue
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.library import skeleton, skeleton_names
from bunraku.kinematics.skeleton import Skeleton
from bunraku.rig.bones import bones_of, moving_bones
from bunraku.rig.prune import prune


def chain(*joints: tuple[str, int, tuple[float, float, float]]) -> Skeleton:
    names, parents, offsets = zip(*joints, strict=True)
    return Skeleton(name="chain", joints=names, parents=parents, offsets=torch.tensor(offsets).float())


@pytest.mark.parametrize("name", skeleton_names())
def test_every_joint_has_bones_from_it_to_its_children(name: str) -> None:
    body = skeleton(name)
    bones, p = bones_of(body), rest_poses(body).p_world_joint
    assert set(bones.joints.tolist()) == set(range(len(body)))
    assert torch.equal(bones.heads, p[bones.joints])
    for joint, parent in enumerate(body.parents):
        if parent >= 0 and float((p[joint] - p[parent]).norm()) > 1e-4:
            assert ((bones.joints == parent) & ((bones.tails - p[joint]).norm(dim=1) < 1e-6)).any()


def test_leaves_go_on_and_tips_end_them() -> None:
    body = chain(("a", -1, (0, 1, 0)), ("b", 0, (0, 0.4, 0)), ("c", 1, (0, 0, 0)))
    assert bones_of(body).tails.tolist() == [pytest.approx([0, 1.4, 0]), pytest.approx([0, 1.4, 0]), pytest.approx([0, 1.6, 0])]
    tipped = replace(body, tips={2: (0.1, 0.0, 0.0)})
    assert bones_of(tipped).tails[2].tolist() == pytest.approx([0.1, 1.4, 0])
    assert bones_of(chain(("only", -1, (0, 1, 0)))).tails.tolist() == [[0, 1, 0]]


def test_handles_move_no_skin() -> None:
    body = chain(("root", -1, (0, 0, 0)), ("hips", 0, (0, 1, 0)), ("IK_foot.L", 0, (0, 0, 1)), ("spine", 1, (0, 0.3, 0)))
    assert set(moving_bones(body).joints.tolist()) == {0, 1, 3}
    legged = replace(body, roles={"hips": 1, "left_hip": 3, "right_hip": 2})  # a foot or thigh by role moves skin, whatever its name
    assert set(moving_bones(legged).joints.tolist()) == {1, 2, 3}
    assert len(moving_bones(chain(("ctrl", -1, (0, 0, 0))))) == 1


def test_an_end_ends_its_parents_bone() -> None:
    body = chain(("head", -1, (0, 1, 0)), ("head_end", 0, (0, 0.2, 0)))
    bones = moving_bones(body)
    assert bones.joints.tolist() == [0]
    assert bones.tails.tolist() == [pytest.approx([0, 1.2, 0])]
    assert len(moving_bones(chain(("end", -1, (0, 0, 0))))) == 1


def test_bone_weights_become_joint_weights() -> None:
    bones = bones_of(chain(("a", -1, (0, 0, 0)), ("b", 0, (1, 0, 0)), ("c", 0, (0, 1, 0))))
    assert bones.to_joints(torch.tensor([[0.1, 0.2, 0.3, 0.4]]), 3).tolist() == [pytest.approx([0.3, 0.3, 0.4])]


# --- pruning ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("influences", [1, 4, 8])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_pruned_rows_sum_to_exactly_one(influences: int, kind: torch.dtype) -> None:
    weights = torch.rand(500, 20, dtype=torch.float64).pow(4)
    pruned = prune((weights / weights.sum(1, keepdim=True)).to(kind), influences)
    assert pruned.dtype == kind
    assert int((pruned > 0).sum(1).max()) <= influences
    assert float(pruned.min()) >= 0
    assert float((pruned.double().sum(1) - 1).abs().max()) <= torch.finfo(kind).eps
    assert torch.equal(pruned.argmax(1), weights.to(kind).argmax(1))


def test_faint_weights_fade() -> None:
    weights = prune(torch.tensor([[0.94, 0.04, 0.02], [0.34, 0.33, 0.33], [0.01, 0.99, 0.0]], dtype=torch.float64))
    assert weights[0].tolist() == pytest.approx([0.94 / 0.97, 0.03 / 0.97, 0])
    assert weights[1].tolist() == pytest.approx([0.34, 0.33, 0.33])
    assert weights[2].tolist() == [0, 1, 0]
    many = torch.full((1, 100), 0.01)
    assert int((prune(many) > 0).sum()) == 4  # all are faint: the strongest stay


def test_no_influences_are_refused() -> None:
    with pytest.raises(BadValue, match="at least one"):
        prune(torch.eye(2), 0)
