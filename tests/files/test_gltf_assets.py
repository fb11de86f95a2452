"""Every released character in the shared data: rest pose, skinning, detached feet, and clips that go out and come back."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from gltf_oracles import blender_positions, validator_errors
from small_gltf import read_glb, world

from bunraku.files.gltf import load_character, load_clip, save_character
from bunraku.files.gltf.bind import inverse_bind_matrices
from bunraku.files.gltf.document import GltfDocument, read_document
from bunraku.files.gltf.surface import read_surfaces
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.math.rotations import geodesic_distance
from bunraku.rig.character import Character
from bunraku.rig.skinning import skin_vertices

GROUPS = ["animals", "dinosaurs", "humanoids", "khronos"]
SCALED = {"Chicken", "Spider"}  # joints that change or differ in size: a Motion keeps their positions, not their size


def assets(shared: Path, group: str) -> list[Path]:
    paths = sorted((shared / "data" / "rigged_assets" / group).glob("*.glb"))
    if not paths:
        pytest.skip("the rigged assets are not here")
    return paths


@cache
def loaded(path: Path) -> Character:
    return load_character(path)


def size_of(character: Character) -> float:
    return float(np.ptp(character.mesh.vertices.numpy(), axis=0).max())


def some_clips(character: Character) -> list[Motion]:
    picked = sorted({len(character.clips) // 3, len(character.clips) - 1}) if character.clips else []
    return [load_clip(character, clip) for clip in picked]


@pytest.mark.parametrize("group", GROUPS)
def test_feet_are_reparented_as_the_notes_say(shared: Path, group: str) -> None:
    truth = json.loads((shared / "data" / "rigged_assets" / "rig_notes.json").read_text())
    for path in assets(shared, group):
        expected = truth[f"{group}/{path.name}"]["reparent"]
        found = loaded(path).notes.get("reparented", "")
        assert dict(pair.split(" below ") for pair in found.split(", ") if pair) == expected, path.name


def test_every_file_of_the_notes_was_seen(shared: Path) -> None:
    truth = json.loads((shared / "data" / "rigged_assets" / "rig_notes.json").read_text())
    seen = {f"{group}/{path.name}" for group in GROUPS for path in assets(shared, group)}
    assert seen <= set(truth)
    assert len(seen) == 41


def by_definition(document: GltfDocument, A_world: np.ndarray) -> np.ndarray:
    """All vertices as glTF defines them; NaN for those that the file gives no weights."""
    parts = []
    for number, node in enumerate(document.json["nodes"]):
        for surface in read_surfaces(document, number) if "mesh" in node else []:
            p = np.c_[surface.positions, np.ones(len(surface.positions))]
            if surface.joints is None or surface.weights is None:
                parts.append((p @ A_world[number].T)[:, :3])
                continue
            A = np.zeros((len(A_world), 4, 4))
            for joint, inverse in inverse_bind_matrices(document, node["skin"]).items():
                A[joint] = A_world[joint] @ inverse
            v = np.einsum("vk,vkab,vb->va", surface.weights, A[surface.joints], p)[:, :3]
            v[surface.weights.sum(1) == 0] = np.nan
            parts.append(v)
    return np.concatenate(parts)


@pytest.mark.parametrize("group", GROUPS)
def test_joints_and_skin_are_where_gltf_puts_them(shared: Path, group: str) -> None:
    for path in assets(shared, group):
        character, (content, data) = loaded(path), read_glb(path.read_bytes())
        size, nodes = size_of(character), character.source.nodes
        real = [joint for joint, node in enumerate(nodes) if node >= 0]
        for motion in some_clips(character)[-1:]:
            frame = len(motion) // 2
            start = float(motion.provenance.notes.get("clip_start", "0 s").removesuffix(" s"))
            A_world = np.array(world(content, data, len(character.clips) - 1, start + frame / motion.fps))
            p = forward_kinematics(motion[frame : frame + 1]).p_world_joint[0]
            assert np.abs(p[real].numpy() - A_world[[nodes[joint] for joint in real], :3, 3]).max() < 1e-5 * size, path.name
            if path.stem in SCALED:
                continue
            expected = by_definition(character.source.document, A_world)
            ours = skin_vertices(character, motion[frame : frame + 1])[0].numpy()
            known = ~np.isnan(expected[:, 0])
            assert known.mean() > 0.999
            assert np.abs(ours - expected)[known].max() < 1e-4 * size, path.name


@pytest.mark.parametrize("group", GROUPS)
def test_clips_written_back_replay_and_nothing_else_changes(shared: Path, group: str, tmp_path: Path) -> None:
    for path in assets(shared, group):
        character = loaded(path)
        before, out = character.source.document, tmp_path / path.name
        for motion in some_clips(character) or [rest_motion(character.skeleton, 3)]:
            save_character(character, out, motion)
            after = read_document(out)
            reread = replace(character, source=replace(character.source, document=after), clips=(*character.clips, "ours"))
            clip = load_clip(reread, "ours")
            assert (clip.fps, len(clip)) == (motion.fps, len(motion))
            a, b = forward_kinematics(motion), forward_kinematics(clip)
            assert (a.p_world_joint - b.p_world_joint).abs().max() < 1e-4 * size_of(character), path.name
            assert geodesic_distance(a.R_world_joint.double(), b.R_world_joint.double()).max() < 1e-4, path.name
            kept = {key for key in before.json if key not in ("animations", "accessors", "bufferViews", "buffers")}
            assert all(after.json[key] == before.json[key] for key in kept)
            assert after.buffers[0][: len(before.buffers[0])] == before.buffers[0]


def test_long_clips_are_read_in_chunks_without_a_seam(shared: Path) -> None:
    character = loaded(assets(shared, "khronos")[0])
    coarse = load_clip(character, 0, fps=24.0)
    fine = load_clip(character, 0, fps=24.0 * 400)
    assert len(fine) > 30_000
    torch.testing.assert_close(fine.quats[::400][: len(coarse)], coarse.quats, atol=1e-5, rtol=0)


@pytest.mark.oracle
@pytest.mark.parametrize("group", GROUPS)
def test_the_validator_finds_nothing_new(shared: Path, tmp_path: Path, group: str) -> None:
    """What a file brings along (nine of the 41 have errors) stays in it; a file from scratch has none."""
    paths = assets(shared, group)[::3]
    outs = []
    for path in paths:
        character = loaded(path)
        motion = load_clip(character, -1) if character.clips else rest_motion(character.skeleton, 2)
        for name, written in ((path.name, character), (f"plain-{path.name}", replace(character, source=None, clips=()))):
            outs.append(tmp_path / name)
            save_character(written, outs[-1], motion)
    before, after = validator_errors(*paths), validator_errors(*outs)
    for path in paths:
        assert sorted(error["code"] for error in after[str(tmp_path / path.name)]) == sorted(error["code"] for error in before[str(path)]), path.name
        assert after[str(tmp_path / f"plain-{path.name}")] == [], path.name


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["humanoids/KayKit_Knight", "animals/Alpaca", "dinosaurs/Apatosaurus", "khronos/RiggedFigure"])
def test_blender_agrees_within_a_millimetre(shared: Path, tmp_path: Path, name: str) -> None:
    character = loaded(shared / "data" / "rigged_assets" / f"{name}.glb")
    motion = load_clip(character, -1)
    save_character(character, tmp_path / "out.glb", motion, "ours")
    count = min(len(motion), 10)
    seen = blender_positions(tmp_path / "out.glb", "ours", motion.fps, count, character.skeleton.joints)
    np.testing.assert_allclose(seen, forward_kinematics(motion[:count]).p_world_joint, atol=1e-3)
