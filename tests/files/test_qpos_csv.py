"""The robot's CSV: columns, axes, limits, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bunraku.errors import BadValue, FormatProblem, SkeletonMismatch
from bunraku.files.npz import load_npz
from bunraku.files.qpos_csv import load_qpos_csv, motion_from_qpos, qpos_from_motion, save_qpos_csv
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.hinges import hinge_angles, limit_violations
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import rest_motion
from bunraku.math.rotations import exp_quat, quat_multiply

G1 = skeleton("g1")
ZERO = ",".join(["0"] * 3 + ["1"] + ["0"] * 32)


def random_qpos(frames: int = 20) -> torch.Tensor:
    h = G1.hinges
    angles = h.lower + (h.upper - h.lower) * torch.rand(frames, 29)
    quats = exp_quat(torch.randn(frames, 3))
    return torch.cat([torch.randn(frames, 3), quats, angles], dim=-1)


def test_a_written_motion_comes_back(tmp_path: Path) -> None:
    motion = motion_from_qpos(G1, random_qpos(), 50.0)
    assert save_qpos_csv(motion, tmp_path / "m.csv") == {}
    back = load_qpos_csv(tmp_path / "m.csv", fps=50.0)
    here, there = forward_kinematics(motion), forward_kinematics(back)
    assert float((here.p_world_joint - there.p_world_joint).abs().max()) < 1e-5
    assert float((here.R_world_joint - there.R_world_joint).abs().max()) < 1e-5
    assert back.fps == 50
    assert back.provenance.notes == {}


def test_lines_are_the_numbers_mujoco_takes(tmp_path: Path) -> None:
    qpos = random_qpos()
    np.savetxt(tmp_path / "in.csv", qpos.numpy(), delimiter=",")
    save_qpos_csv(load_qpos_csv(tmp_path / "in.csv"), tmp_path / "out.csv")
    out = np.loadtxt(tmp_path / "out.csv", delimiter=",")
    assert out.shape == (20, 36)
    flip = np.sign((out[:, 3:7] * qpos[:, 3:7].numpy()).sum(-1, keepdims=True))
    out[:, 3:7] *= flip
    assert np.abs(out - qpos.numpy()).max() < 1e-5


def test_mujocos_axes(tmp_path: Path) -> None:
    # one metre forward (x), two to the left (y), three up (z), turned a quarter to the left about z
    cells = [1, 2, 3, math.cos(math.pi / 4), 0, 0, math.sin(math.pi / 4), *[0] * 29]
    (tmp_path / "m.csv").write_text(",".join(map(str, cells)))
    motion = load_qpos_csv(tmp_path / "m.csv")
    assert torch.allclose(motion.root_position[0], torch.tensor([2.0, 3, 1]))
    forward = forward_kinematics(motion).R_world_joint[0, 0] @ torch.tensor([0.0, 0, 1])
    assert torch.allclose(forward, torch.tensor([1.0, 0, 0]), atol=1e-6)


def test_a_file_without_a_rate_is_taken_for_30_and_that_is_noted(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(ZERO + "\n" + ZERO + "\n\n")
    motion = load_qpos_csv(tmp_path / "m.csv")
    assert (len(motion), motion.fps) == (2, 30.0)
    assert "30 assumed" in motion.provenance.notes["fps"]
    angles, _ = hinge_angles(motion)
    assert float(angles.abs().max()) < 1e-6


def test_angles_beyond_the_limits_are_clamped_and_counted(tmp_path: Path) -> None:
    qpos = random_qpos(3)
    qpos[1, 7 + 3] = G1.hinges.upper[3] + math.radians(20)
    qpos[2, 7 + 5] = G1.hinges.lower[5] - math.radians(3)
    motion = motion_from_qpos(G1, qpos, 30.0)
    notes = save_qpos_csv(motion, tmp_path / "m.csv")
    assert list(notes) == ["limits"]
    assert notes["limits"].startswith("2 of 87 angles")
    assert "20.00° ('left_knee_skel' at frame 1)" in notes["limits"]
    back = load_qpos_csv(tmp_path / "m.csv")
    assert float(limit_violations(G1.hinges, hinge_angles(back)[0]).max()) < 1e-6
    assert float(hinge_angles(back)[0][1, 3]) == pytest.approx(float(G1.hinges.upper[3]), abs=1e-6)


def test_a_file_beyond_the_limits_is_read_as_it_is_and_noted(tmp_path: Path) -> None:
    qpos = random_qpos(3)
    qpos[1, 7 + 3] = G1.hinges.upper[3] + math.radians(20)
    np.savetxt(tmp_path / "m.csv", qpos.numpy(), delimiter=",")
    motion = load_qpos_csv(tmp_path / "m.csv")
    assert "20.00° ('left_knee_skel' at frame 1)" in motion.provenance.notes["limits"]
    assert float(hinge_angles(motion)[0][1, 3]) == pytest.approx(float(qpos[1, 10]), abs=1e-5)


def test_turns_no_hinge_can_make_are_reported(tmp_path: Path) -> None:
    motion = motion_from_qpos(G1, random_qpos(4), 30.0)
    quats = motion.quats.clone()
    knee, toe = G1.role("left_knee"), G1.role("right_toe")
    quats[2, knee] = quat_multiply(quats[2, knee], exp_quat(torch.tensor([0.0, math.radians(15), 0])))  # the knee turns about x only
    quats[1, toe] = exp_quat(torch.tensor([math.radians(8), 0, 0]))
    notes = save_qpos_csv(replace(motion, quats=quats, translations=G1.offsets.expand(4, -1, -1)), tmp_path / "m.csv")
    assert "15.00° ('left_knee_skel' at frame 2)" in notes["hinges"]
    assert "8.00°" in notes["fixed"]
    assert set(notes) == {"hinges", "fixed", "bones"}


def test_another_robot_has_other_columns(tmp_path: Path) -> None:
    arm = replace(G1, hinges=replace(G1.hinges, joints=G1.hinges.joints[:5], axes=G1.hinges.axes[:5], lower=G1.hinges.lower[:5], upper=G1.hinges.upper[:5]))
    save_qpos_csv(rest_motion(arm, 3), tmp_path / "m.csv")
    assert np.loadtxt(tmp_path / "m.csv", delimiter=",").shape == (3, 12)
    assert len(load_qpos_csv(tmp_path / "m.csv", skeleton=arm)) == 3
    with pytest.raises(FormatProblem, match="12 columns; 'g1' needs 36"):
        load_qpos_csv(tmp_path / "m.csv")


def test_a_person_is_no_robot(tmp_path: Path) -> None:
    with pytest.raises(SkeletonMismatch, match="retarget"):
        save_qpos_csv(rest_motion(skeleton("soma30")), tmp_path / "m.csv")
    assert not (tmp_path / "m.csv").exists()


BROKEN = {
    "35 columns": (ZERO.rsplit(",", 1)[0], "line 1: 35 columns; 'g1' needs 36"),
    "37 columns": (ZERO + ",0", "line 1: 37 columns"),
    "ragged": (ZERO + "\n" + ZERO + ",1\n", "line 2: 37 columns"),
    "header": (",".join(f"q{i}" for i in range(36)) + "\n" + ZERO, "line 1, column 1: 'q0' is no number"),
    "text": (ZERO + "\n" + ZERO.replace("1", "one"), "line 2, column 4: 'one' is no number"),
    "empty cell": (ZERO.replace("1,", ","), "line 1, column 4: '' is no number"),
    "empty": ("", "no frames"),
    "blank lines": ("\n\n  \n", "no frames"),
    "not finite": (ZERO + "\n" + ZERO.replace("1,", "nan,"), "line 2: a number is not finite"),
    "no quaternion": (ZERO + "\n" + ZERO.replace("1,", "0,"), "frame 2: columns 4 to 7 have length 0"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused(tmp_path: Path, name: str) -> None:
    text, sentence = BROKEN[name]
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(FormatProblem, match=sentence):
        load_qpos_csv(tmp_path / "m.csv")


def test_other_refusals(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(FormatProblem, match="not a text file"):
        load_qpos_csv(tmp_path / "m.csv")
    (tmp_path / "m.csv").write_text(ZERO)
    with pytest.raises(BadValue, match="no frame rate"):
        load_qpos_csv(tmp_path / "m.csv", fps=-30.0)


def test_the_shipped_g1_motion_plays_within_its_limits(shared: Path, tmp_path: Path) -> None:
    motion = load_npz(shared / "data" / "kimodo-examples" / "g1-02_multi_text_ee_constraint" / "motion.npz")
    notes = save_qpos_csv(motion, tmp_path / "m.csv")
    played = load_qpos_csv(tmp_path / "m.csv")
    assert float(limit_violations(G1.hinges, hinge_angles(played)[0]).max()) < 1e-6
    assert set(notes) == {"limits", "hinges", "fixed"}  # the release's joints are balls, and 62 angles lie up to 1.3° outside
    difference = (forward_kinematics(motion).p_world_joint - forward_kinematics(played).p_world_joint).norm(dim=-1)
    assert float(difference.max()) < 0.02
    assert float((qpos_from_motion(motion)[:, :7] - qpos_from_motion(played)[:, :7]).abs().max()) < 1e-5
