"""The joint tree: what it derives, and the sentence each broken tree gets."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from bunraku.errors import BunrakuError, RoleMissing, SkeletonProblem
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.skeleton import CONTACT_ROLES, ROLES, Skeleton


def tree(joints: str, parents: list[int], **more: object) -> Skeleton:
    names = tuple(joints.split())
    return Skeleton(name="tree", joints=names, parents=tuple(parents), **{"offsets": torch.zeros(len(names), 3), **more})


@pytest.mark.parametrize(
    ("joints", "parents", "more", "words"),
    [
        ("a b c", [-1, 2, 1], {}, ["'b'", "cycle"]),
        ("a b c", [1, 2, 0], {}, ["0 roots", "one root"]),
        ("a b c", [-1, 1, 0], {}, ["'b'", "cycle"]),  # its own parent
        ("a b c", [-1, -1, 0], {}, ["2 roots", "a, b", "one root"]),
        ("a b a", [-1, 0, 1], {}, ["two joints named 'a'", "must differ"]),
        ("", [], {}, ["no joints"]),
        ("a b", [-1], {}, ["2 joints", "1 parents"]),
        ("a b", [-1, 0], {"offsets": torch.zeros(3, 3)}, ["2 joints", "(3, 3)", "one row of 3"]),
        ("a b", [-1, 0], {"offsets": torch.tensor([[0.0, 0, 0], [0, float("nan"), 0]])}, ["not finite"]),
        ("a b", [-1, 0], {"offsets": torch.tensor([[0.0, 0, 0], [0, float("inf"), 0]])}, ["not finite"]),
        ("a b", [-1, 0], {"rest_quats": torch.tensor([[1.0, 0, 0, 0]])}, ["2 joints", "(1, 4)", "row of 4"]),
        ("a b", [-1, 0], {"rest_quats": torch.full((2, 4), float("nan"))}, ["finite"]),
    ],
)
def test_a_tree_that_is_no_tree_gets_its_sentence(unchecked_shapes: None, joints: str, parents: list[int], more: dict, words: list[str]) -> None:
    with pytest.raises(SkeletonProblem) as problem:
        tree(joints, parents, **more)
    sentence = str(problem.value)
    assert all(word in sentence for word in words), sentence
    assert "\n" not in sentence


def test_child_before_parent_is_told_how_to_order() -> None:
    with pytest.raises(SkeletonProblem, match="from the root down"):
        tree("a b c", [-1, 2, 0])


def test_what_a_tree_derives() -> None:
    s = tree("root a b a1 a2 b1", [-1, 0, 0, 1, 3, 2])
    assert s.children == ((1, 2), (3,), (5,), (4,), (), ())
    assert s.index["a2"] == 4
    assert s.ancestors(4) == [4, 3, 1, 0]
    assert s.path(1, 4) == [1, 3, 4]
    assert s.path(2, 4) == []
    assert s.path(4, 4) == [4]
    assert [joints.tolist() for joints, _ in s.depth_levels] == [[1, 2], [3, 5], [4]]
    assert [rows.tolist() for _, rows in s.depth_levels] == [[0, 0], [0, 1], [0]]
    assert s.parents_or_self.tolist() == [0, 0, 0, 1, 3, 2]
    assert len(s) == 6


def test_every_level_names_the_row_of_the_parent_in_the_level_above() -> None:
    for name in ("soma77", "g1"):
        s = skeleton(name)
        above, seen = torch.tensor([0]), [0]
        for joints, rows in s.depth_levels:
            assert [s.parents[j] for j in joints.tolist()] == above[rows].tolist()
            above = joints
            seen += joints.tolist()
        assert sorted(seen) == list(range(len(s)))


def test_rest_turns_default_to_none_and_take_the_offsets_dtype() -> None:
    s = tree("a b", [-1, 0], offsets=torch.zeros(2, 3, dtype=torch.float64))
    assert s.rest_quats.dtype == torch.float64
    assert s.rest_quats.tolist() == [[1, 0, 0, 0], [1, 0, 0, 0]]


def test_one_joint_is_a_skeleton() -> None:
    s = tree("root", [-1])
    assert s.depth_levels == ()
    assert s.children == ((),)


def test_a_missing_role_names_what_there_is_and_the_next_step() -> None:
    s = tree("a b", [-1, 0], roles={"hips": 0})
    assert s.role("hips") == 0
    assert s.has("hips")
    assert not s.has("hips", "left_foot")
    with pytest.raises(RoleMissing, match=r"'left_foot'.*it has: hips.*roles file") as problem:
        s.role("left_foot")
    assert isinstance(problem.value, BunrakuError)
    with pytest.raises(RoleMissing, match="it has: none"):
        tree("a", [-1]).role("hips")


def test_roles_cannot_be_changed_in_place() -> None:
    with pytest.raises(TypeError):
        tree("a", [-1]).roles["hips"] = 0  # type: ignore[index]


def test_contact_columns_are_roles() -> None:
    assert set(CONTACT_ROLES) <= set(ROLES)
    assert CONTACT_ROLES == ("left_foot", "left_toe", "right_foot", "right_toe")


def test_a_skeleton_can_be_pickled_and_copied_with_what_holds_it() -> None:
    body = skeleton("g1")
    back = pickle.loads(pickle.dumps(body))
    assert (back.joints, back.parents, dict(back.roles), dict(back.tips)) == (body.joints, body.parents, dict(body.roles), dict(body.tips))
    assert torch.equal(back.rest_quats, body.rest_quats)
    assert torch.equal(back.hinges.axes, body.hinges.axes)
    assert copy.deepcopy([body])[0] is body
