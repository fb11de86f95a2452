"""From a document to a Character: bind pose, skinning against glTF's own definition, and the odd shapes that files come in."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest
import torch
from small_gltf import BONES, FIRST, HELMET, SKINNED, Writer, figure, floats, read_glb, save, skinned, world

from bunraku.errors import FormatProblem
from bunraku.files.gltf import load_character, load_clip
from bunraku.files.gltf.armature import _unique_names
from bunraku.rig.skinning import skin_vertices

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def test_the_rest_pose_is_the_bind_pose_in_the_world(tmp_path: Path) -> None:
    """A hundredfold armature turned by −90° about x: (x, y, z) of a bone lies at 100 (x, z, −y)."""
    character = load_character(save(figure(), tmp_path))
    skeleton, p = character.skeleton, character.rig.T_world_joint_rest[:, :3, 3]
    at = {}
    for name, parent, offset, _ in BONES:
        at[name] = np.add(offset, at[BONES[parent][0]]) if parent >= 0 else np.array(offset)
        x, y, z = at[name] * 100
        torch.testing.assert_close(p[skeleton.index[name]], torch.tensor([x, z, -y], dtype=torch.float32), atol=1e-5, rtol=0)
    assert torch.linalg.det(character.rig.T_world_joint_rest[:, :3, :3]).sub(1).abs().max() < 1e-5


def test_the_skeleton_mends_the_foot_and_keeps_the_handle(tmp_path: Path) -> None:
    character = load_character(save(figure(), tmp_path))
    skeleton = character.skeleton
    parents = {joint: skeleton.joints[parent] if parent >= 0 else None for joint, parent in zip(skeleton.joints, skeleton.parents, strict=True)}
    assert (parents["Foot.L"], parents["PoleTarget.L"]) == ("LowerLeg.L", "Root")
    assert [parents[name] for name in ("Root", "Body", "Head", "UpperLeg.L", "LowerLeg.L")] == [None, "Root", "Body", "Body", "UpperLeg.L"]
    assert character.notes["reparented"] == "Foot.L below LowerLeg.L"
    assert character.rig.weights[:, skeleton.index["PoleTarget.L"]].max() == 0
    assert skeleton.joints == ("Root", "Body", "Head", "UpperLeg.L", "LowerLeg.L", "Foot.L", "PoleTarget.L")


def test_the_mesh_at_rest_is_what_the_bind_pose_shows(tmp_path: Path) -> None:
    path = save(figure(), tmp_path)
    character, (content, data) = load_character(path), read_glb(path.read_bytes())
    positions = floats(content, data, content["meshes"][0]["primitives"][0]["attributes"]["POSITION"])
    cloth = np.c_[positions[:, 0], positions[:, 2], -positions[:, 1]] * 100
    np.testing.assert_allclose(character.mesh.vertices[: len(cloth)], cloth, atol=1e-5)
    rest = world(content, data)
    on_head = np.linalg.inv(rest[FIRST + 2]) @ rest[HELMET]
    T_head = character.rig.T_world_joint_rest[character.skeleton.index["Head"]].numpy().astype(float)
    T_head[:3, :3] *= 100
    helmet = floats(content, data, content["meshes"][1]["primitives"][0]["attributes"]["POSITION"])
    np.testing.assert_allclose(character.mesh.vertices[len(cloth) :], helmet @ (T_head @ on_head)[:3, :3].T + (T_head @ on_head)[:3, 3], atol=1e-5)
    assert (character.rig.weights[len(cloth) :, character.skeleton.index["Head"]] == 1).all()


@pytest.mark.parametrize("interpolation", ["LINEAR", "STEP", "CUBICSPLINE"])
def test_skinning_a_clip_is_what_gltf_defines(tmp_path: Path, interpolation: str) -> None:
    path = save(figure(interpolation), tmp_path)
    character, (content, data) = load_character(path), read_glb(path.read_bytes())
    motion = load_clip(character, "dance", fps=25.0)
    assert len(motion) == 26
    ours = skin_vertices(character, motion)
    for frame in (0, 1, 7, 12, 25):
        A_world = world(content, data, 0, frame / 25)
        expected = np.concatenate([skinned(content, data, A_world, SKINNED), skinned(content, data, A_world, HELMET)])
        np.testing.assert_allclose(ours[frame], expected, atol=2e-5)


def test_surface_attributes(tmp_path: Path) -> None:
    writer = figure()
    view = writer.view(PNG)
    writer.json |= {"images": [{"bufferView": view, "mimeType": "image/png"}], "textures": [{"source": 0}]}
    writer.json["materials"].append({"name": "bark", "doubleSided": True, "pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}})
    writer.json["meshes"][1]["primitives"][0]["material"] = 1
    path = save(writer, tmp_path)
    mesh, (content, data) = load_character(path).mesh, read_glb(path.read_bytes())
    cloth, helmet = (content["meshes"][i]["primitives"][0]["attributes"] for i in (0, 1))
    count = content["accessors"][cloth["POSITION"]]["count"]
    assert [(material.name, material.base_color[:2], material.double_sided, material.image) for material in mesh.materials] == [
        ("red", (1, 0), False, None),
        ("bark", (1, 1), True, PNG),
        ("plain", (1, 1), False, None),
    ]
    assert mesh.face_materials is not None
    assert mesh.face_materials.tolist() == [0] * (count // 4) + [1] * 4
    np.testing.assert_array_equal(mesh.faces[-4:].numpy() - count, [[0, 1, 2], [2, 1, 3], [2, 3, 4], [4, 3, 5]])
    assert mesh.colours is not None
    assert mesh.uvs is not None
    np.testing.assert_allclose(mesh.colours[count:], floats(content, data, helmet["COLOR_0"])[:, :3], atol=1e-6)
    assert (mesh.colours[:count] == 1).all()
    np.testing.assert_allclose(mesh.uvs[:count], floats(content, data, cloth["TEXCOORD_0"]), atol=1e-6)
    assert mesh.normals is None  # the helmet has none


def test_normals_turn_with_the_mesh_and_mirrored_faces_are_turned_round(tmp_path: Path) -> None:
    writer = figure()
    writer.json["meshes"][1]["primitives"] = writer.json["meshes"][0]["primitives"][:0]
    path = save(writer, tmp_path)
    mesh, (content, data) = load_character(path).mesh, read_glb(path.read_bytes())
    normals = floats(content, data, content["meshes"][0]["primitives"][0]["attributes"]["NORMAL"])
    assert mesh.normals is not None
    np.testing.assert_allclose(mesh.normals, np.c_[normals[:, 0], normals[:, 2], -normals[:, 1]], atol=1e-6)
    for node in (1, SKINNED):
        writer.json["nodes"][node]["scale"] = [-100, 100, 100]
    mirrored = load_character(save(writer, tmp_path)).mesh
    assert mirrored.normals is not None
    np.testing.assert_allclose(mirrored.normals, mesh.normals * torch.tensor([-1.0, 1.0, 1.0]), atol=1e-6)
    np.testing.assert_allclose(mirrored.vertices, mesh.vertices * torch.tensor([-1.0, 1.0, 1.0]), atol=1e-5)
    assert torch.equal(mirrored.faces, mesh.faces.flip(1))


def test_fans_and_triangles_without_indices(tmp_path: Path) -> None:
    for mode, expected in ((6, [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]]), (4, [[0, 1, 2], [3, 4, 5]]), (1, [])):
        writer = figure()
        writer.json["meshes"][1]["primitives"][0]["mode"] = mode
        character = load_character(save(writer, tmp_path))
        first = 8 * (len(BONES) - 1)
        assert (character.mesh.faces[12:].sub(first)).tolist() == expected


def test_default_morph_weights_shape_the_mesh(tmp_path: Path) -> None:
    writer = figure()
    flat = load_character(save(writer, tmp_path)).mesh.vertices
    count = 8 * (len(BONES) - 1)
    writer.json["meshes"][0]["primitives"][0]["targets"] = [{"POSITION": writer.array(np.tile([0.0, 0.0, 0.001], (count, 1)))}]
    writer.json["meshes"][0]["weights"] = [0.5]
    grown = load_character(save(writer, tmp_path)).mesh.vertices
    torch.testing.assert_close(grown[:count] - flat[:count], torch.tensor([0.0, 0.05, 0.0]).expand(count, 3), atol=1e-5, rtol=0)


def test_vertices_without_usable_weights_follow_their_neighbours(tmp_path: Path) -> None:
    writer = figure()
    attributes = writer.json["meshes"][0]["primitives"][0]["attributes"]
    whole = load_character(save(writer, tmp_path)).rig.weights
    weights = floats(writer.json, writer.data, attributes["WEIGHTS_0"])
    weights[3], weights[20] = np.nan, 0
    attributes["WEIGHTS_0"] = writer.array(weights)
    path = save(writer, tmp_path)
    character = load_character(path)
    assert character.notes["weights"].startswith("2 vertices")
    p = character.mesh.vertices
    for lost in (3, 20):
        gaps = (p[:48] - p[lost]).norm(dim=1)
        gaps[[3, 20]] = 9
        torch.testing.assert_close(character.rig.weights[lost], whole[gaps.argmin()], atol=1e-6, rtol=0)


def test_several_skins_share_one_skeleton(tmp_path: Path) -> None:
    """The second skin knows fewer joints, in another order, and its mesh node lies elsewhere."""
    writer = figure()
    one = load_character(save(writer, tmp_path))
    content = writer.json
    inverse = floats(content, writer.data, content["skins"][0]["inverseBindMatrices"]).reshape(-1, 4, 4).swapaxes(1, 2)
    away = np.eye(4)
    away[:3, 3] = (0.5, 0.01, -0.02)
    content["skins"].append({"joints": [FIRST + 2, FIRST + 1], "inverseBindMatrices": writer.array((inverse[[2, 1]] @ away).swapaxes(1, 2).reshape(-1, 16))})
    primitive = {**content["meshes"][0]["primitives"][0], "attributes": dict(content["meshes"][0]["primitives"][0]["attributes"])}
    positions = floats(content, writer.data, primitive["attributes"]["POSITION"])
    primitive["attributes"] |= {"POSITION": writer.array(positions - away[:3, 3]), "JOINTS_0": writer.array(np.tile([0, 1, 0, 0], (48, 1)), "u1")}
    content["meshes"].append({"primitives": [primitive]})
    content["nodes"].append({"mesh": 2, "skin": 1, "translation": [50, 2, -1], "scale": [3, 3, 3]})
    content["scenes"][0]["nodes"].append(len(content["nodes"]) - 1)
    both = load_character(save(writer, tmp_path))
    assert both.skeleton.joints == one.skeleton.joints
    np.testing.assert_allclose(both.mesh.vertices[-48:], one.mesh.vertices[:48], atol=1e-5)
    assert (both.rig.weights[-48:, [both.skeleton.index["Head"], both.skeleton.index["Body"]]].sum(1) - 1).abs().max() < 1e-6


def test_unnamed_and_repeated_names_become_unique_and_the_document_stays(tmp_path: Path) -> None:
    writer = figure()
    del writer.json["nodes"][FIRST + 1]["name"]
    writer.json["nodes"][FIRST + 2]["name"] = writer.json["nodes"][FIRST + 3]["name"] = "Root"
    character = load_character(save(writer, tmp_path))
    assert character.skeleton.joints[:4] == ("Root", "joint_3", "Root_2", "Root_3")
    assert character.source.document.json["nodes"] == writer.json["nodes"]


def test_many_joints_of_one_name_are_told_apart_in_one_pass() -> None:
    names = _unique_names(["j"] * 20_000 + ["j_7"])
    assert names[:2] == ["j", "j_2"]
    assert names[-1] == "j_7"
    assert len(set(names)) == len(names)


def test_several_roots_meet_in_the_node_above_or_in_the_world(tmp_path: Path) -> None:
    writer = figure()
    writer.json["nodes"][1]["children"] = [FIRST, FIRST + 1]
    writer.json["nodes"][FIRST]["children"] = [FIRST + 5, FIRST + 6]
    writer.json["nodes"][FIRST + 5]["name"] = writer.json["nodes"][FIRST + 6]["name"] = "thing"
    assert load_character(save(writer, tmp_path)).skeleton.joints[0] == "Armature"
    writer.json["nodes"][1]["children"] = [FIRST]
    writer.json["scenes"][0]["nodes"] = [0, FIRST + 1]
    character = load_character(save(writer, tmp_path))
    assert character.skeleton.joints[0] == "world"
    assert "origin" in character.notes["root"]
    assert load_clip(character).root_position.abs().max() == 0


def test_meshes_on_no_joint_are_left_out_and_said(tmp_path: Path) -> None:
    writer = figure()
    writer.json["nodes"][FIRST + 2].pop("children")
    writer.json["nodes"][0]["children"].append(HELMET)
    character = load_character(save(writer, tmp_path))
    assert len(character.mesh.vertices) == 48
    assert character.notes["left_out"].endswith("Helmet")


def test_without_inverse_bind_matrices_the_node_pose_is_the_rest_pose(tmp_path: Path) -> None:
    writer = figure()
    del writer.json["skins"][0]["inverseBindMatrices"]
    path = save(writer, tmp_path)
    character, (content, data) = load_character(path), read_glb(path.read_bytes())
    at_rest = np.array([A[:3, 3] for A in world(content, data)])[FIRST : FIRST + len(BONES)]
    np.testing.assert_allclose(character.rig.T_world_joint_rest[:, :3, 3], at_rest, atol=1e-5)


def test_a_mesh_node_that_stands_nowhere_near_does_not_place_the_bind_pose(tmp_path: Path) -> None:
    """A renderer ignores the node of a skinned mesh; some exporters leave it at the origin in other units."""
    path = save(figure(), tmp_path)
    right = load_character(path).mesh.vertices
    writer = figure()
    writer.json["nodes"][SKINNED] = {"name": "Skin", "mesh": 0, "skin": 0}
    torch.testing.assert_close(load_character(save(writer, tmp_path)).mesh.vertices, right, atol=1e-4, rtol=0)


def test_bones_that_nodes_keep_small_stay_small(tmp_path: Path) -> None:
    writer = figure()
    writer.json["nodes"][FIRST + 2]["scale"] = [0.5, 0.5, 0.5]
    path = save(writer, tmp_path)
    character, (content, data) = load_character(path), read_glb(path.read_bytes())
    motion = load_clip(character)
    only_head = character.rig.weights[:, character.skeleton.index["Head"]] > 0.999
    assert only_head.sum() >= 6  # the helmet
    A_world = world(content, data, 0, 0.5)
    expected = np.concatenate([skinned(content, data, A_world, SKINNED), skinned(content, data, A_world, HELMET)])
    np.testing.assert_allclose(skin_vertices(character, motion)[15][only_head], expected[only_head], atol=2e-5)


def test_compressed_primitives_without_a_plain_copy_are_refused(tmp_path: Path) -> None:
    writer = figure()
    primitive = writer.json["meshes"][0]["primitives"][0]
    primitive["extensions"] = {"KHR_draco_mesh_compression": {"bufferView": 0}}
    load_character(save(writer, tmp_path))  # with a plain copy it is fine
    writer.json["accessors"][primitive["attributes"]["POSITION"]].pop("bufferView")
    with pytest.raises(FormatProblem, match="Draco"):
        load_character(save(writer, tmp_path))


def test_nan_in_positions_is_refused(tmp_path: Path) -> None:
    writer = Writer()
    writer = figure()
    at = writer.json["bufferViews"][writer.json["accessors"][0]["bufferView"]]["byteOffset"]
    writer.data = writer.data[:at] + np.array([np.nan], "<f4").tobytes() + writer.data[at + 4 :]
    with pytest.raises(FormatProblem, match="not finite"):
        load_character(save(writer, tmp_path))


def test_leaf_bones_end_where_end_nodes_say(tmp_path: Path) -> None:
    writer = figure()
    writer.json["nodes"].append({"name": "Head_end", "translation": [0, 0.001, 0.003]})
    writer.json["nodes"][FIRST + 2]["children"].append(len(writer.json["nodes"]) - 1)
    skeleton = load_character(save(writer, tmp_path)).skeleton
    assert skeleton.tips[skeleton.index["Head"]] == pytest.approx((0, 0.1, 0.3), abs=1e-5)


def test_weights_are_made_to_sum_to_one(tmp_path: Path) -> None:
    writer = figure()
    attributes = writer.json["meshes"][0]["primitives"][0]["attributes"]
    whole = load_character(save(writer, tmp_path)).rig.weights
    attributes["WEIGHTS_0"] = writer.array(floats(writer.json, writer.data, attributes["WEIGHTS_0"]) * 0.4)
    torch.testing.assert_close(load_character(save(writer, tmp_path)).rig.weights, whole)


def test_only_the_default_scene_is_shown_and_a_file_without_scenes_shows_all(tmp_path: Path) -> None:
    writer = figure()
    count = len(load_character(save(writer, tmp_path)).mesh.vertices)
    writer.json["nodes"].append({"name": "Ghost", "mesh": 0, "skin": 0})
    writer.json["scenes"].append({"nodes": [len(writer.json["nodes"]) - 1]})
    assert len(load_character(save(writer, tmp_path)).mesh.vertices) == count
    del writer.json["scenes"], writer.json["scene"]
    assert len(load_character(save(writer, tmp_path)).mesh.vertices) == count + 48
