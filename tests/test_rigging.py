"""The door to rigging: a mesh and a skeleton in, a character out, and the document it came from kept."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import bunraku
from bunraku import api
from bunraku.cli import main
from bunraku.errors import BadValue, BunrakuError
from bunraku.files.gltf.document import read_document
from bunraku.files.gltf.static import read_static
from bunraku.geometry.mesh import Mesh
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.skeleton import Skeleton
from bunraku.rig.bones import bones_of
from bunraku.rig.skinning import skin_vertices

sys.path.append(str(Path(__file__).parent / "files"))
from gltf_oracles import blender_positions, validator_errors
from small_gltf import Writer

sys.path.append(str(Path(__file__).parent / "rig"))
from limbs import arm


def bones(count: int = 2) -> Skeleton:
    """Joints along the arm of `limbs.arm`."""
    offsets = torch.zeros(count, 3)
    offsets[1:, 0] = 2 / count
    return Skeleton(name="arm", joints=tuple(f"bone{i}" for i in range(count)), parents=tuple(range(-1, count - 1)), offsets=offsets)


def arm_mesh() -> Mesh:
    vertices, faces, _, _ = arm(2)
    return Mesh(vertices=torch.from_numpy(vertices).float(), faces=torch.from_numpy(faces))


def arm_obj(folder: Path) -> Path:
    mesh = arm_mesh()
    lines = [f"v {x} {y} {z}" for x, y, z in mesh.vertices.tolist()] + [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in mesh.faces.tolist()]
    path = folder / "arm.obj"
    path.write_text("\n".join(lines))
    return path


def arm_glb(folder: Path) -> Path:
    """The arm twice, once moved and turned, under a scaled node, with things that nobody knows."""
    mesh, writer = arm_mesh(), Writer()
    primitive = {"attributes": {"POSITION": writer.array(mesh.vertices)}, "indices": writer.array(mesh.faces.ravel(), "u2"), "material": 0}
    writer.json |= {
        "meshes": [{"primitives": [primitive], "extras": {"kept": [1, 2]}}],
        "materials": [{"name": "steel", "pbrMetallicRoughness": {"metallicFactor": 0.9, "roughnessFactor": 0.1}, "extras": {"shiny": True}}],
        "nodes": [
            {"children": [1, 2], "scale": [2, 2, 2], "name": "top"},
            {"mesh": 0, "scale": [0.5, 0.5, 0.5]},
            {"mesh": 0, "scale": [0.5, 0.5, 0.5], "translation": [0, 0.5, 0], "rotation": [1, 0, 0, 0]},
        ],
        "scenes": [{"nodes": [0]}],
        "scene": 0,
    }
    path = folder / "arm.glb"
    path.write_bytes(writer.glb())
    return path


def bend(character: object, degrees: float = 90) -> torch.Tensor:
    from bunraku.kinematics.motion import rest_motion
    from bunraku.math.rotations import exp_quat

    motion = rest_motion(character.skeleton)  # type: ignore[attr-defined]
    quats = motion.quats.clone()
    quats[:, 1] = exp_quat(torch.tensor([0.0, 0.0, np.radians(degrees)]).float())
    from dataclasses import replace

    return skin_vertices(character, replace(motion, quats=quats))[0]  # type: ignore[arg-type]


def test_a_bent_arm_bends() -> None:
    character = api.rig_character(arm_mesh(), bones())
    assert torch.equal(character.rig.weights.sum(1), torch.ones(len(character.mesh.vertices)))
    bent = bend(character)
    assert bent[:, 0].max() < 1.3  # the forearm points up
    assert bent[:, 1].max() > 1.1
    still = character.mesh.vertices[:, 0] < 0.5
    assert (bent - character.mesh.vertices)[still].norm(dim=1).max() < 0.02


@pytest.mark.parametrize("suffix", [".glb", ".gltf"])
@pytest.mark.parametrize("source", [arm_obj, arm_glb])
def test_what_is_written_is_read_back(tmp_path: Path, source: object, suffix: str) -> None:
    path = source(tmp_path)  # type: ignore[operator]
    character = api.rig_character(path, bones())
    bunraku.save_character(character, tmp_path / f"out{suffix}")
    back = bunraku.load_character(tmp_path / f"out{suffix}")
    assert back.skeleton.joints == character.skeleton.joints
    assert torch.allclose(back.mesh.vertices, character.mesh.vertices, atol=1e-5)
    assert torch.allclose(back.rig.weights, character.rig.weights, atol=1e-6)
    assert torch.allclose(bend(back), bend(character), atol=1e-4)


def test_a_document_keeps_what_it_had(tmp_path: Path) -> None:
    path = arm_glb(tmp_path)
    before, mesh = read_document(path), read_static(read_document(path))
    character = api.rig_character(path, bones())
    bunraku.save_character(character, tmp_path / "out.glb")
    after = read_document(tmp_path / "out.glb")
    assert after.json["materials"] == before.json["materials"]
    assert [mesh["extras"] for mesh in after.json["meshes"]] == [{"kept": [1, 2]}] * 2
    assert after.json["nodes"][0] == before.json["nodes"][0]
    assert after.buffers[0].startswith(before.buffers[0])
    assert torch.equal(character.mesh.vertices, mesh.vertices)
    assert len(mesh.vertices) == 2 * len(arm_mesh().vertices)


def test_eight_influences_are_written(tmp_path: Path) -> None:
    vertices, faces, _, _ = arm(12)
    mesh = Mesh(vertices=torch.from_numpy(vertices).float(), faces=torch.from_numpy(faces))
    crowd = bones(12)
    for count in (4, 8):
        character = api.rig_character(mesh, crowd, count)
        assert int((character.rig.weights > 0).sum(1).max()) <= count
        bunraku.save_character(character, tmp_path / "out.glb")
        assert torch.allclose(bunraku.load_character(tmp_path / "out.glb").rig.weights, character.rig.weights, atol=1e-6)
    with pytest.raises(BadValue, match="4 or 8"):
        api.rig_character(mesh, crowd, 5)


def test_a_cloud_of_points_is_refused() -> None:
    with pytest.raises(BadValue, match="no faces"):
        api.rig_character(Mesh(vertices=torch.rand(5, 3), faces=torch.zeros(0, 3, dtype=torch.long)), bones())


@pytest.mark.oracle
def test_the_validator_has_nothing_to_say(tmp_path: Path) -> None:
    for name, source in (("a.glb", arm_obj), ("b.glb", arm_glb)):
        bunraku.save_character(api.rig_character(source(tmp_path), bones(6), 8), tmp_path / name)
    errors = validator_errors(tmp_path / "a.glb", tmp_path / "b.glb")
    assert not any(errors.values()), errors


@pytest.mark.oracle
@pytest.mark.parametrize("source", [arm_obj, arm_glb])
def test_blender_opens_it(tmp_path: Path, source: object) -> None:
    from bunraku.kinematics.motion import rest_motion

    character = api.rig_character(source(tmp_path), bones())  # type: ignore[operator]
    bunraku.save_character(character, tmp_path / "out.glb", rest_motion(character.skeleton), clip="rest")
    seen = blender_positions(tmp_path / "out.glb", "rest", 30, 1, character.skeleton.joints)
    assert np.abs(seen[0] - rest_poses(character.skeleton).p_world_joint.numpy()).max() < 1e-5


def test_a_mannequin_is_rigged_as_it_was_made() -> None:
    """Most of its skin follows the joint that its maker chose, and no foot follows the other one."""
    made = bunraku.mannequin(bunraku.skeleton("smplx22"))
    character = api.rig_character(made.mesh, made.skeleton)
    assert set(bones_of(made.skeleton).joints.tolist()) == set(range(22))
    same = character.rig.weights.argmax(1) == made.rig.weights.argmax(1)
    assert same.float().mean() > 0.7
    x = made.mesh.vertices[:, 0]
    low = made.mesh.vertices[:, 1] < 0.3
    assert float(character.rig.weights[low & (x > 0)][:, [made.skeleton.role("right_foot"), made.skeleton.role("right_knee")]].max()) < 0.01
    assert float(character.rig.weights[low & (x < 0)][:, [made.skeleton.role("left_foot"), made.skeleton.role("left_knee")]].max()) < 0.01


# --- the command ------------------------------------------------------------------------------------------------------


def run(*words: object) -> int:
    return main([str(word) for word in words])


@pytest.fixture
def skeleton_file(tmp_path: Path) -> Path:
    rest = rest_poses(bones()).p_world_joint.tolist()
    joints = [{"name": f"bone{i}", "parent": f"bone{i - 1}" if i else None, "head": head} for i, head in enumerate(rest)]
    path = tmp_path / "arm.json"
    path.write_text(json.dumps({"joints": joints}))
    return path


def test_the_command(tmp_path: Path, skeleton_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, picture, joints = tmp_path / "out.glb", tmp_path / "report.png", tmp_path / "again.json"
    assert run("rig", arm_obj(tmp_path), "--skeleton", skeleton_file, "-o", out, "--report", picture, "--joints", joints) == 0
    assert "follow 2 joints of 'arm'" in capsys.readouterr().out
    assert bunraku.load_character(out).skeleton.joints == ("bone0", "bone1")
    from PIL import Image

    assert Image.open(picture).size[0] > 500
    assert np.asarray(Image.open(picture)).std() > 5
    assert run("rig", arm_obj(tmp_path), "--skeleton", joints, "-o", out) == 0


def test_joints_are_nudged(tmp_path: Path, skeleton_file: Path) -> None:
    nudge = tmp_path / "nudge.json"
    nudge.write_text('{"bone1": [60, 0, 0]}')
    mesh = tmp_path / "cm.obj"
    mesh.write_text(_scaled(arm_obj(tmp_path).read_text(), 100))
    placed = tmp_path / "cm.json"
    placed.write_text(skeleton_file.read_text().replace("1.0", "100.0"))
    assert run("rig", mesh, "--unit", 0.01, "--skeleton", placed, "--nudge", nudge, "-o", tmp_path / "out.glb") == 0
    places = rest_poses(bunraku.load_character(tmp_path / "out.glb").skeleton).p_world_joint
    assert places[1].tolist() == pytest.approx([0.6, 0, 0], abs=1e-6)


def _scaled(text: str, factor: float) -> str:
    rows = [line.split() for line in text.splitlines()]
    return "\n".join(" ".join(["v", *(str(factor * float(word)) for word in row[1:])]) if row[0] == "v" else " ".join(row) for row in rows)


def test_a_skeleton_elsewhere_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    far = tmp_path / "far.json"
    far.write_text(json.dumps({"joints": [{"name": "a", "head": [0, 50, 0]}, {"name": "b", "parent": "a", "head": [0, 60, 0]}]}))
    assert run("rig", arm_obj(tmp_path), "--skeleton", far, "-o", tmp_path / "out.glb", "--report", tmp_path / "r.jpg") == 0
    said = capsys.readouterr().err
    assert "2 of 2 joints of 'far' lie outside the mesh" in said
    assert (tmp_path / "r.jpg").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--skeleton", "gone.json", "-o", "out.glb"], "no file 'gone.json'"),
        (["--skeleton", "centaur", "-o", "out.glb"], "centaur"),
        (["-o", "out.obj"], "no known suffix"),
        (["-o", "out.bvh"], "character can be written to"),
        (["-o", "out.glb", "--influences", "3"], "4 or 8"),
        (["-o", "out.glb", "--unit", "0"], "positive number"),
        (["-o", "out.glb", "--report", "r.txt"], "no suffix of a picture"),
    ],
)
def test_mistakes_get_one_sentence(tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("rig", arm_obj(tmp_path), *words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out.glb").exists()
    assert issubclass(BadValue, BunrakuError)
