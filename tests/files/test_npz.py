"""Kimodo's NPZ: what the release wrote is read, what we write is read back, and nothing hostile is."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bunraku.errors import BadValue, FormatProblem
from bunraku.files.npz import load_npz, save_npz
from bunraku.kinematics.contacts import detect_contacts
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, Provenance
from bunraku.kinematics.skeleton import Hinges, Skeleton
from bunraku.kinematics.smooth_root import smoothed_root
from bunraku.math.rotations import exp_quat, quat_distance, quat_multiply, quat_to_matrix


def random_motion(name: str = "soma30", frames: int = 7) -> Motion:
    body = skeleton(name)
    turns = exp_quat(0.4 * torch.randn(frames, len(body), 3))
    return Motion(
        skeleton=body,
        fps=24.0,
        root_position=torch.randn(frames, 3),
        quats=quat_multiply(body.rest_quats.expand(frames, -1, -1), turns),
        contacts=torch.rand(frames, 4) > 0.5,
        provenance=Provenance(prompt="wave — 手を振る", seed=7, model="m", version="0.1", notes={"unit": "cm"}),
    )


def released_arrays(motion: Motion, six: bool = False) -> dict[str, np.ndarray]:
    """What the public release writes for a motion: no frame rate, no skeleton."""
    poses = forward_kinematics(motion)
    contacts = motion.contacts.float().numpy()
    return {
        "posed_joints": poses.p_world_joint.numpy(),
        "global_rot_mats": poses.R_world_joint.numpy(),
        "local_rot_mats": quat_to_matrix(motion.quats).numpy(),
        "root_positions": motion.root_position.numpy(),
        "foot_contacts": contacts[:, [0, 1, 1, 2, 3, 3]] if six else contacts,
    }


def distance(a: Motion, b: Motion) -> float:
    """Largest difference of two motions' turns [rad] and root positions [m]."""
    return max(float(quat_distance(a.quats, b.quats).max()), float((a.root_position - b.root_position).abs().max()))


@pytest.mark.parametrize("name", ["soma30", "soma77", "g1", "smplx22", "cmu23"])
def test_a_written_motion_comes_back(tmp_path: Path, name: str) -> None:
    motion = random_motion(name)
    save_npz(motion, tmp_path / "m.npz")
    back = load_npz(tmp_path / "m.npz")
    assert distance(motion, back) < 1e-5
    assert back.skeleton.joints == motion.skeleton.joints
    assert back.skeleton.roles == motion.skeleton.roles
    assert torch.equal(back.skeleton.offsets, motion.skeleton.offsets)
    assert torch.allclose(back.skeleton.rest_quats, motion.skeleton.rest_quats, atol=1e-6)
    assert back.fps == 24.0
    assert torch.equal(back.contacts, motion.contacts)
    assert replace(back.provenance, source=None) == motion.provenance
    assert back.provenance.source == str(tmp_path / "m.npz")


def test_a_skeleton_of_ones_own_with_stretching_bones_comes_back(tmp_path: Path) -> None:
    body = Skeleton(
        name="crane",
        joints=("base", "arm", "hook"),
        parents=(-1, 0, 1),
        offsets=torch.tensor([[0, 1, 0], [0, 0.5, 0.1], [0.3, 0, 0]]),
        rest_quats=exp_quat(torch.randn(3, 3)),
        roles={"hips": 0},
        tips={2: (0.1, 0.0, 0.25)},
        hinges=Hinges(joints=("arm",), axes=torch.tensor([[0.0, 0, 1]]), lower=torch.tensor([-float("inf")]), upper=torch.tensor([1.25])),
    )
    motion = Motion(skeleton=body, fps=59.94, root_position=torch.randn(4, 3), quats=exp_quat(torch.randn(4, 3, 3)), translations=torch.randn(4, 3, 3))
    save_npz(motion, tmp_path / "crane.npz")
    back = load_npz(tmp_path / "crane.npz")
    assert distance(motion, back) < 1e-5
    assert torch.equal(back.translations, motion.translations)
    assert back.fps == 59.94
    assert back.contacts is None
    assert dict(back.skeleton.tips) == dict(body.tips)
    assert back.skeleton.hinges.joints == ("arm",)
    assert back.skeleton.hinges.lower.item() == -float("inf")
    assert back.skeleton.hinges.upper.item() == 1.25


@pytest.mark.parametrize(("name", "columns"), [("soma77", 6), ("soma30", 4), ("g1", 4)])
def test_the_arrays_are_those_of_the_release(tmp_path: Path, name: str, columns: int) -> None:
    motion = random_motion(name)
    save_npz(motion, tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as stored:
        for key, values in released_arrays(motion, six=columns == 6).items():
            assert np.allclose(stored[key], values, atol=1e-6), key
        assert stored["posed_joints"].dtype == np.float32
        assert stored["foot_contacts"].dtype == bool
        assert np.array_equal(stored["smooth_root_pos"], smoothed_root(motion.root_position))
        assert np.allclose(np.linalg.norm(stored["global_root_heading"], axis=-1), 1)


def test_the_heading_is_cos_and_sin_of_the_facing_direction(tmp_path: Path) -> None:
    body = skeleton("soma30")
    turn = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.5, 0.0]])  # the second frame faces half a radian to the left
    quats = body.rest_quats.expand(2, -1, -1).clone()
    quats[:, 0] = exp_quat(turn)
    save_npz(Motion(skeleton=body, fps=30.0, root_position=torch.zeros(2, 3), quats=quats), tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as stored:
        assert np.allclose(stored["global_root_heading"], [[1, 0], [np.cos(0.5), np.sin(0.5)]], atol=2e-3)  # the hips of SOMA rest 0.07° askew


def test_contacts_that_are_missing_are_detected(tmp_path: Path) -> None:
    motion = replace(random_motion(), contacts=None)
    save_npz(motion, tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as stored:
        assert np.array_equal(stored["foot_contacts"], detect_contacts(motion).numpy())
    assert load_npz(tmp_path / "m.npz").contacts is None  # what was not known before is not taken for known now


@pytest.mark.parametrize(("name", "six"), [("soma30", False), ("soma77", True), ("g1", False), ("smplx22", False)])
def test_a_released_file_is_taken_for_the_skeleton_with_its_joint_count_and_that_is_noted(tmp_path: Path, name: str, six: bool) -> None:
    motion = random_motion(name)
    np.savez(tmp_path / "m.npz", **released_arrays(motion, six))
    back = load_npz(tmp_path / "m.npz")
    assert back.skeleton is skeleton(name)
    assert back.fps == 30.0
    assert set(back.provenance.notes) == {"skeleton", "fps"}
    assert distance(motion, back) < 1e-5
    assert torch.equal(back.contacts, motion.contacts)
    assert load_npz(tmp_path / "m.npz", fps=60.0).fps == 60.0


def test_global_turns_and_joint_positions_are_enough(tmp_path: Path) -> None:
    motion = random_motion()
    arrays = released_arrays(motion)
    np.savez(tmp_path / "m.npz", posed_joints=arrays["posed_joints"], global_rot_mats=arrays["global_rot_mats"])
    back = load_npz(tmp_path / "m.npz")
    assert distance(motion, back) < 1e-5
    assert back.contacts is None


def test_a_skeleton_that_only_has_the_same_number_of_joints_is_refused(tmp_path: Path) -> None:
    body = skeleton("soma30")
    stranger = replace(body, offsets=body.offsets * 1.2)
    motion = replace(random_motion(), skeleton=stranger)
    np.savez(tmp_path / "m.npz", **released_arrays(motion))
    with pytest.raises(FormatProblem, match="another skeleton"):
        load_npz(tmp_path / "m.npz")
    save_npz(motion, tmp_path / "m.npz")  # with our metadata the count decides nothing
    assert torch.equal(load_npz(tmp_path / "m.npz").skeleton.offsets, stranger.offsets)


def test_one_of_a_batch_is_chosen(tmp_path: Path) -> None:
    motions = [random_motion(), random_motion()]
    both = [released_arrays(motion) for motion in motions]
    np.savez(tmp_path / "two.npz", **{key: np.stack([arrays[key] for arrays in both]) for key in both[0]})
    np.savez(tmp_path / "one.npz", **{key: value[None] for key, value in both[1].items()})
    assert distance(load_npz(tmp_path / "two.npz", sample=1), motions[1]) < 1e-5
    assert distance(load_npz(tmp_path / "one.npz"), motions[1]) < 1e-5
    with pytest.raises(BadValue, match="sample=0 … 1"):
        load_npz(tmp_path / "two.npz")
    with pytest.raises(BadValue, match="sample 2 does not exist"):
        load_npz(tmp_path / "two.npz", sample=2)


def test_signs_of_quaternions_do_not_flip_between_frames(tmp_path: Path) -> None:
    body = skeleton("soma30")
    quats = body.rest_quats.expand(40, -1, -1).clone()
    quats[:, 0] = exp_quat(torch.linspace(0, 8, 40)[:, None] * torch.tensor([0.0, 1, 0]))
    save_npz(Motion(skeleton=body, fps=30.0, root_position=torch.zeros(40, 3), quats=quats), tmp_path / "turn.npz")
    back = load_npz(tmp_path / "turn.npz").quats
    assert float((back[1:] * back[:-1]).sum(-1).min()) > 0.9


def test_turns_with_rounding_drift_are_repaired_and_worse_ones_refused(tmp_path: Path) -> None:
    motion = random_motion()
    arrays = released_arrays(motion)
    arrays["local_rot_mats"] = arrays["local_rot_mats"] * 1.004
    np.savez(tmp_path / "m.npz", **arrays)
    assert distance(load_npz(tmp_path / "m.npz"), motion) < 1e-5
    arrays["local_rot_mats"][3, 5] = 2 * np.eye(3)
    np.savez(tmp_path / "m.npz", **arrays)
    with pytest.raises(FormatProblem, match="frame 3, joint 5"):
        load_npz(tmp_path / "m.npz")
    np.savez(tmp_path / "m.npz", **{**arrays, "local_rot_mats": -released_arrays(motion)["local_rot_mats"]})
    with pytest.raises(FormatProblem, match="mirrors"):
        load_npz(tmp_path / "m.npz")


ODD_HINGE = '{"joint": "b", "axis": [1, 0, 0], "lower": 0, "upper": 1}'
ONE_JOINT = '{"skeleton": {"name": "x", "joints": ["a"], "parents": [-1], "offsets_m": [[0.0, 0.0, 0.0]]}}'
BROKEN = {
    "pickled": ({"local_rot_mats": np.array([{"a": 1}], dtype=object)}, "pickled"),
    "text": ({"local_rot_mats": np.array("hello")}, "holds text"),
    "not square": ({"local_rot_mats": np.zeros((7, 30, 3, 2))}, r"shape \[7, 30, 3, 2\]"),
    "too flat": ({"local_rot_mats": np.zeros((9,))}, r"shape \[9\]"),
    "no frames": ({"local_rot_mats": np.zeros((0, 30, 3, 3))}, "no frames"),
    "unknown joints": ({"local_rot_mats": np.tile(np.eye(3), (7, 29, 1, 1))}, "29 joints"),
    "other frames": ({"root_positions": np.zeros((6, 3))}, "6 frames"),
    "not finite": ({"root_positions": np.full((7, 3), np.nan)}, r"not finite at index \(0, 0\)"),
    "five contacts": ({"foot_contacts": np.zeros((7, 5))}, r"\[7 4\] or \[7 6\]"),
    "negative rate": ({"fps": np.array(-30.0)}, "-30 frames per second"),
    "two rates": ({"fps": np.array([30.0, 60.0])}, "one number"),
    "no JSON": ({"bunraku": np.array("{")}, "no JSON"),
    "JSON that nests": ({"bunraku": np.array("[" * 100000)}, "no JSON"),
    "half a skeleton": ({"bunraku": np.array('{"skeleton": {"name": "x"}}')}, "incomplete"),
    "skeleton of another size": ({"bunraku": np.array(ONE_JOINT)}, "30 joints"),
    "a hinge without a joint": ({"bunraku": np.array(ONE_JOINT.replace("}}", f', "hinges": [{ODD_HINGE}]}}}}'))}, "incomplete"),
    "batched turns only": ({"local_rot_mats": np.tile(np.eye(3), (1, 7, 30, 1, 1))}, "the rotations hold a batch"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_arrays_are_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    change, sentence = BROKEN[name]
    np.savez(tmp_path / "bad.npz", **{**released_arrays(random_motion()), **change})
    with pytest.raises(FormatProblem, match=sentence) as caught:
        load_npz(tmp_path / "bad.npz")
    assert "bad.npz" in str(caught.value)


def test_a_cycle_in_the_stored_tree_is_refused(tmp_path: Path) -> None:
    save_npz(random_motion("cmu23"), tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as stored:
        arrays = dict(stored)
    meta = json.loads(str(arrays["bunraku"]))
    meta["skeleton"]["parents"][3] = 5
    np.savez(tmp_path / "m.npz", **{**arrays, "bunraku": np.array(json.dumps(meta))})
    with pytest.raises(FormatProblem, match="cycle"):
        load_npz(tmp_path / "m.npz")


def test_positions_alone_are_no_motion(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", posed_joints=np.zeros((7, 30, 3)))
    with pytest.raises(FormatProblem, match="only joint positions"):
        load_npz(tmp_path / "m.npz")


@pytest.mark.parametrize("keep", [0, 1, 100, 5000, -1])
def test_a_truncated_archive_is_refused(tmp_path: Path, keep: int) -> None:
    save_npz(random_motion(), tmp_path / "m.npz")
    data = (tmp_path / "m.npz").read_bytes()
    (tmp_path / "m.npz").write_bytes(data[:keep])
    with pytest.raises(FormatProblem, match=r"truncated|damaged"):
        load_npz(tmp_path / "m.npz")


def test_flipped_bytes_are_noticed(tmp_path: Path) -> None:
    save_npz(random_motion(), tmp_path / "m.npz")
    data = bytearray((tmp_path / "m.npz").read_bytes())
    with zipfile.ZipFile(tmp_path / "m.npz") as archive:
        start = archive.getinfo("local_rot_mats.npy").header_offset
    data[start + 600] ^= 0xFF
    (tmp_path / "m.npz").write_bytes(data)
    with pytest.raises(FormatProblem, match="damaged"):
        load_npz(tmp_path / "m.npz")


def _npy_header(shape: str, descr: str = "<f4") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize("shape", ["(1000000000, 30, 3, 3)", "(-1, 30, 3, 3)", "(7, 30, 3)"])
def test_a_header_that_claims_more_than_the_file_holds_allocates_nothing(tmp_path: Path, shape: str) -> None:
    with zipfile.ZipFile(tmp_path / "liar.npz", "w") as archive:
        archive.writestr("local_rot_mats.npy", _npy_header(shape) + bytes(4 * 7 * 30 * 9))
    with pytest.raises(FormatProblem, match="claims the shape"):
        load_npz(tmp_path / "liar.npz")


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    frames = 300_000  # 324 MB of zeros in 0.3 MB
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("local_rot_mats.npy", "w") as member:
        member.write(_npy_header(f"({frames}, 30, 3, 3)"))
        chunk = bytes(4 * 30 * 9 * 1000)
        for _ in range(frames // 1000):
            member.write(chunk)
    assert (tmp_path / "bomb.npz").stat().st_size < 2**20
    with pytest.raises(FormatProblem, match="no motion packs like that"):
        load_npz(tmp_path / "bomb.npz")


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (tmp_path / "sprung",))  # type: ignore[return-value]

    stream = io.BytesIO()
    np.save(stream, np.array([Trap()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "trap.npz", "w") as archive:
        archive.writestr("local_rot_mats.npy", stream.getvalue())
    with pytest.raises(FormatProblem, match="could run code"):
        load_npz(tmp_path / "trap.npz")
    assert not (tmp_path / "sprung").exists()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.npz").write_bytes(b"old")
    monkeypatch.setattr(np, "savez", lambda stream, **arrays: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(Exception, match="No space left"):
        save_npz(random_motion(), tmp_path / "m.npz")
    assert (tmp_path / "m.npz").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["m.npz"]


def test_the_shipped_examples_load_and_their_joints_are_where_they_were(shared: Path) -> None:
    files = sorted((shared / "data" / "kimodo-examples").glob("*/motion.npz"))
    assert len(files) == 6
    for file in files:
        motion = load_npz(file)
        poses = forward_kinematics(motion)
        with np.load(file) as stored:
            assert np.abs(poses.p_world_joint.numpy() - stored["posed_joints"]).max() < 1e-4
            assert np.abs(poses.R_world_joint.numpy() - stored["global_rot_mats"]).max() < 1e-4
            assert np.array_equal(motion.contacts.numpy(), stored["foot_contacts"])
            step = np.linalg.norm(stored["posed_joints"][:, 1:] - stored["posed_joints"][:, motion.skeleton.parents[1:]], axis=-1)
        assert np.abs(step - motion.skeleton.offsets[1:].norm(dim=-1).numpy()).max() < 1e-5  # 0.01 mm
