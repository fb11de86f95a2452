"""The dispatch by suffix, and the last look at numbers on their way in and out."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bunraku.errors import BadValue, FileProblem, FormatProblem, SkeletonMismatch
from bunraku.files.amass import save_amass
from bunraku.files.formats import FORMATS, load_character, load_motion, save_character, save_motion, suffix_of
from bunraku.files.npz import save_npz
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.hinges import motion_from_hinges
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, Provenance, rest_motion
from bunraku.math.rotations import exp_quat, quat_multiply
from bunraku.rig.mannequin import mannequin

BODY_OF = {".amass.npz": "smplx22", ".csv": "g1"}
WRITABLE = [suffix for suffix, entry in FORMATS.items() if "motion" in entry.saves]


def waving(name: str, frames: int = 8) -> Motion:
    body = skeleton(name)
    if body.hinges is not None:
        angles = 0.2 * torch.rand(frames, len(body.hinges.joints))
        return motion_from_hinges(body, torch.rand(frames, 3), exp_quat(torch.rand(frames, 3)), angles, 30.0)
    turns = exp_quat(0.5 * torch.randn(1, len(body), 3) * torch.linspace(0, 1, frames)[:, None, None])
    quats = quat_multiply(body.rest_quats.expand(frames, -1, -1), turns)
    return Motion(skeleton=body, fps=30.0, root_position=torch.rand(frames, 3), quats=quats, provenance=Provenance(prompt="wave"))


@pytest.mark.parametrize("suffix", WRITABLE)
def test_every_format_that_is_written_is_read_back(tmp_path: Path, suffix: str) -> None:
    if suffix.startswith(".usd"):
        pytest.importorskip("pxr")
    folder = tmp_path / "with space 人形"
    folder.mkdir()
    path = folder / f"Walk.1{suffix.upper()}"  # suffixes in any case
    motion = waving(BODY_OF.get(suffix, "soma30"))
    assert save_motion(motion, path) == {}
    back = load_motion(path)
    assert len(back) == len(motion)
    assert back.fps == pytest.approx(30, rel=1e-4)
    joints = [back.skeleton.index[name] for name in motion.skeleton.joints]
    here, there = forward_kinematics(motion).p_world_joint, forward_kinematics(back).p_world_joint[:, joints]
    assert float((here - there).abs().max()) < 1e-4


def test_amass_is_told_from_kimodo_by_its_arrays(tmp_path: Path) -> None:
    save_amass(waving("smplx22"), tmp_path / "a.npz")
    save_npz(waving("smplx22"), tmp_path / "k.npz")
    with np.load(tmp_path / "a.npz") as a, np.load(tmp_path / "k.npz") as k:
        np.savez(tmp_path / "both.npz", **{**a, **k})
    assert load_motion(tmp_path / "a.npz").skeleton is skeleton("smplx22")
    assert load_motion(tmp_path / "k.npz").provenance.prompt == "wave"
    assert len(load_motion(tmp_path / "both.npz")) == 8


def test_losses_are_reported(tmp_path: Path) -> None:
    motion = waving("g1")
    quats = motion.quats.clone()
    quats[:, 4] = exp_quat(torch.tensor([0.0, 0.4, 0.0]))
    assert "hinges" in save_motion(replace(motion, quats=quats), tmp_path / "m.csv")


def test_a_clip_of_a_batch_and_of_a_character_is_chosen(tmp_path: Path) -> None:
    motion = waving("soma30")
    save_npz(motion, tmp_path / "one.npz")
    with np.load(tmp_path / "one.npz") as stored:
        keys = ("local_rot_mats", "root_positions")
        np.savez(tmp_path / "two.npz", **{key: np.stack([stored[key], stored[key] + (key == "root_positions")]) for key in keys})
    assert torch.allclose(load_motion(tmp_path / "two.npz", clip="1").root_position, motion.root_position + 1)
    with pytest.raises(BadValue, match="numbered from 0; got the clip 'walk'"):
        load_motion(tmp_path / "two.npz", clip="walk")

    save_motion(motion, tmp_path / "m.glb", clip="first")
    character = load_character(tmp_path / "m.glb")
    save_character(character, tmp_path / "m.glb", replace(motion, root_position=motion.root_position + 1), clip="second")
    assert load_character(tmp_path / "m.glb").clips == ("first", "second")
    assert torch.allclose(load_motion(tmp_path / "m.glb", clip="second").root_position, motion.root_position + 1, atol=1e-5)
    unnamed = load_motion(tmp_path / "m.glb")
    assert torch.allclose(unnamed.root_position, motion.root_position, atol=1e-5)
    assert unnamed.provenance.notes["clip"] == "'first', the first of 2"


def test_the_rate_of_the_frames_can_be_given(tmp_path: Path) -> None:
    for name in ("m.bvh", "m.npz", "m.csv"):
        save_motion(waving("g1"), tmp_path / name)
        assert load_motion(tmp_path / name, fps=120.0).fps == 120
        with pytest.raises(BadValue, match="no frame rate"):
            load_motion(tmp_path / name, fps=-30.0)


def test_unknown_suffixes_name_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "m.mp3").write_bytes(b"")
    (tmp_path / "m").write_bytes(b"")
    for name in ("m.mp3", "m"):
        with pytest.raises(FileProblem, match=r"no known suffix; a motion can be read from \.bvh, \.glb, .*\.fbx\."):
            load_motion(tmp_path / name)
    with pytest.raises(FileProblem, match=r"written to \.bvh"):
        save_motion(waving("soma30"), tmp_path / "m.mp3")
    assert (tmp_path / "m.mp3").read_bytes() == b""


def test_files_that_hold_something_else_say_so(tmp_path: Path) -> None:
    for name in ("m.bvh", "robot.xml", "m.fbx"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(FileProblem, match=r"BVH motion; a character can be read from \.glb, \.gltf\."):
        load_character(tmp_path / "m.bvh")
    with pytest.raises(FileProblem, match="MJCF robot; a motion can be read from"):
        load_motion(tmp_path / "robot.xml")
    with pytest.raises(FileProblem, match=r"read only; a motion can be written to .*Blender"):
        save_motion(waving("soma30"), tmp_path / "m.fbx")
    with pytest.raises(FileProblem, match="there is no file"):
        load_motion(tmp_path / "nothing.bvh")
    with pytest.raises(FileProblem, match="is a folder"):
        load_motion(tmp_path)


def test_options_of_other_formats_are_refused(tmp_path: Path) -> None:
    motion = waving("soma30")
    save_motion(motion, tmp_path / "m.bvh")
    with pytest.raises(BadValue, match="one motion"):
        load_motion(tmp_path / "m.bvh", clip="walk")
    with pytest.raises(BadValue, match="brings its own skeleton"):
        load_motion(tmp_path / "m.bvh", skeleton=skeleton("g1"))
    with pytest.raises(BadValue, match="T-pose"):
        save_motion(motion, tmp_path / "m.npz", tpose=True)
    with pytest.raises(BadValue, match="without a character"):
        save_motion(motion, tmp_path / "m.npz", character=mannequin(motion.skeleton))
    with pytest.raises(SkeletonMismatch):
        save_motion(motion, tmp_path / "m.amass.npz")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.bvh", "m.bvh.json"]


@pytest.mark.parametrize("suffix", WRITABLE)
@pytest.mark.parametrize("field", ["quats", "root_position", "translations"])
def test_numbers_that_are_not_finite_are_never_written(tmp_path: Path, suffix: str, field: str) -> None:
    motion = rest_motion(skeleton(BODY_OF.get(suffix, "soma30")), 6)
    motion = replace(motion, translations=motion.skeleton.offsets.expand(6, -1, -1).clone())
    getattr(motion, field)[4, ... if field == "root_position" else 3] = float("nan")
    joint = motion.skeleton.joints[0 if field == "root_position" else 3]
    (tmp_path / f"m{suffix}").write_bytes(b"old")
    with pytest.raises(BadValue, match=f"not finite at frame 4, joint '{joint}'"):
        save_motion(motion, tmp_path / f"m{suffix}")
    assert (tmp_path / f"m{suffix}").read_bytes() == b"old"


def test_numbers_that_are_not_finite_are_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    motion = rest_motion(skeleton("soma30"), 6)
    motion.quats[2, 5, 1] = float("inf")
    (tmp_path / "m.bvh").write_text("")
    monkeypatch.setattr("bunraku.files.bvh.load_bvh", lambda path, **_: motion)
    with pytest.raises(FormatProblem, match=r"m\.bvh' is not finite at frame 2, joint 'Neck2'"):
        load_motion(tmp_path / "m.bvh")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"root_position": torch.full((6, 3), 1e30)}, "1e\\+30 m away"),
        ({"fps": 1e300}, "frame rate"),
        ({"fps": 1e-45}, "frame rate"),
        ({"tips": {4: (0.0, 1.0)}}, "three numbers"),
        ({"tips": {4: (0.0, None, 1.0)}}, "three numbers"),
    ],
)
@pytest.mark.usefixtures("unchecked_shapes")
def test_numbers_that_no_motion_has_are_never_read(tmp_path: Path, change: dict, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    motion = rest_motion(skeleton("soma30"), 6)
    motion = replace(motion, skeleton=replace(motion.skeleton, **change)) if "tips" in change else replace(motion, **change)
    (tmp_path / "m.bvh").write_text("")
    monkeypatch.setattr("bunraku.files.bvh.load_bvh", lambda path, **_: motion)
    with pytest.raises(FormatProblem, match=said):
        load_motion(tmp_path / "m.bvh")
    if "fps" in change:
        with pytest.raises(BadValue, match="frame rate"):
            load_motion(tmp_path / "m.bvh", fps=change["fps"])
        with pytest.raises(BadValue, match="frame rate"):
            save_motion(motion, tmp_path / "m.glb")


def test_the_longest_suffix_counts() -> None:
    assert suffix_of("a.amass.npz", "loads", "motion") == ".amass.npz"
    assert suffix_of("amass.npz", "loads", "motion") == ".npz"
    assert suffix_of("A.GLB", "saves", "character") == ".glb"


def test_the_rooms_are_not_imported_before_a_file_needs_them() -> None:
    code = "import sys, bunraku.files.formats; print([m for m in ('mujoco', 'pxr', 'ufbx', 'bunraku.files.gltf', 'bunraku.files.npz') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
