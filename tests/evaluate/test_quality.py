"""The whole report: laws it keeps, skeletons it must take, input it must refuse, real clips."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from evaluate_figure import make_figure, mirrored, move, turn, walk

from bunraku.errors import BadValue
from bunraku.evaluate.quality import check
from bunraku.evaluate.report import Report
from bunraku.kinematics.forward import local_rotations
from bunraku.kinematics.library import skeleton, skeleton_names
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import matrix_to_quat, quat_multiply, quat_rotate, yaw_quat
from tests.cmu import load_cmu

LENGTHS = {"m", "cm", "mm", "m/s", "cm/s", "m/s²", "m/s³"}


def busy(size: float = 1.0) -> Motion:
    """A walk with something wrong in every part: sinking, a folded arm, a knee bent backwards, uneven steps."""
    body = make_figure(size)
    motion = walk(body, frames=75, apart=0.4)
    motion = turn(turn(motion, "left_shoulder", "z", 150), "left_elbow", "z", 90)
    motion = turn(motion, "left_knee", "x", torch.where(torch.arange(75) > 60, -60.0, 0.0))
    motion = move(motion, x=0.1 * size * torch.sin(torch.arange(75) / 9), y=-0.06 * size)
    return replace(motion, contacts=(torch.arange(75)[:, None] // torch.tensor([9, 11, 13, 15])) % 2 == 0)


def assert_same(a: Report, b: Report, scale: float = 1.0, rel: float = 1e-6) -> None:
    for name, m in a.metrics().items():
        other = b[name]
        assert (m.value is None) == (other is None), name
        if m.value is not None:
            assert other == pytest.approx(m.value * (scale if m.unit in LENGTHS else 1), rel=rel, abs=1e-6), name


def test_the_busy_motion_is_busy() -> None:
    report = check(busy())
    for name in ("skate", "penetration_max", "collisions", "bend_frames", "jerk_mean", "cadence", "loop_pose", "distance"):
        assert report[name] > 0, name


def test_a_mirrored_motion_gives_the_same_report() -> None:
    assert_same(check(busy()), check(mirrored(busy())))


def test_lengths_scale_with_the_body_and_nothing_else_does() -> None:
    assert_same(check(busy(5.0)), check(busy(50.0)), scale=10)


def test_where_the_clip_stands_and_faces_does_not_matter() -> None:
    motion = busy()
    yaw = yaw_quat(torch.tensor(1.1, dtype=torch.float64))
    quats = motion.quats.clone()
    quats[:, 0] = quat_multiply(yaw, quats[:, 0])
    elsewhere = replace(motion, quats=quats, root_position=quat_rotate(yaw, motion.root_position) + torch.tensor([3.0, 0.0, -2.0]))
    a, b = check(motion), check(elsewhere)
    # the support is measured in fixed directions, to 0.1 %
    assert_same(a, b, rel=2e-3)


def test_the_same_speed_at_twice_the_rate_is_the_same_skate() -> None:
    slow, fast = (move(rest_motion(make_figure(), round(fps) + 1, fps), x=torch.arange(round(fps) + 1) * 0.05 / fps) for fps in (30.0, 60.0))
    assert check(slow)["skate"] == pytest.approx(check(fast)["skate"])
    assert check(slow)["distance"] == pytest.approx(check(fast)["distance"]) == pytest.approx(0.05)
    assert check(slow)["speed"] == pytest.approx(0.05)


@pytest.mark.parametrize("frames", [1, 2, 3, 40])
@pytest.mark.parametrize("name", skeleton_names())
def test_every_library_skeleton_and_length_gives_json(name: str, frames: int) -> None:
    report = check(rest_motion(skeleton(name), frames))
    values = json.loads(json.dumps(report.to_dict(), allow_nan=False))["metrics"]
    assert values["frames"] == frames
    assert values["penetration_max"] == pytest.approx(0, abs=1e-3)
    assert (values["speed"] is None) == (frames == 1)


def test_an_animal_without_roles_gets_what_applies() -> None:
    worm = Skeleton(name="worm", joints=("a", "b", "c"), parents=(-1, 0, 1), offsets=torch.tensor([[0.0, 1, 0], [0, 0, 1], [0, 0, 1]], dtype=torch.float64))
    report = check(turn(rest_motion(worm, 40), "b", "y", torch.linspace(0, 90, 40)))
    assert report.contacts is None
    assert report["turn_max"] == pytest.approx(90 / 39 * 30)
    assert report["loop_pose"] == pytest.approx(90)
    assert report["skate"] is report["phase"] is report["collisions"] is report["support_share"] is None


def test_any_set_of_roles_will_do() -> None:
    motion = walk(make_figure(), frames=40)
    roles = motion.skeleton.roles
    for seed in range(25):
        keep = torch.rand(len(roles), generator=torch.Generator().manual_seed(seed)) < 0.6
        body = replace(motion.skeleton, roles={role: j for (role, j), kept in zip(roles.items(), keep, strict=True) if kept})
        report = check(replace(motion, skeleton=body))
        json.dumps(report.to_dict(), allow_nan=False)
        assert (report["penetration_max"] is None) == (not any(role.endswith(("foot", "toe")) for role in body.roles))


def test_bones_that_stretch_are_measured_where_they_are() -> None:
    motion = rest_motion(make_figure(), 5)
    translations = motion.skeleton.offsets.expand(5, -1, -1).clone()
    translations[:, motion.skeleton.index["left_knee"], 1] -= 0.05
    assert check(replace(motion, translations=translations))["penetration_max"] == pytest.approx(50)


@pytest.mark.parametrize("field", ["quats", "root_position", "translations"])
def test_numbers_that_are_not_finite_name_the_first_frame_and_joint(field: str) -> None:
    motion = rest_motion(make_figure(), 9)
    motion = replace(motion, translations=motion.skeleton.offsets.expand(9, -1, -1).clone())
    broken = getattr(motion, field).clone()
    if field == "root_position":
        broken[4:, 1] = torch.inf
    else:
        broken[4:, 3, 2] = torch.nan
    joint = "hips" if field == "root_position" else "neck"
    with pytest.raises(BadValue, match=f"frame 4, joint '{joint}'"):
        check(replace(motion, **{field: broken}))


# --- real clips -----------------------------------------------------------------------------------------------------


def released_clips(shared) -> dict[str, Motion]:
    clips = {}
    for path in sorted((shared / "data" / "kimodo-examples").glob("*/motion.npz")):
        with np.load(path, allow_pickle=False) as data:
            p, R, contacts = (torch.from_numpy(data[key]) for key in ("posed_joints", "global_rot_mats", "foot_contacts"))
        body = skeleton({30: "soma30", 34: "g1"}[p.shape[1]])
        quats = matrix_to_quat(local_rotations(body, R.float()))
        clips[path.parent.name] = Motion(skeleton=body, fps=30.0, root_position=p[:, 0].float(), quats=quats, contacts=contacts > 0.5)
    return clips


def test_released_clips_keep_the_default_limits(shared) -> None:
    for name, motion in released_clips(shared).items():
        report = check(motion)
        assert report.failures() == [], name
        assert 1 < report["skate"] < 10, name
        assert report["contact_consistency"] > 0.93, name
        if "root_path" in name:
            assert report["phase"] == pytest.approx(0.5, abs=0.02)


def test_captured_walks_are_plausible_and_glitches_are_found(shared) -> None:
    walks = ["07_01", "08_01", "16_15", "35_01", "12_01"]
    glitches = ["05_06", "01_06", "09_01", "49_06"]
    rows = {row["seq"]: row for row in csv.DictReader((shared / "data" / "cmu_mocap" / "sequences.csv").open())}
    for name in walks + glitches:
        report = check(load_cmu(shared, name))
        assert report["pop_frames"] == int(rows[name]["glitch_frames_over_60deg"]), name
        if name in walks:
            assert 0.47 < report["phase"] <= 0.5, name
            assert 0.7 < report["cadence"] < 1.1, name
            assert 5 < report["skate"] < 10, name
            assert 0.8 < report["speed"] < 1.7, name
            assert -1 < report["ground_level"] < 4, name
            assert report["bend_frames"] == report["collisions"] == 0, name
