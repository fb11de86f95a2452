"""Characters from a mesh and a rig alone: they come back as they were, and a library skeleton is recognised."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from gltf_motions import assert_same, dancing
from gltf_oracles import validator_errors
from small_gltf import glb_bytes, read_glb

from bunraku.files.gltf import load_character, load_clip, save_character
from bunraku.files.gltf.build import strongest
from bunraku.geometry.mesh import Material, Mesh
from bunraku.geometry.primitives import capsule
from bunraku.kinematics import library
from bunraku.kinematics.motion import rest_motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import exp_quat
from bunraku.rig.character import Character
from bunraku.rig.mannequin import mannequin
from bunraku.rig.rig import rig_for


def two_colours() -> Character:
    offsets = torch.tensor([[0.1, 0.2, 0.3], [0, 1.0, 0], [0, 0.7, 0.1]])
    skeleton = Skeleton(name="post", joints=("foot", "knee", "top"), parents=(-1, 0, 1), offsets=offsets, tips={2: (0.0, 0.2, 0.0)})
    skeleton = replace(skeleton, rest_quats=exp_quat(torch.randn(3, 3) * 0.3), roles={"left_foot": 0})
    body = capsule(torch.zeros(3), torch.tensor([0, 2.0, 0]), 0.3, 0.2, segments=6, rings=2)
    weights = torch.rand(len(body.vertices), 3) + 0.01
    mesh = Mesh(
        vertices=body.vertices,
        faces=body.faces,
        normals=body.normals,
        uvs=torch.rand(len(body.vertices), 2),
        colours=torch.rand(len(body.vertices), 3),
        face_materials=(torch.arange(len(body.faces)) % 2),
        materials=(Material(name="a", base_color=(0.25, 0.5, 0.75, 1.0)), Material(name="b", image=b"\x89PNG\r\n\x1a\n....", double_sided=True)),
    )
    return Character(name="post", mesh=mesh, rig=rig_for(skeleton, weights / weights.sum(1, keepdim=True)))


def test_a_character_from_nothing_comes_back(tmp_path: Path) -> None:
    character = two_colours()
    motion = dancing(character.skeleton)
    save_character(character, tmp_path / "post.glb", motion, "sway")
    again = load_character(tmp_path / "post.glb")
    assert again.clips == ("sway",)
    assert_same(motion, load_clip(again))
    for name in ("vertices", "normals", "uvs", "colours"):
        torch.testing.assert_close(getattr(again.mesh, name), getattr(character.mesh, name), atol=1e-6, rtol=0)
    order = torch.argsort(character.mesh.face_materials, stable=True)
    assert torch.equal(again.mesh.faces, character.mesh.faces[order])
    assert torch.equal(again.mesh.face_materials, character.mesh.face_materials[order])
    assert again.mesh.materials[:2] == character.mesh.materials
    torch.testing.assert_close(again.rig.weights, character.rig.weights, atol=1e-6, rtol=0)
    torch.testing.assert_close(again.rig.T_world_joint_rest, character.rig.T_world_joint_rest, atol=1e-6, rtol=0)
    assert again.skeleton.name == "post"
    assert dict(again.skeleton.roles) == {"left_foot": 0}
    assert again.skeleton.tips[2] == pytest.approx((0, 0.2, 0), abs=1e-6)


@pytest.mark.parametrize("name", ["g1", "soma30", "smplx22"])
def test_library_skeletons_are_recognised(tmp_path: Path, name: str) -> None:
    motion = dancing(library.skeleton(name))
    motion = replace(motion, translations=None)
    save_character(mannequin(motion.skeleton), tmp_path / "a.glb", motion)
    clip = load_clip(load_character(tmp_path / "a.glb"))
    assert clip.skeleton is library.skeleton(name)
    assert clip.translations is None
    assert_same(motion, clip)


def test_a_body_without_roles_stays_without(tmp_path: Path) -> None:
    body = mannequin(replace(library.skeleton("soma30"), name="nobody", roles={}))
    save_character(body, tmp_path / "out.glb")
    assert dict(load_character(tmp_path / "out.glb").skeleton.roles) == {}


def test_a_renamed_joint_is_no_library_skeleton(tmp_path: Path) -> None:
    save_character(mannequin(library.skeleton("smplx22")), tmp_path / "a.glb")
    content, data = read_glb((tmp_path / "a.glb").read_bytes())
    content["nodes"][content["skins"][0]["joints"][5]]["translation"][1] -= 0.1
    (tmp_path / "b.glb").write_bytes(glb_bytes(content, data))
    assert load_character(tmp_path / "b.glb").skeleton is library.skeleton("smplx22")  # the bind pose still says so
    content["nodes"][content["skins"][0]["joints"][5]]["name"] = "other"
    (tmp_path / "b.glb").write_bytes(glb_bytes(content, data))
    assert load_character(tmp_path / "b.glb").skeleton is not library.skeleton("smplx22")


def test_the_four_strongest_weights_are_kept() -> None:
    joints, weights = strongest(torch.tensor([[0.1, 0.2, 0.05, 0.3, 0.3, 0.05], [1.0, 0, 0, 0, 0, 0]]))
    assert sorted(joints[0].tolist()) == [0, 1, 3, 4]
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-6)
    assert joints[1].tolist() == [0, 0, 0, 0]
    assert strongest(torch.eye(300))[0].dtype == np.uint16


@pytest.mark.parametrize("meta", [[], {"skeleton": 3}, {"skeleton": "post", "roles": {"left_foot": ["knee"], "hips": None, "head": 2, "pilot": "top"}}])
def test_junk_where_the_skeleton_is_remembered_is_passed_over(tmp_path: Path, meta: object) -> None:
    save_character(two_colours(), tmp_path / "a.glb")
    content, data = read_glb((tmp_path / "a.glb").read_bytes())
    content["skins"][0]["extras"]["bunraku"] = meta
    (tmp_path / "a.glb").write_bytes(glb_bytes(content, data))
    assert not load_character(tmp_path / "a.glb").skeleton.roles


@pytest.mark.oracle
def test_the_validator_finds_no_error(tmp_path: Path) -> None:
    plain = replace(two_colours(), mesh=replace(two_colours().mesh, materials=(), face_materials=None))  # its PNG is no image
    save_character(plain, tmp_path / "plain.glb", dancing(plain.skeleton))
    body = mannequin(library.skeleton("soma77"))
    save_character(body, tmp_path / "body.glb", rest_motion(body.skeleton, 3))
    found = validator_errors(*sorted(tmp_path.iterdir()))
    assert len(found) == 2
    assert not any(found.values()), found
