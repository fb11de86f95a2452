"""A motion written back: the same document and one more animation, which replays exactly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from gltf_motions import assert_same, dancing
from gltf_oracles import blender_positions, validator_errors
from hypothesis import given
from hypothesis import strategies as st
from small_gltf import FIRST, figure, glb_bytes, read_glb, save

from bunraku.errors import BunrakuError, SkeletonMismatch
from bunraku.files.gltf import load_character, load_clip, save_character
from bunraku.files.gltf.document import GltfDocument, read_document
from bunraku.files.gltf.nodes import rotation_of, trs_matrix, world_matrices, xyzw_to_matrix
from bunraku.files.gltf.write_back import node_motions
from bunraku.kinematics import library
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.motion import Motion, Provenance, rest_motion
from bunraku.math.rotations import exp_quat, quat_multiply
from bunraku.rig.skinning import skin_vertices


@pytest.mark.parametrize("suffix", [".glb", ".gltf"])
def test_a_motion_written_back_replays(tmp_path: Path, suffix: str) -> None:
    character = load_character(save(figure(), tmp_path))
    motion = dancing(character.skeleton)
    save_character(character, tmp_path / f"out{suffix}", motion, "new dance")
    again = load_character(tmp_path / f"out{suffix}")
    assert again.clips == ("dance", "new dance")
    assert_same(motion, load_clip(again, "new dance"))
    torch.testing.assert_close(skin_vertices(again, load_clip(again, 1)), skin_vertices(character, motion), atol=1e-4, rtol=0)
    assert_same(load_clip(character, 0), load_clip(again, 0))


def test_clips_survive_file_to_motion_to_file(tmp_path: Path) -> None:
    for interpolation in ("LINEAR", "STEP", "CUBICSPLINE"):
        character = load_character(save(figure(interpolation), tmp_path))
        motion = load_clip(character)
        save_character(character, tmp_path / "out.glb", motion)
        assert_same(motion, load_clip(load_character(tmp_path / "out.glb"), -1))


def test_nothing_else_in_the_document_changes(tmp_path: Path) -> None:
    path = save(figure(), tmp_path)
    before, bytes_before = read_glb(path.read_bytes())
    character = load_character(path)
    save_character(character, tmp_path / "out.glb", dancing(character.skeleton))
    after, bytes_after = read_glb((tmp_path / "out.glb").read_bytes())
    for name in ("animations", "accessors", "bufferViews"):
        assert after[name][: len(before[name])] == before[name]
        assert len(after[name]) > len(before[name])
    assert len(after["animations"]) == 2
    length = before["buffers"][0]["byteLength"]
    assert bytes_after[:length] == bytes_before[:length]
    assert after["buffers"] == [{"byteLength": len(bytes_after)}]
    added = ("animations", "accessors", "bufferViews", "buffers")
    assert {key: value for key, value in after.items() if key not in added} == {key: value for key, value in before.items() if key not in added}
    assert list(after) == list(before)


def test_without_a_motion_the_document_is_copied(tmp_path: Path) -> None:
    path = save(figure(), tmp_path)
    save_character(load_character(path), tmp_path / "out.glb")
    assert read_glb((tmp_path / "out.glb").read_bytes())[0] == read_glb(path.read_bytes())[0]


def test_only_what_moves_has_keys_and_other_clips_are_stilled(tmp_path: Path) -> None:
    """The node pose needs no channel in glTF, but players that change clips leave nodes where the last clip put them: one key each."""
    character = load_character(save(figure(), tmp_path))
    still = load_clip(character)
    A = world_matrices(character.source.document)[0]
    nodes = list(character.source.nodes)
    motion = node_pose(still, A[nodes])
    turned = motion.quats.clone()
    body = character.skeleton.index["Head"]
    turned[:, body] = quat_multiply(motion.quats[:, body], exp_quat(torch.tensor([0.5, 0, 0]).expand(len(motion), 3)))
    save_character(character, tmp_path / "out.glb", replace(motion, quats=turned))
    content, _ = read_glb((tmp_path / "out.glb").read_bytes())
    animation = content["animations"][1]
    keys = {}
    for channel in animation["channels"]:
        sampler = animation["samplers"][channel["sampler"]]
        assert sampler["interpolation"] == "LINEAR"
        keys[channel["target"]["node"], channel["target"]["path"]] = content["accessors"][sampler["input"]]["count"]
    others = {(channel["target"]["node"], channel["target"]["path"]) for channel in content["animations"][0]["channels"]}
    assert keys == {(node, path): len(motion) if (node, path) == (FIRST + 2, "rotation") else 1 for node, path in others}
    assert content["accessors"][animation["samplers"][0]["input"]]["min"] == [0]


def node_pose(like: Motion, A_world_joint: np.ndarray) -> Motion:
    from bunraku.files.gltf.animation import motion_from_poses
    from bunraku.kinematics.forward import WorldPoses

    p = torch.from_numpy(A_world_joint[:, :3, 3]).expand(len(like), -1, -1)
    R = torch.from_numpy(rotation_of(A_world_joint[:, :3, :3])).expand(len(like), -1, -1, -1)
    return motion_from_poses(like.skeleton, WorldPoses(p_world_joint=p, R_world_joint=R), like.fps)


def test_where_the_motion_comes_from_travels_with_it(tmp_path: Path) -> None:
    character = load_character(save(figure(), tmp_path))
    contacts = torch.rand(12, 4) > 0.5
    provenance = Provenance(prompt="a beetle waltzes — slowly", seed=7, model="kimodo", version="0.1.0", notes={"cleanup": "off"})
    motion = replace(dancing(character.skeleton, fps=23.5), contacts=contacts, provenance=provenance)
    save_character(character, tmp_path / "out.glb", motion)
    clip = load_clip(load_character(tmp_path / "out.glb"), "a beetle waltzes — slowly")
    assert clip.fps == 23.5
    assert replace(clip.provenance, source=None) == provenance
    assert clip.contacts is not None
    assert torch.equal(clip.contacts, contacts)
    assert len(load_clip(load_character(tmp_path / "out.glb"), -1, fps=47.0)) == 23


def test_new_numbers_are_aligned_behind_a_buffer_of_odd_length(tmp_path: Path) -> None:
    writer = figure()
    writer.data += b"odd"
    character = load_character(save(writer, tmp_path))
    assert character.source.document.buffers == (writer.data,)
    save_character(character, tmp_path / "out.glb", dancing(character.skeleton))
    content, data = read_glb((tmp_path / "out.glb").read_bytes())
    assert data.startswith(writer.data)
    added = content["bufferViews"][len(writer.json["bufferViews"]) :]
    assert added
    assert all(view["byteOffset"] % 4 == 0 for view in added)


def test_quaternions_of_any_length_mean_their_turn(tmp_path: Path) -> None:
    character = load_character(save(figure(), tmp_path))
    motion = dancing(character.skeleton)
    save_character(character, tmp_path / "out.glb", replace(motion, quats=motion.quats * 1.3))
    assert_same(motion, load_clip(load_character(tmp_path / "out.glb"), -1))


@pytest.mark.parametrize("junk", [[], {"fps": "x"}, {"fps": -1}, {"contacts": [[[], 0, 0, 0]] * 12}, {"prompt": 7, "seed": "a", "notes": 1}])
def test_junk_where_the_origin_is_kept_is_passed_over(tmp_path: Path, junk: object) -> None:
    character = load_character(save(figure(), tmp_path))
    save_character(character, tmp_path / "out.glb", dancing(character.skeleton))
    content, data = read_glb((tmp_path / "out.glb").read_bytes())
    content["animations"][1]["extras"]["bunraku"] = junk
    (tmp_path / "out.glb").write_bytes(glb_bytes(content, data))
    clip = load_clip(load_character(tmp_path / "out.glb"), 1)
    assert (clip.fps, len(clip), clip.contacts, clip.provenance.prompt) == (24.0, 12, None, None)


def test_names_of_clips_stay_apart(tmp_path: Path) -> None:
    character = load_character(save(figure(), tmp_path))
    for _ in range(2):
        save_character(character, tmp_path / "out.glb", dancing(character.skeleton), "dance")
        character = load_character(tmp_path / "out.glb")
    assert character.clips == ("dance", "dance 2", "dance 3")


def test_a_node_given_by_a_matrix_becomes_trs_and_only_then(tmp_path: Path) -> None:
    writer = figure()
    node = writer.json["nodes"][FIRST + 3]
    matrix = trs_matrix(np.array(node.pop("translation")), np.array(node.pop("rotation")), np.array([1.0, 1.0, 1.0]))
    node["matrix"] = matrix.T.ravel().tolist()
    channels = writer.json["animations"][0]["channels"]
    writer.json["animations"][0]["channels"] = [channel for channel in channels if channel["target"]["node"] != FIRST + 3]
    character = load_character(save(writer, tmp_path))
    save_character(character, tmp_path / "copy.glb")
    assert read_document(tmp_path / "copy.glb").json["nodes"] == writer.json["nodes"]
    motion = dancing(character.skeleton)
    save_character(character, tmp_path / "out.glb", motion)
    again = load_character(tmp_path / "out.glb")
    clip = load_clip(again, -1)
    assert_same(motion, clip)
    assert "UpperLeg.L" in clip.provenance.notes["matrix_nodes"]
    nodes = again.source.document.json["nodes"]
    assert [i for i, entry in enumerate(nodes) if entry != writer.json["nodes"][i]] == [FIRST + 3]
    assert nodes[FIRST + 3]["children"] == node["children"]
    np.testing.assert_allclose(trs_matrix(*(np.array(nodes[FIRST + 3][key]) for key in ("translation", "rotation", "scale"))), matrix, atol=1e-12)


def test_a_motion_of_another_skeleton_is_refused_and_nothing_written(tmp_path: Path) -> None:
    character = load_character(save(figure(), tmp_path))
    with pytest.raises(SkeletonMismatch, match=r"22 joints of 'smplx22', character 'figure' has 7\. Use retarget"):
        save_character(character, tmp_path / "out.glb", rest_motion(library.skeleton("smplx22")))
    bad = dancing(character.skeleton)
    bad.root_position[0] = torch.nan
    with pytest.raises(BunrakuError, match="not finite"):
        save_character(character, tmp_path / "out.glb", bad)
    assert not (tmp_path / "out.glb").exists()


SCALES = st.sampled_from([1.0, 1.0, 2.0, 0.3, -1.0])


@given(st.lists(SCALES, min_size=9, max_size=9), st.floats(0, 0.3), st.integers(0, 10**6))
def test_write_back_is_exact_below_scaled_mirrored_and_sheared_parents(scales: list[float], shear: float, seed: int) -> None:
    """Three nodes in a row: whatever their static scales are, positions and rotations come out as asked."""
    rng = np.random.default_rng(seed)
    quats = rng.normal(size=(3, 4))
    quats /= np.linalg.norm(quats, axis=1, keepdims=True)
    sizes = np.array(scales).reshape(3, 3) if shear == 0 else np.sign(scales).reshape(3, 3) * (1 + shear * rng.random((3, 3)))
    if shear == 0:
        sizes = np.sign(sizes) * np.abs(sizes[:, :1])  # one size in all directions, mirrored or not
    nodes = [{"rotation": q.tolist(), "scale": s.tolist(), "children": [i + 1] if i < 2 else []} for i, (q, s) in enumerate(zip(quats, sizes, strict=True))]
    document = GltfDocument(json={"nodes": nodes}, buffers=(), path=Path("x.glb"))
    p, turns = rng.normal(size=(4, 3, 3)), rng.normal(size=(4, 3, 4))
    R = xyzw_to_matrix(turns / np.linalg.norm(turns, axis=-1, keepdims=True))
    moved = node_motions(document, {0: 0, 1: 1, 2: 2}, p, R)
    local = {node: trs_matrix(values.translation, values.rotation, np.broadcast_to(sizes[node], (4, 3))) for node, values in moved.items()}
    A = world_matrices(document, local, 4)
    np.testing.assert_allclose(A[..., :3, 3], p, atol=1e-9)
    np.testing.assert_allclose(rotation_of(A[..., :3, :3]), R, atol=1e-6)


# --- second opinions --------------------------------------------------------------------------------------------------


@pytest.mark.oracle
def test_the_validator_finds_no_error(tmp_path: Path) -> None:
    character = load_character(save(figure(), tmp_path))
    save_character(character, tmp_path / "back.glb", dancing(character.skeleton))
    save_character(character, tmp_path / "back.gltf", dancing(character.skeleton))
    found = validator_errors(*sorted(tmp_path.iterdir()))
    assert len(found) == 3
    assert not any(found.values()), found


@pytest.mark.oracle
def test_the_validator_would_find_one(tmp_path: Path) -> None:
    writer = figure()
    writer.json["accessors"][0]["max"] = [0, 0, 0]
    path = save(writer, tmp_path)
    assert validator_errors(path)[str(path)]


@pytest.mark.oracle
def test_blender_agrees_on_joint_positions(tmp_path: Path) -> None:
    character = load_character(save(figure(), tmp_path))
    motion = dancing(character.skeleton)
    save_character(character, tmp_path / "out.glb", motion, "ours")
    positions = blender_positions(tmp_path / "out.glb", "ours", 24.0, 12, character.skeleton.joints)
    np.testing.assert_allclose(positions, forward_kinematics(motion).p_world_joint, atol=1e-3)
    assert np.ptp(positions, axis=0).min(-1).max() > 0.1  # it did move
