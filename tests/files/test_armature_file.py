"""Skeletons placed by hand: JSON and RigNet's text, there and back, and a sentence for every mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import bunraku
from bunraku.errors import BunrakuError
from bunraku.files.armature_file import load_armature, save_armature
from bunraku.files.static_mesh import Space
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.library import skeleton, skeleton_names

JOINTS = [
    {"name": "hand", "parent": "arm", "head": [1, 1, 0], "tail": [1.2, 1, 0], "role": "left_hand"},
    {"name": "arm", "parent": "body", "head": [0.5, 1, 0], "tail": [1, 1, 0]},
    {"name": "body", "parent": None, "head": [0, 1, 0]},
]
RIGNET = "joints arm 0.5 1 0\njoints body 0 1 0\njoints hand 1 1 0\nroot body\nhier body arm\nhier arm hand\nskin 0 arm 0.5 body 0.5\n"


def write(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize("name", ["arm.json", "arm.txt"])
def test_joints_are_where_they_were_placed(tmp_path: Path, name: str) -> None:
    body = load_armature(write(tmp_path, name, RIGNET if name.endswith("txt") else {"joints": JOINTS}))
    assert (body.name, body.joints, body.parents) == ("arm", ("body", "arm", "hand"), (-1, 0, 1))
    assert rest_poses(body).p_world_joint.tolist() == [[0, 1, 0], [0.5, 1, 0], [1, 1, 0]]
    if name.endswith("json"):
        assert dict(body.tips) == {2: pytest.approx((0.2, 0, 0))}  # the arm's tail is the hand's head and says nothing new
        assert body.roles["left_hand"] == 2


def test_they_share_the_space_of_the_mesh(tmp_path: Path) -> None:
    body = load_armature(write(tmp_path, "arm.json", {"joints": JOINTS}), Space(unit=0.01, up="z"))
    assert torch.allclose(rest_poses(body).p_world_joint[2], torch.tensor([0.01, 0.0, -0.01]))
    save_armature(body, tmp_path / "back.json", Space(unit=0.01, up="z"))
    rows = {row["name"]: row for row in json.loads((tmp_path / "back.json").read_text())["joints"]}
    assert rows["hand"] == {**JOINTS[0], "head": pytest.approx([1, 1, 0], abs=1e-6), "tail": pytest.approx([1.2, 1, 0], abs=1e-6)}


@pytest.mark.parametrize("name", skeleton_names())
def test_written_skeletons_come_back(tmp_path: Path, name: str) -> None:
    body = skeleton(name)
    save_armature(body, tmp_path / "s.json")
    back = load_armature(tmp_path / "s.json")
    assert set(back.joints) == set(body.joints)
    order = [back.joints.index(joint) for joint in body.joints]
    assert torch.allclose(rest_poses(back).p_world_joint[order], rest_poses(body).p_world_joint, atol=1e-5)
    assert {role: back.joints[joint] for role, joint in back.roles.items()} == {role: body.joints[joint] for role, joint in body.roles.items()}


def test_skeletons_of_other_files(tmp_path: Path) -> None:
    motion = bunraku.walk(skeleton("soma30"), seconds=0.2)
    for name in ("walk.glb", "walk.bvh", "walk.npz"):
        bunraku.save_motion(motion, tmp_path / name)
        assert len(load_armature(tmp_path / name)) == 30


def test_a_glb_of_bare_nodes(tmp_path: Path) -> None:
    nodes = [{"name": "a", "children": [1], "translation": [0, 1, 0]}, {"name": "b", "translation": [0, 0.5, 0]}, {"name": "eye", "camera": 0}]
    camera = {"type": "perspective", "perspective": {"yfov": 1, "znear": 0.1}}
    gltf = {"asset": {"version": "2.0"}, "nodes": nodes, "scenes": [{"nodes": [0, 2]}], "scene": 0, "cameras": [camera]}
    body = load_armature(write(tmp_path, "bones.gltf", gltf))
    assert body.joints == ("a", "b")
    assert rest_poses(body).p_world_joint[1].tolist() == [0, 1.5, 0]


def joints(**changes: object) -> dict[str, object]:
    return {"joints": [{**JOINTS[1], **changes}, *JOINTS[2:]]}


BAD = {
    "not.json": ("{", "cannot be read"),
    "list.json": ([1], "needs a list of joints"),
    "none.json": ({"joints": []}, "needs a list of joints"),
    "name.json": (joints(name=3), "without a name"),
    "head.json": (joints(head=[1, 2]), "three numbers"),
    "nan.json": ('{"joints": [{"name": "a", "head": [NaN, 0, 0]}]}', "three numbers"),
    "tail.json": (joints(tail="up"), "the tail of 'arm'"),
    "lost.json": (joints(parent="leg"), "no such joint"),
    "kind.json": (joints(parent=4), "null for the root"),
    "twice.json": ({"joints": [*JOINTS, JOINTS[0]]}, "two joints named 'hand'"),
    "ring.json": ({"joints": [{**JOINTS[1], "parent": "hand"}, *JOINTS[::2]]}, "its own ancestor"),
    "roots.json": (joints(parent=None), "2 roots"),
    "role.json": (joints(role="tentacle"), "tentacle"),
    "empty.txt": ("", "no lines 'joints"),
    "words.txt": ("joints a 0 0 zero\n", "three numbers"),
    "other.txt": ("hello\n", "is none of"),
    "unplaced.txt": ("joints a 0 0 0\nhier a b\n", "speaks of the joint 'b'"),
    "root.txt": (RIGNET.replace("root body", "root hand"), "calls 'hand' the root"),
    "bare.gltf": ({"asset": {"version": "2.0"}, "nodes": []}, "holds no skeleton"),
    "arm.png": ("", "no known suffix"),
}


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_said_in_words(tmp_path: Path, name: str) -> None:
    content, said = BAD[name]
    with pytest.raises(BunrakuError, match=said):
        load_armature(write(tmp_path, name, content))
