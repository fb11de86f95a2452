"""Clips: which rate they are sampled at, which names find them, and what a Motion cannot hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_gltf import FIRST, Writer, figure, read_glb, save, world

from bunraku.errors import BadValue, FormatProblem
from bunraku.files.gltf import load_character, load_clip
from bunraku.files.gltf.animation import _on_keys
from bunraku.files.gltf.sample import Track, natural_rate
from bunraku.kinematics.forward import forward_kinematics
from bunraku.rig.mannequin import mannequin


@pytest.mark.parametrize(
    ("keys", "rate"),
    [
        (np.arange(10) / 24, 24),
        (np.arange(10) / 30, 30),
        (1 + np.arange(10) / 25, 25),
        (np.arange(9) / 60, 60),
        (np.array([0.0, 0.5, 1.0]), 30),
        (np.array([0.0, 0.123, 0.4]), 30),
        (np.array([0.7]), 30),
    ],
)
def test_a_clip_is_sampled_on_the_grid_of_its_keys(keys: np.ndarray, rate: float) -> None:
    track = Track(nodes=(0,), path="translation", interpolation="LINEAR", times=keys.astype("f4").astype(float), values=np.zeros((len(keys), 1, 3)))
    assert natural_rate([track]) == rate


def test_every_key_is_a_frame_at_the_natural_rate(tmp_path: Path) -> None:
    path = save(figure(), tmp_path)
    character, (content, data) = load_character(path), read_glb(path.read_bytes())
    motion = load_clip(character)
    assert (motion.fps, len(motion)) == (30, 31)
    p = forward_kinematics(motion).p_world_joint
    for key in range(11):
        A_world = world(content, data, 0, key / 10)
        for joint, name in enumerate(character.skeleton.joints):
            node = next(i for i, entry in enumerate(content["nodes"]) if entry.get("name") == name)
            np.testing.assert_allclose(p[3 * key, joint], A_world[node][:3, 3], atol=2e-6)


def test_frames_lie_on_their_keys_though_keys_are_float32() -> None:
    grid = np.arange(200_000) / 120.0
    keys = grid.astype(np.float32).astype(np.float64)
    assert np.abs(keys - grid).max() > 5e-5
    assert np.array_equal(_on_keys(grid, keys), keys)
    assert np.array_equal(_on_keys(grid, keys[::7])[::7], keys[::7])
    assert np.array_equal(_on_keys(grid[:5] + 0.001, keys), grid[:5] + 0.001)  # between keys is between keys


def test_clips_are_found_by_name_and_number(tmp_path: Path) -> None:
    writer = figure()
    dance = writer.json["animations"][0]
    writer.json["animations"] += [{**dance, "name": "walk"}, {key: value for key, value in dance.items() if key != "name"}]
    character = load_character(save(writer, tmp_path))
    assert character.clips == ("dance", "walk", "animation_2")
    for name in ("walk", 1, "animation_2", -1):
        assert len(load_clip(character, name)) == 31
    with pytest.raises(BadValue, match=r"no clip 'run' \(it has: 'dance', 'walk', 'animation_2'\)"):
        load_clip(character, "run")
    with pytest.raises(BadValue, match="3 clips; there is no number 3"):
        load_clip(character, 3)
    with pytest.raises(BadValue, match="positive"):
        load_clip(character, 0, fps=-1.0)
    with pytest.raises(BadValue, match="not read from a glTF"):
        load_clip(mannequin(character.skeleton))


def test_a_clip_that_starts_late_starts_at_its_first_key(tmp_path: Path) -> None:
    writer = figure()
    clock = writer.json["animations"][0]["samplers"][0]["input"]
    late = writer.array(np.arange(11) / 10 + 0.4)
    writer.json["accessors"][clock] = writer.json["accessors"][late]
    motion = load_clip(load_character(save(writer, tmp_path)))
    assert len(motion) == 31
    assert motion.provenance.notes["clip_start"] == "0.4 s"
    assert motion.provenance.source is not None
    assert motion.provenance.source.endswith("figure.glb")


def test_scale_is_dropped_and_said_and_positions_stay_exact(tmp_path: Path) -> None:
    writer = figure()
    animation = writer.json["animations"][0]
    clock = animation["samplers"][0]["input"]
    scales = np.linspace(1, 2, 11)[:, None] * (1.0, 0.5, 1.5)
    animation["samplers"].append({"input": clock, "output": writer.array(scales)})
    animation["channels"].append({"sampler": len(animation["samplers"]) - 1, "target": {"node": FIRST + 1, "path": "scale"}})
    path = save(writer, tmp_path)
    character, (content, data) = load_character(path), read_glb(path.read_bytes())
    motion = load_clip(character)
    assert "Body" in motion.provenance.notes["scale"]
    assert motion.translations is not None
    p = forward_kinematics(motion).p_world_joint[15]
    A_world = world(content, data, 0, 0.5)
    np.testing.assert_allclose(p[character.skeleton.index["Head"]], A_world[FIRST + 2][:3, 3], atol=5e-6)
    np.testing.assert_allclose(p[character.skeleton.index["LowerLeg.L"]], A_world[FIRST + 4][:3, 3], atol=5e-6)


def test_rigid_bones_need_no_translations(tmp_path: Path) -> None:
    writer = figure()
    animation = writer.json["animations"][0]
    animation["channels"] = [channel for channel in animation["channels"] if channel["target"]["path"] == "rotation" and channel["target"]["node"] != FIRST]
    animation["channels"] = [channel for channel in animation["channels"] if channel["target"]["node"] < FIRST + 3]  # legs still: the foot stays put
    writer.json["nodes"][FIRST + 5]["name"] = "Prop.L"
    motion = load_clip(load_character(save(writer, tmp_path)))
    assert motion.translations is None
    assert (motion.quats[1:, 1:3] - motion.quats[:-1, 1:3]).abs().max() > 0.01


def test_quaternions_do_not_flip(tmp_path: Path) -> None:
    quats = load_clip(load_character(save(figure(), tmp_path))).quats
    assert (quats[1:] * quats[:-1]).sum(-1).min() > 0


def test_animations_that_move_no_node_or_run_backwards_are_refused(tmp_path: Path) -> None:
    writer = figure()
    writer.json["animations"][0]["channels"] = []
    with pytest.raises(FormatProblem, match="moves no node"):
        load_clip(load_character(save(writer, tmp_path)))
    for times in (np.arange(11)[::-1] / 10, np.arange(11) / 10 - 1):
        writer = figure()
        clock = writer.json["animations"][0]["samplers"][0]["input"]
        writer.json["accessors"][clock] = writer.json["accessors"][writer.array(times)]
        with pytest.raises(FormatProblem, match="do not grow"):
            load_clip(load_character(save(writer, tmp_path)))


def test_key_counts_must_agree(tmp_path: Path) -> None:
    writer: Writer = figure()
    writer.json["animations"][0]["samplers"][0]["output"] = writer.array(np.tile([0.0, 0, 0, 1], (10, 1)))
    with pytest.raises(FormatProblem, match="11 key times but 10 values"):
        load_clip(load_character(save(writer, tmp_path)))
