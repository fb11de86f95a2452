"""Writing BVH: what was read comes back, SOMA looks as Kimodo writes it, and no Euler angle jumps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bunraku.errors import BadValue, FileProblem
from bunraku.files.bvh import load_bvh, save_bvh
from bunraku.files.bvh_grammar import parse_bvh
from bunraku.files.bvh_known import seed_frames
from bunraku.files.bvh_write import euler_zyx
from bunraku.kinematics.forward import forward_kinematics, rest_poses
from bunraku.kinematics.library import raw, skeleton
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.rest import rebase
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import axis_quat, euler_to_quat, exp_quat, geodesic_distance, quat_distance, quat_multiply


def random_motion(body: Skeleton, frames: int = 9, *, fps: float = 30.0, moving: tuple[int, ...] = ()) -> Motion:
    translations = body.offsets.expand(frames, -1, -1).clone() if moving else None
    for joint in moving:
        translations[:, joint] += 0.2 * torch.randn(frames, 3)
    return Motion(skeleton=body, fps=fps, root_position=torch.randn(frames, 3), quats=exp_quat(torch.randn(frames, len(body), 3)), translations=translations)


def random_tree(joints: int, *, names: tuple[str, ...] | None = None) -> Skeleton:
    """Parents before children, but not in the depth-first order of a file."""
    return Skeleton(
        name="tree",
        joints=names or tuple(f"joint {j}:x" for j in range(joints)),
        parents=(-1, *(int(torch.randint(0, j, ())) for j in range(1, joints))),
        offsets=0.4 * torch.randn(joints, 3),
        rest_quats=exp_quat(torch.randn(joints, 3)),
        tips={joints - 1: (0.1, 0.2, -0.3)},
    )


def assert_same_world(a: Motion, b: Motion, *, frames_too: bool = True) -> None:
    """World positions within 1e-4 m and, if the joint frames are to be the same, world turns within 1e-4 rad; joints by name."""
    poses_a, poses_b = forward_kinematics(a), forward_kinematics(b)
    order = [b.skeleton.index[joint] for joint in a.skeleton.joints]
    assert (poses_a.p_world_joint - poses_b.p_world_joint[:, order]).abs().max() < 1e-4
    if frames_too:
        assert geodesic_distance(poses_a.R_world_joint.double(), poses_b.R_world_joint[:, order].double()).max() < 1e-4


@pytest.mark.parametrize("tpose", [False, True])
@pytest.mark.parametrize("name", ["soma30", "soma77", "g1", "smplx22", "cmu23"])
def test_library_skeletons_come_back_as_themselves(tmp_path: Path, name: str, tpose: bool) -> None:
    motion = random_motion(skeleton(name), fps=29.97)
    save_bvh(motion, tmp_path / "m.bvh", tpose=tpose)
    back = load_bvh(tmp_path / "m.bvh")
    assert back.skeleton is motion.skeleton
    assert back.fps == 29.97
    assert_same_world(motion, back)
    assert quat_distance(back.quats.double(), motion.quats.double()).max() < 1e-5


@pytest.mark.parametrize("moving", [(), (2, 5)])
def test_any_tree_comes_back(tmp_path: Path, moving: tuple[int, ...]) -> None:
    motion = random_motion(random_tree(40), moving=moving)
    save_bvh(motion, tmp_path / "m.bvh")
    back = load_bvh(tmp_path / "m.bvh", unit=0.01)
    assert set(back.skeleton.joints) == set(motion.skeleton.joints)
    assert_same_world(motion, back)
    assert back.skeleton.tips[back.skeleton.index["joint 39:x"]] == pytest.approx((0.1, 0.2, -0.3), abs=1e-6)
    assert len(back.skeleton.tips) == 1  # leaves without a tip get an End Site of no length, which says nothing
    channels = dict(zip(back.skeleton.joints, parse_bvh((tmp_path / "m.bvh").read_bytes(), "m").channels, strict=True))
    assert {joint for joint, names in channels.items() if len(names) == 6} == {motion.skeleton.joints[joint] for joint in (0, *moving)}
    again = tmp_path / "again.bvh"
    save_bvh(back, again)
    assert_same_world(load_bvh(again, unit=0.01), back)


@pytest.mark.parametrize("moving", [(), (2, 5)])
def test_tpose_makes_zero_rotations_the_rest_pose(tmp_path: Path, moving: tuple[int, ...]) -> None:
    body = random_tree(12)
    save_bvh(random_motion(body, moving=moving), tmp_path / "m.bvh", tpose=True)
    save_bvh(rest_motion(body), tmp_path / "rest.bvh", tpose=True)
    assert np.abs(parse_bvh((tmp_path / "rest.bvh").read_bytes(), "rest").values[:, 3:]).max() < 1e-4
    table = parse_bvh((tmp_path / "m.bvh").read_bytes(), "m")
    rest = table.offsets.copy()
    for joint, parent in enumerate(table.parents[1:], start=1):
        rest[joint] += rest[parent]
    order = [body.index[name] for name in table.names]
    assert np.abs(rest / 100 - rest_poses(body).p_world_joint[order].numpy()).max() < 1e-5
    motion = random_motion(body, moving=moving)
    save_bvh(motion, tmp_path / "m.bvh", tpose=True)
    assert_same_world(motion, load_bvh(tmp_path / "m.bvh", unit=0.01), frames_too=False)


KIMODO_TOP = """HIERARCHY
ROOT Root
{
  OFFSET 0.000000 0.000000 0.000000
  CHANNELS 6 Xposition Yposition Zposition Zrotation Yrotation Xrotation
  JOINT Hips
  {
    OFFSET 0.000000 100.000000 0.000000
    CHANNELS 6 Xposition Yposition Zposition Zrotation Yrotation Xrotation
    JOINT Spine1
    {
      OFFSET {spine}
      CHANNELS 3 Zrotation Yrotation Xrotation
      JOINT Spine2
"""


@pytest.mark.parametrize("name", ["soma30", "soma77"])
def test_soma_is_written_as_kimodo_writes_it(tmp_path: Path, name: str) -> None:
    body = skeleton(name)
    motion = random_motion(body, frames=2)
    for tpose, spine in ((True, "-0.013700 5.003800 -0.053700"), (False, "5.003951 -0.037067 -0.013700")):
        save_bvh(motion, tmp_path / "m.bvh", tpose=tpose)
        text = (tmp_path / "m.bvh").read_text()
        assert text.startswith(KIMODO_TOP.replace("{spine}", spine))
        assert "End Site" not in text
        assert "\nFrames: 2\nFrame Time: 0.03333333333333333\n" in text
        table = parse_bvh(text.encode(), "m")
        assert table.names == ("Root", *body.joints)
        assert np.abs(table.values[:, :6]).max() == 0
        assert np.abs(table.values[:, 6:9] - motion.root_position.numpy() * 100).max() < 1e-4
        if name == "soma77":
            expected = body.offsets.numpy() if tpose else np.array(raw("soma77")["seed_bvh_offsets_m"])
            assert np.abs(table.offsets[2:] / 100 - expected[1:]).max() < 2e-6
    save_bvh(rest_motion(body), tmp_path / "rest.bvh", tpose=True)
    assert np.abs(parse_bvh((tmp_path / "rest.bvh").read_bytes(), "rest").values[:, 9:]).max() < 1e-4


def test_seed_frames_lie_along_the_bone() -> None:
    """The released offsets on both rests, read apart, fit together through O_j in one direction only."""
    body = skeleton("soma77")
    seed = rebase(random_motion(body), seed_frames(body).transpose(-1, -2)).skeleton.offsets
    wrong = rebase(random_motion(body), seed_frames(body)).skeleton.offsets
    released = torch.tensor(raw("soma77")["seed_bvh_offsets_m"])
    assert (seed - released)[1:].abs().max() < 2e-6
    assert (wrong - released)[1:].abs().max() > 0.1


# --- Euler angles ---------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000), scale=st.sampled_from([0.01, 0.1, 1.0, 3.0]))
def test_angles_give_the_turns_back_and_never_jump(seed: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    quats = exp_quat(scale * torch.randn(60, 4, 3, generator=generator, dtype=torch.float64).cumsum(dim=0))
    angles = torch.from_numpy(euler_zyx(quats))
    assert quat_distance(euler_to_quat("zyx", angles), quats).max() < 1e-6
    assert angles.diff(dim=0).abs().max() <= torch.pi + 1e-9


@pytest.mark.parametrize("middle", [0.0, 0.4])
def test_turning_over_through_gimbal_lock_is_smooth(middle: float) -> None:
    """A wheel about y turns on and on: of the two triples the near one must be taken each time b passes ±90°."""
    b = torch.linspace(0, 4 * torch.pi, 289, dtype=torch.float64)
    first, last = torch.full_like(b, 0.3), torch.full_like(b, middle)
    quats = euler_to_quat("zyx", torch.stack([first, b, last], dim=-1))[:, None]
    angles = torch.from_numpy(euler_zyx(quats))[:, 0]
    assert angles[:, 1].min() < 0.1
    assert angles[:, 1].max() > 12.4
    assert angles.diff(dim=0).abs().max() < 1.01 * (b[1] - b[0])


def test_held_gimbal_lock_keeps_the_last_angle() -> None:
    down = axis_quat("y", torch.full((10,), torch.pi / 2, dtype=torch.float64))
    free = euler_to_quat("zyx", torch.tensor([[0.5, 1.5, 0.7]], dtype=torch.float64))
    locked = quat_multiply(axis_quat("z", torch.linspace(-0.2, -0.1, 10, dtype=torch.float64)), down)
    quats = torch.cat([free, locked])[:, None]
    angles = torch.from_numpy(euler_zyx(quats))
    assert quat_distance(euler_to_quat("zyx", angles), quats).max() < 1e-6
    assert angles[1:, 0, 2].tolist() == pytest.approx([0.7] * 10)
    assert angles.diff(dim=0).abs().max() < 0.1


# --- what cannot be written -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", " a", "a\nb", "a\t", "open {"])
def test_names_that_bvh_cannot_hold_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadValue, match="cannot be written as BVH"):
        save_bvh(rest_motion(random_tree(2, names=("root", name))), tmp_path / "m.bvh")
    assert not (tmp_path / "m.bvh").exists()


def test_names_that_it_can_hold_come_back(tmp_path: Path) -> None:
    names = ("mixamorig:Hips", "Bip001 L  Thigh", "}", "JOINT", "End Site", "足首", "a{b}c", "MOTION", "OFFSET 1 2 3")
    save_bvh(random_motion(random_tree(9, names=names)), tmp_path / "m.bvh")
    assert sorted(load_bvh(tmp_path / "m.bvh").skeleton.joints) == sorted(names)


def test_numbers_that_are_not_finite_leave_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "m.bvh"
    motion = random_motion(skeleton("cmu23"))
    save_bvh(motion, path)
    before = path.read_bytes()
    broken = motion.root_position.clone()
    broken[3, 1] = torch.nan
    with pytest.raises(BadValue, match="not finite"):
        save_bvh(replace(motion, root_position=broken), path)
    assert path.read_bytes() == before
    with pytest.raises(FileProblem, match="does not exist"):
        save_bvh(motion, tmp_path / "nowhere" / "m.bvh")
    assert [p.name for p in tmp_path.iterdir()] == ["m.bvh"]


def test_a_deep_tree_can_be_written(tmp_path: Path) -> None:
    chain = Skeleton(name="chain", joints=tuple(f"j{j}" for j in range(1500)), parents=tuple(range(-1, 1499)), offsets=torch.full((1500, 3), 0.01))
    motion = random_motion(chain, frames=1)
    save_bvh(motion, tmp_path / "m.bvh")
    assert_same_world(motion, load_bvh(tmp_path / "m.bvh"))


# --- real files -----------------------------------------------------------------------------------------------------


def test_every_real_file_makes_the_round_trip(shared: Path, tmp_path: Path) -> None:
    paths = sorted(shared.joinpath("data").rglob("*.bvh"))
    assert len(paths) >= 27
    for path in paths:
        motion = load_bvh(path)
        for tpose in (False, True):
            save_bvh(motion, tmp_path / "m.bvh", tpose=tpose)
            back = load_bvh(tmp_path / "m.bvh")
            assert back.skeleton.joints == motion.skeleton.joints
            assert back.fps == motion.fps
            assert_same_world(motion, back)
            degrees = parse_bvh((tmp_path / "m.bvh").read_bytes(), "m").values
            assert np.abs(np.diff(degrees, axis=0)).max(initial=0) <= 180


def test_cmu_bones_are_in_metres(shared: Path) -> None:
    motion = load_bvh(shared / "data" / "cmu_mocap" / "bvh_samples" / "35_01.bvh")
    assert motion.skeleton.roles.keys() >= {"hips", "head", "left_foot", "right_toe", "left_hand"}
    p = forward_kinematics(motion).p_world_joint[1:]
    height = p[:, motion.skeleton.role("head"), 1] - p[:, motion.skeleton.role("left_toe"), 1]
    assert 1.3 < height.mean() < 1.8
    assert motion.fps == 120


def test_kimodos_own_file_is_soma77_standing_still(shared: Path) -> None:
    motion = load_bvh(shared / "data" / "kimodo-examples" / "somaskel77_standard_tpose.bvh")
    assert motion.skeleton is skeleton("soma77")
    assert quat_distance(motion.quats, motion.skeleton.rest_quats).max() == 0
    assert motion.root_position.tolist() == [[0, 1, 0]]


@pytest.mark.oracle
def test_bvhio_agrees_on_real_files(shared: Path, tmp_path: Path) -> None:
    bvhio = pytest.importorskip("bvhio")
    for path in sorted(shared.joinpath("data").rglob("*.bvh"))[::13]:
        motion = load_bvh(path)
        p_ours = forward_kinematics(motion).p_world_joint
        save_bvh(motion, tmp_path / "m.bvh")
        for file, unit in ((path, float(motion.provenance.notes["unit"].split()[0])), (tmp_path / "m.bvh", 0.01)):
            tree = bvhio.readAsHierarchy(str(file))
            for frame in range(0, len(motion), 60):
                tree.loadPose(frame, recursive=True)
                p_theirs = {joint.Name: torch.tensor(list(joint.PositionWorld)) * unit for joint, _, _ in tree.layout()}
                for name, joint in motion.skeleton.index.items():
                    assert (p_theirs[name] - p_ours[frame, joint]).norm() < 1e-4
