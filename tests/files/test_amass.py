"""AMASS NPZ: axes, the pelvis offset, old and new layouts, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bunraku.errors import BadValue, FormatProblem, SkeletonMismatch
from bunraku.files.amass import load_amass, save_amass
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, Provenance, rest_motion
from bunraku.math.rotations import exp_quat, quat_distance, quat_rotate

PELVIS = np.array([0.002253, -0.372262, 0.012329])  # from the released skeleton


def random_motion(frames: int = 6) -> Motion:
    body = skeleton("smplx22")
    quats = exp_quat(torch.randn(frames, len(body), 3))
    origin = Provenance(prompt="a dance", seed=3, notes={"unit": "m"})
    return Motion(skeleton=body, fps=60.0, root_position=torch.randn(frames, 3), quats=quats, provenance=origin)


def standing(frames: int = 4) -> dict[str, np.ndarray]:
    """A person who stands as AMASS has it: turned upright from the model's +Y up by a quarter turn about x."""
    upright = np.tile([math.pi / 2, 0, 0], (frames, 1))
    return {
        "trans": np.zeros((frames, 3)),
        "root_orient": upright,
        "pose_body": np.zeros((frames, 63)),
        "betas": np.zeros(16),
        "mocap_frame_rate": np.array(120.0),
    }


def test_a_written_motion_comes_back(tmp_path: Path) -> None:
    motion = random_motion()
    assert save_amass(motion, tmp_path / "m.npz") == {}
    back = load_amass(tmp_path / "m.npz")
    assert float(quat_distance(back.quats, motion.quats).max()) < 1e-5
    assert float((back.root_position - motion.root_position).abs().max()) < 1e-6
    assert back.fps == 60
    assert replace(back.provenance, source=None) == motion.provenance


def test_a_person_standing_in_amass_stands_upright_here(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", **standing())
    motion = load_amass(tmp_path / "m.npz")
    p = forward_kinematics(motion).p_world_joint[0]
    head, feet = p[motion.skeleton.role("head")], p[motion.skeleton.role("left_foot")]
    assert float(head[1] - p[0, 1]) > 0.5
    assert float(p[0, 1] - feet[1]) > 0.8
    # a quarter turn about x takes the model's +Z front to −Y, which is backwards in a world where people face +Y
    left, toe, heel = p[motion.skeleton.role("left_hip")], p[motion.skeleton.role("left_toe")], feet
    assert float(left[0]) < 0
    assert float((toe - heel)[2]) < -0.1


def test_a_body_facing_our_way_faces_plus_y_there(tmp_path: Path) -> None:
    save_amass(rest_motion(skeleton("smplx22")), tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as stored:
        turn = exp_quat(torch.from_numpy(stored["root_orient"][0]))
        trans = stored["trans"][0]
    assert torch.allclose(quat_rotate(turn, torch.tensor([0.0, 0, 1]).double()), torch.tensor([0.0, 1, 0]).double(), atol=1e-9)
    assert torch.allclose(quat_rotate(turn, torch.tensor([0.0, 1, 0]).double()), torch.tensor([0.0, 0, 1]).double(), atol=1e-9)
    height = float(skeleton("smplx22").offsets[0, 1])
    assert np.allclose(trans + PELVIS, [0, 0, height], atol=1e-6)


def test_the_pelvis_lies_at_trans_plus_its_rest_position_and_the_offset_does_not_turn(tmp_path: Path) -> None:
    arrays = standing(2)
    arrays["trans"][:] = [1.0, 2.0, 3.0]
    arrays["root_orient"][1] = [0.3, -2.0, 1.0]
    np.savez(tmp_path / "m.npz", **arrays)
    x, y, z = np.array([1.0, 2, 3]) + PELVIS
    assert np.allclose(load_amass(tmp_path / "m.npz").root_position.numpy(), [[-x, z, y]] * 2, atol=1e-6)


@pytest.mark.parametrize("width", [156, 165])
def test_older_files_with_all_turns_in_one_array(tmp_path: Path, width: int) -> None:
    motion = random_motion()
    save_amass(motion, tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as stored:
        poses = np.concatenate([stored["root_orient"], stored["pose_body"], np.ones((6, width - 66))], axis=1)
        np.savez(tmp_path / "old.npz", poses=poses, trans=stored["trans"], betas=np.ones(16), mocap_framerate=np.array(60), gender=np.array(b"male"))
    back = load_amass(tmp_path / "old.npz")
    assert float(quat_distance(back.quats, motion.quats).max()) < 1e-5
    assert back.fps == 60
    assert set(back.provenance.notes) == {"betas", "surface_model"}


def test_what_the_file_cannot_hold_is_said(tmp_path: Path) -> None:
    motion = random_motion()
    assert "bones" in save_amass(replace(motion, translations=torch.randn(6, 22, 3)), tmp_path / "m.npz")
    tall = replace(motion.skeleton, offsets=motion.skeleton.offsets * 1.1)
    assert "bones" in save_amass(replace(motion, skeleton=tall), tmp_path / "m.npz")
    with pytest.raises(SkeletonMismatch, match="retarget"):
        save_amass(rest_motion(skeleton("soma30")), tmp_path / "m.npz")


def test_every_array_of_the_release_is_there(tmp_path: Path) -> None:
    save_amass(random_motion(), tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as stored:
        shapes = {key: stored[key].shape for key in stored.files}
        assert float(stored["mocap_time_length"]) == pytest.approx(0.1)
    expected = {"trans": (6, 3), "root_orient": (6, 3), "pose_body": (6, 63), "pose_hand": (6, 90), "pose_jaw": (6, 3), "pose_eye": (6, 6)}
    assert shapes == expected | {"betas": (16,)} | dict.fromkeys(
        ("num_betas", "gender", "surface_model_type", "mocap_frame_rate", "mocap_time_length", "bunraku"), ()
    )


BROKEN = {
    "no trans": ({"trans": None}, "no AMASS file"),
    "no turns": ({"pose_body": None}, "no AMASS file"),
    "no rate": ({"mocap_frame_rate": None}, "does not say its frame rate"),
    "negative rate": ({"mocap_frame_rate": np.array(-120.0)}, "-120 frames per second"),
    "rate of zero": ({"mocap_frame_rate": np.array(0.0)}, "0 frames per second"),
    "short body": ({"pose_body": np.zeros((4, 62))}, r"shape \[4, 62\]; \[4 63\]"),
    "frames differ": ({"trans": np.zeros((5, 3))}, r"\[5 3\] is needed"),
    "no frames": ({"trans": np.zeros((0, 3))}, "no frames"),
    "not finite": ({"pose_body": np.full((4, 63), np.inf)}, "not finite"),
    "pickled": ({"trans": np.array([None])}, "pickled"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused(tmp_path: Path, name: str) -> None:
    change, sentence = BROKEN[name]
    arrays = {key: value for key, value in {**standing(), **change}.items() if value is not None}
    np.savez(tmp_path / "m.npz", **arrays)
    with pytest.raises(FormatProblem, match=sentence):
        load_amass(tmp_path / "m.npz")


def test_a_missing_rate_can_be_given(tmp_path: Path) -> None:
    arrays = standing()
    del arrays["mocap_frame_rate"]
    np.savez(tmp_path / "m.npz", **arrays)
    assert load_amass(tmp_path / "m.npz", fps=120.0).fps == 120
    with pytest.raises(BadValue, match="no frame rate"):
        load_amass(tmp_path / "m.npz", fps=-1.0)
