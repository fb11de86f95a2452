"""Kimodo's constraint files: the poses mean what the release means, and ours are written back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from some_constraints import TYPES, difference, some_constraint

from bunraku.errors import BadValue, BunrakuError, FormatProblem, SkeletonMismatch
from bunraku.files.npz import load_npz
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.soma import expand_soma, reduce_soma, relaxed_hands
from bunraku.timeline import PoseKey, RootPath, load_constraints, save_constraints

EXAMPLES = Path("data") / "kimodo-examples"
# the joints that the release observes for each hand and foot
CHAINS = {
    "soma30": {"hand": ("Hand", "HandMiddleEnd"), "foot": ("Foot", "ToeBase")},
    "g1": {"hand": ("_wrist_yaw_skel", "_hand_roll_skel"), "foot": ("_ankle_roll_skel", "_toe_base")},
}


def example(shared: Path, name: str) -> tuple[Motion, list]:
    folder = shared / EXAMPLES / name
    motion = load_npz(folder / "motion.npz")
    return motion, load_constraints(folder / "constraints.json", motion.skeleton)


def away_cm(motion: Motion, key: PoseKey, joints: list[int]) -> torch.Tensor:
    """(K N) how far joints of a pose are from the shipped motion."""
    shipped = forward_kinematics(motion).p_world_joint[key.frames][:, joints]
    return 100 * (forward_kinematics(key.poses).p_world_joint[:, joints] - shipped).norm(dim=-1)


def chain(body: str, effector: str) -> list[int]:
    side, part = effector.split("_")
    return [skeleton(body).index[(side.capitalize() if body == "soma30" else side) + joint] for joint in CHAINS[body][part]]


def test_full_body_keyframes_agree_with_the_shipped_motion(shared: Path) -> None:
    motion, (key,) = example(shared, "soma-03_full_body_keyframes")
    assert isinstance(key, PoseKey)
    assert key.effectors is None
    assert key.frames.tolist() == [79, 134]
    assert float(away_cm(motion, key, list(range(30))).mean()) == pytest.approx(0.45, abs=0.005)


def test_end_effectors_agree_with_the_shipped_motion(shared: Path) -> None:
    motion, keys = example(shared, "soma-04_ee_constraint")
    assert [key.effectors for key in keys] == [("right_foot",), ("left_foot",), ("left_hand",), ("right_hand",)]
    for key in keys:
        assert float(away_cm(motion, key, chain("soma30", key.effectors[0])).mean()) < 0.005


def test_the_hands_of_g1_agree_with_the_shipped_motion(shared: Path) -> None:
    motion, keys = example(shared, "g1-02_multi_text_ee_constraint")
    measured = [float(away_cm(motion, key, chain("g1", key.effectors[0])).mean()) for key in keys]
    assert measured == pytest.approx([4.45, 3.82], abs=0.005)


def test_a_root_path_agrees_with_the_shipped_motion(shared: Path) -> None:
    motion, (path,) = example(shared, "soma-05_root_path")
    assert isinstance(path, RootPath)
    assert path.heading is None
    away = 100 * (motion.root_position[path.frames][:, [0, 2]] - path.xz).norm(dim=-1)
    assert float(away.mean()) == pytest.approx(10.56, abs=0.005)
    assert float(away.max()) == pytest.approx(22.9, abs=0.05)


def write(folder: Path, *entries: object) -> Path:
    (folder / "c.json").write_text(json.dumps(list(entries)))
    return folder / "c.json"


def pose_entry(kind: str, joints: int, **more: object) -> dict:
    return {"type": kind, "frame_indices": [4], "local_joints_rot": [[[0.1, 0.2, -0.1]] * joints], "root_positions": [[1, 0.9, 2]], **more}


def test_headings_are_angles_of_cos_and_sin(tmp_path: Path) -> None:
    path = write(tmp_path, {"type": "root2d", "frame_indices": [1, 2], "smooth_root_2d": [[0, 0], [0, 1]], "global_root_heading": [[1, 0], [0, -1]]})
    (c,) = load_constraints(path, skeleton("soma30"))
    assert torch.allclose(c.heading, torch.tensor([0.0, -torch.pi / 2]))


def test_end_effectors_are_named_by_role(tmp_path: Path) -> None:
    (c,) = load_constraints(write(tmp_path, pose_entry("end-effector", 34, joint_names=["Hips", "RightHand", "Hips"])), skeleton("g1"))
    assert c.effectors == ("hips", "right_hand")
    assert c.smooth_xz is None


def test_soma_comes_with_30_or_77_joints(tmp_path: Path) -> None:
    small, large = skeleton("soma30"), skeleton("soma77")
    (few,), (more,) = (load_constraints(write(tmp_path, pose_entry("fullbody", 30)), body) for body in (small, large))
    assert torch.equal(more.poses.quats, expand_soma(few.poses).quats)
    assert torch.equal(more.poses.quats[0, large.index["LeftHandRing2"]], relaxed_hands()[large.index["LeftHandRing2"]])
    (many,), (fewer,) = (load_constraints(write(tmp_path, pose_entry("fullbody", 77)), body) for body in (large, small))
    assert torch.equal(fewer.poses.quats, reduce_soma(many.poses).quats)
    assert [fewer.poses.skeleton.name, more.poses.skeleton.name] == ["soma30", "soma77"]


@pytest.mark.parametrize("name", ["soma30", "soma77", "g1", "smplx22"])
def test_poses_and_paths_come_back(tmp_path: Path, name: str) -> None:
    body = skeleton(name)
    given = [some_constraint(kind, seed, body) for seed, kind in enumerate(("path", "path with heading", "pose", "hand pose", "hand pose", "pose"))]
    save_constraints(given, tmp_path / "c.json", form="kimodo")
    assert isinstance(json.loads((tmp_path / "c.json").read_text()), list)
    for a, b in zip(given, load_constraints(tmp_path / "c.json", body), strict=True):
        assert difference(a, b) < 1e-5


def test_what_the_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    cannot = [kind for kind in TYPES if "path" not in kind and kind not in ("pose", "hand pose")]
    for kind in cannot:
        with pytest.raises(BadValue, match=r"constraints\[0\].*Kimodo's format cannot hold.*save it in our own format"):
            save_constraints([some_constraint(kind, 1)], tmp_path / "c.json", form="kimodo")
    with pytest.raises(BadValue, match="'cmu23'"):
        save_constraints([some_constraint("pose", 1, skeleton("cmu23"))], tmp_path / "c.json", form="kimodo")
    assert not (tmp_path / "c.json").exists()


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"type": "root2d", "smooth_root_2d": [[0, 0]]}, r"constraints\[0\] \(root2d\) has no 'frame_indices'"),
        ({"type": "root2d", "frame_indices": [0]}, "has no 'smooth_root_2d'; x and z for each entry"),
        ({"type": "root2d", "frame_indices": [0, 1], "smooth_root_2d": [[0, 0]]}, r"of the shape \[1, 2\]; \[2 2\] is needed"),
        ({"type": "root2d", "frame_indices": [], "smooth_root_2d": []}, "holds at no frame"),
        ({"type": "root2d", "frame_indices": [-1], "smooth_root_2d": [[0, 0]]}, "counted from 0"),
        ({"type": "root2d", "frame_indices": [1.5], "smooth_root_2d": [[0, 0]]}, "whole"),
        ({"type": "root2d", "frame_indices": [10**9], "smooth_root_2d": [[0, 0]]}, "beyond 1,000,000"),
        ({"type": "root2d", "frame_indices": [10**30], "smooth_root_2d": [[0, 0]]}, "frame_indices"),
        ({"type": "root2d", "frame_indices": "all", "smooth_root_2d": [[0, 0]]}, "a text in 'frame_indices'"),
        ({"type": "root2d", "frame_indices": [0], "smooth_root_2d": [[0, "1"]]}, "no number"),
        ({"type": "root2d", "frame_indices": [0], "smooth_root_2d": [[0, None]]}, "no number"),
        ({"type": "root2d", "frame_indices": [0, 1], "smooth_root_2d": [[0, 1], [2]]}, "rows of different lengths"),
        ({"type": "root2d", "frame_indices": [0], "smooth_root_2d": [[0, 0]], "global_root_heading": [[90, 0]]}, "cos and sin of an angle"),
        (pose_entry("left-hand", 30) | {"root_positions": [[0, 1]]}, r"'root_positions' of the shape \[1, 2\]; \[1 3\]"),
        (pose_entry("end-effector", 30), "has no 'joint_names'"),
        (pose_entry("end-effector", 30, joint_names=[]), "names nothing"),
        (pose_entry("end-effector", 30, joint_names=["Tail"]), "names 'Tail'.*LeftHand, RightHand, LeftFoot, RightFoot, Hips"),
        (pose_entry("left-elbow", 30), "unknown type 'left-elbow'; one of .*left-hand"),
        ({"frame_indices": [0]}, "has no 'type'"),
        ({"type": 7}, "has a number as 'type'"),
        ([1], r"constraints\[0\] is an array; an object"),
    ],
)
def test_a_sentence_for_each_mistake(tmp_path: Path, entry: object, says: str) -> None:
    with pytest.raises(FormatProblem, match=says) as caught:
        load_constraints(write(tmp_path, entry), skeleton("soma30"))
    assert "c.json" in str(caught.value)


def test_poses_of_another_skeleton_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SkeletonMismatch, match=r"22 joints \(as smplx22 has\); 'soma30' needs 30 or 77"):
        load_constraints(write(tmp_path, pose_entry("fullbody", 22)), skeleton("soma30"))
    with pytest.raises(SkeletonMismatch, match="'g1' needs 34"):
        load_constraints(write(tmp_path, pose_entry("fullbody", 77)), skeleton("g1"))
    with pytest.raises(SkeletonMismatch, match="not 'cmu23'"):
        load_constraints(write(tmp_path, pose_entry("fullbody", 23)), skeleton("cmu23"))


@pytest.mark.parametrize(
    "text", ["", "[", '[{"type": "root2d", "fra', "[NaN]", "7", '"a"', "null", "[" * 100_000, "[1" + "0" * 5000 + "]", '{"a": 1}', "\x00", "{}"]
)
def test_files_that_are_no_constraints(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(BunrakuError, match=r"c\.json"):
        load_constraints(tmp_path / "c.json", skeleton("soma30"))
