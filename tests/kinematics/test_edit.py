"""Editing clips: laws of resampling, joining, mirroring and placing."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bunraku.errors import BadValue, SkeletonMismatch
from bunraku.kinematics.edit import join, mirror, place, resample
from bunraku.kinematics.forward import forward_kinematics, rest_poses
from bunraku.kinematics.hinges import hinge_angles, motion_from_hinges
from bunraku.kinematics.library import skeleton, skeleton_names
from bunraku.kinematics.motion import Motion, Provenance, rest_motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.kinematics.symmetry import NO_PARTNER, mirror_pairs
from bunraku.math.rotations import exp_quat, quat_distance, quat_multiply, quat_normalize, quat_to_matrix
from tests.cmu import load_cmu

S = torch.tensor([-1.0, 1.0, 1.0], dtype=torch.float64)


def random_clip(body: Skeleton, frames: int = 9, fps: float = 30.0, *, translations: bool = False, contacts: bool = False) -> Motion:
    """Smooth and lively: every joint turns about its own axis at its own pace."""
    time = torch.arange(frames, dtype=torch.float64)[:, None, None] / fps
    turns = exp_quat(torch.randn(len(body), 3, dtype=torch.float64) * torch.sin(3 * time + torch.rand(len(body), 1, dtype=torch.float64)))
    return Motion(
        skeleton=body,
        fps=fps,
        root_position=torch.randn(3, dtype=torch.float64) * time[:, 0] + torch.tensor([0.3, 0.9, 0.1], dtype=torch.float64),
        quats=quat_multiply(body.rest_quats.double(), turns),
        translations=body.offsets.double() + 0.05 * torch.randn(frames, len(body), 3, dtype=torch.float64) if translations else None,
        contacts=torch.rand(frames, 4) < 0.5 if contacts else None,
    )


def frames_differ(a: Motion, b: Motion) -> float:
    """The largest difference between two clips: metres and radians alike."""
    values = [(a.root_position - b.root_position).abs().max(), quat_distance(a.quats, b.quats).max()]
    if a.translations is not None and b.translations is not None:
        values.append((a.translations[:, 1:] - b.translations[:, 1:]).abs().max())
    return max(float(value) for value in values)


# --- resample -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fps_from", "fps_to"), [(30.0, 60.0), (30.0, 120.0), (24.0, 72.0)])
def test_up_and_down_again_is_the_same_clip(fps_from: float, fps_to: float) -> None:
    clip = random_clip(skeleton("smplx22"), 10, fps_from, translations=True, contacts=True)
    up = resample(clip, fps_to)
    assert (up.fps, len(up)) == (fps_to, round(9 * fps_to / fps_from) + 1)
    back = resample(up, fps_from)
    assert len(back) == 10
    assert frames_differ(back, clip) < 1e-6
    assert clip.contacts is not None
    assert back.contacts is not None
    assert torch.equal(back.contacts, clip.contacts)


def test_odd_rates_keep_the_pace() -> None:
    body = skeleton("cmu23")
    clip = rest_motion(body, 100, 120.0)
    clip = replace(clip, root_position=torch.arange(100)[:, None] / 120.0 * torch.tensor([0.0, 0.0, 1.5]))  # 1.5 m/s
    slow = resample(clip, 29.97)
    expected = torch.arange(len(slow))[:, None] / 29.97 * torch.tensor([0.0, 0.0, 1.5])
    torch.testing.assert_close(slow.root_position, expected)
    assert abs(len(slow) / 29.97 - 100 / 120) < 1 / 29.97


def test_one_frame_and_equal_rates() -> None:
    clip = random_clip(skeleton("smplx22"), 1)
    assert len(resample(clip, 120.0)) == 1
    assert resample(clip, 30.0) is clip


@pytest.mark.parametrize("fps", [0.0, -30.0, float("nan"), float("inf")])
def test_a_rate_that_is_no_rate(fps: float) -> None:
    with pytest.raises(BadValue, match="positive frame rate"):
        resample(random_clip(skeleton("smplx22"), 2), fps)


def test_resampling_keeps_hinges() -> None:
    robot = random_robot_clip()
    _, off_axis = hinge_angles(resample(robot, 47.0))
    assert float(off_axis.max()) < 1e-6


# --- join -----------------------------------------------------------------------------------------------------------


def test_cutting_and_joining_is_the_clip() -> None:
    clip = replace(random_clip(skeleton("soma30"), 12, translations=True, contacts=True), provenance=Provenance(prompt="p", seed=1))
    whole = join([clip[:5], clip[5:6], clip[6:]])
    for name in ("root_position", "quats", "translations", "contacts"):
        assert torch.equal(getattr(whole, name), getattr(clip, name))
    assert whole.provenance == clip.provenance


def test_a_clip_without_translations_is_joined_with_the_skeleton_s() -> None:
    body = skeleton("smplx22")
    plain, stretched = random_clip(body, 3), random_clip(body, 4, translations=True)
    whole = join([plain, stretched])
    p = forward_kinematics(whole).p_world_joint
    torch.testing.assert_close(p[:3], forward_kinematics(plain).p_world_joint)
    torch.testing.assert_close(p[3:], forward_kinematics(stretched).p_world_joint)


def test_contacts_that_some_clips_lack_are_dropped_and_noted() -> None:
    body = skeleton("smplx22")
    whole = join([random_clip(body, 3, contacts=True), random_clip(body, 3)])
    assert whole.contacts is None
    assert "1 of 2" in whole.provenance.notes["contacts"]


def test_what_cannot_be_joined() -> None:
    clip = random_clip(skeleton("smplx22"), 3)
    with pytest.raises(BadValue, match="nothing to join"):
        join([])
    with pytest.raises(SkeletonMismatch, match=r"30 frames per second and clip 2 has 60.*resample"):
        join([clip, replace(clip, fps=60.0)])
    with pytest.raises(SkeletonMismatch, match=r"'smplx22' \(22 joints\) and clip 3 on 'soma30' \(30 joints\).*retarget"):
        join([clip, clip, random_clip(skeleton("soma30"), 3)])
    taller = replace(clip.skeleton, offsets=clip.skeleton.offsets * 1.1)
    with pytest.raises(SkeletonMismatch, match="one skeleton"):
        join([clip, replace(clip, skeleton=taller)])
    copy = replace(clip.skeleton, offsets=clip.skeleton.offsets.clone())
    assert len(join([clip, replace(clip, skeleton=copy)])) == 6


# --- mirror ---------------------------------------------------------------------------------------------------------


def strange(body: Skeleton) -> Skeleton:
    """The same joints with frames turned at random, differently left and right, and a rest pose that leans."""
    joints = len(body)
    generator = torch.Generator().manual_seed(5)
    turns = exp_quat(torch.randn(joints, 3, dtype=torch.float64, generator=generator))
    R = quat_to_matrix(turns)
    parents = body.parents_or_self
    # new frame = old frame · R: a joint's place in its parent is seen from the parent's new frame
    offsets = torch.cat([body.offsets[:1].double(), (R[parents[1:]].transpose(-1, -2) @ body.offsets[1:, :, None].double()).squeeze(-1)])
    local = torch.cat([turns[:1], quat_multiply(quat_conjugate_of(turns[parents[1:]]), turns[1:])])
    return Skeleton(name="strange", joints=body.joints, parents=body.parents, offsets=offsets, rest_quats=local, roles=body.roles)


def quat_conjugate_of(quat: torch.Tensor) -> torch.Tensor:
    return quat * torch.tensor([1.0, -1.0, -1.0, -1.0]).to(quat)


@pytest.mark.parametrize("name", skeleton_names())
def test_library_skeletons_pair_every_joint(name: str) -> None:
    body = skeleton(name)
    pairs = mirror_pairs(body)
    assert all(pairs[pairs[joint]] == joint for joint in range(len(body)))
    for joint, partner in enumerate(pairs):
        swapped = body.joints[joint].replace("Left", "§").replace("Right", "Left").replace("§", "Right")
        swapped = swapped.replace("left", "§").replace("right", "left").replace("§", "right")
        assert body.joints[partner] == swapped


@pytest.mark.parametrize("name", ["smplx22", "cmu23", "soma77"])
@pytest.mark.parametrize("translations", [False, True])
def test_mirrored_twice_is_the_clip(name: str, translations: bool) -> None:
    for body in (skeleton(name), strange(skeleton(name))):
        clip = random_clip(body, translations=translations, contacts=True)
        twice = mirror(mirror(clip))
        assert frames_differ(twice, clip) < 1e-5
        assert float((twice.quats - clip.quats).abs().max()) < 1e-12  # the very same quaternions, not only the same turns
        assert clip.contacts is not None
        assert twice.contacts is not None
        assert torch.equal(twice.contacts, clip.contacts)


def symmetric(body: Skeleton) -> Skeleton:
    """The body with its right half made the exact image of its left."""
    pairs = torch.tensor(mirror_pairs(body))
    offsets = body.offsets.double()
    return replace(body, offsets=(offsets + offsets[pairs] * S) / 2, rest_quats=body.rest_quats.double())


@pytest.mark.parametrize("name", ["smplx22", "cmu23", "soma30"])
def test_joints_go_where_a_mirror_shows_them(name: str) -> None:
    body = symmetric(skeleton(name))
    for body_in_any_frames in (body, strange(body)):
        clip = random_clip(body_in_any_frames)
        pairs = list(mirror_pairs(body_in_any_frames))
        before, after = forward_kinematics(clip), forward_kinematics(mirror(clip))
        torch.testing.assert_close(after.p_world_joint, before.p_world_joint[:, pairs] * S, rtol=0, atol=1e-9)


def test_stretched_bones_go_where_a_mirror_shows_them() -> None:
    body = symmetric(skeleton("smplx22"))
    for body_in_any_frames in (body, strange(body)):
        clip = random_clip(body_in_any_frames, translations=True)
        before, after = forward_kinematics(clip), forward_kinematics(mirror(clip))
        expected = before.p_world_joint[:, list(mirror_pairs(body_in_any_frames))] * S
        torch.testing.assert_close(after.p_world_joint, expected, rtol=0, atol=1e-9)


def test_world_turns_follow_the_stated_formula() -> None:
    body = strange(skeleton("smplx22"))
    clip = random_clip(body)
    pairs = list(mirror_pairs(body))
    R, R_rest = forward_kinematics(clip).R_world_joint, rest_poses(body).R_world_joint
    expected = S[:, None] * R[:, pairs] @ R_rest[pairs].transpose(-1, -2) * S @ R_rest
    torch.testing.assert_close(forward_kinematics(mirror(clip)).R_world_joint, expected, rtol=0, atol=1e-9)


def test_the_rest_pose_mirrored_is_the_rest_pose_even_where_it_leans() -> None:
    body = strange(skeleton("cmu23"))
    leaning = replace(body, rest_quats=quat_normalize(body.rest_quats + 0.2 * torch.randn(23, 4, dtype=torch.float64)))
    stand = rest_motion(leaning, 2)
    assert float(quat_distance(mirror(stand).quats[:, 1:], stand.quats[:, 1:]).max()) < 1e-7


def test_contacts_change_sides() -> None:
    clip = replace(random_clip(skeleton("smplx22"), 1), contacts=torch.tensor([[True, False, False, True]]))
    mirrored = mirror(clip)
    assert mirrored.contacts is not None
    assert mirrored.contacts.tolist() == [[False, True, True, False]]


def test_joints_without_a_partner_are_carried_along() -> None:
    plain = skeleton("smplx22")
    hand = plain.index["right_wrist"]
    body = Skeleton(
        name="armed",
        joints=(*plain.joints, "sword", "tip"),
        parents=(*plain.parents, hand, 22),
        offsets=torch.cat([plain.offsets, torch.tensor([[-0.1, 0.0, 0.0], [0.0, 0.5, 0.0]])]),
        roles=plain.roles,
    )
    assert mirror_pairs(body)[22:] == (NO_PARTNER, NO_PARTNER)
    clip = random_clip(body)
    assert torch.equal(mirror(clip).quats[:, 22:], clip.quats[:, 22:])
    assert frames_differ(mirror(mirror(clip)), clip) < 1e-6


def test_unnamed_joints_pair_by_where_they_rest() -> None:
    plain = skeleton("smplx22")
    bare = Skeleton(name="bare", joints=tuple(f"j{i}" for i in range(22)), parents=plain.parents, offsets=plain.offsets)
    assert mirror_pairs(bare) == mirror_pairs(plain)


def random_robot_clip(frames: int = 20) -> Motion:
    robot = skeleton("g1")
    hinges = robot.hinges
    assert hinges is not None
    phase = torch.rand(29, dtype=torch.float64) * 6
    wave = (torch.sin(torch.arange(frames, dtype=torch.float64)[:, None] * 0.3 + phase) + 1) / 2
    angles = hinges.lower.double() + wave * (hinges.upper - hinges.lower).double()
    root = exp_quat(torch.randn(frames, 3, dtype=torch.float64) * 0.3)
    return motion_from_hinges(robot, torch.randn(frames, 3, dtype=torch.float64), root, angles, 30.0)


def test_a_mirrored_robot_stays_on_its_hinges() -> None:
    clip = random_robot_clip()
    mirrored = mirror(clip)
    angles, _ = hinge_angles(clip)
    seen, off_axis = hinge_angles(mirrored)
    assert float(off_axis.max()) < 1e-6
    hinges = clip.skeleton.hinges
    assert hinges is not None
    names = [name.replace("left", "§").replace("right", "left").replace("§", "right") for name in hinges.joints]
    partner = [hinges.joints.index(name) for name in names]
    sign = torch.where((hinges.axes[:, 0].abs() > 0.9), 1.0, -1.0).double()  # about x (left–right) turns keep their sign
    torch.testing.assert_close(seen, angles[:, partner] * sign, rtol=0, atol=1e-5)
    assert frames_differ(mirror(mirrored), clip) < 1e-5
    p, p_seen = forward_kinematics(clip).p_world_joint, forward_kinematics(mirrored).p_world_joint
    torch.testing.assert_close(p_seen, p[:, list(mirror_pairs(clip.skeleton))] * S, rtol=0, atol=1e-4)


def test_a_real_walk_in_the_mirror(shared: Path) -> None:
    walk = load_cmu(shared, "07_01").to(torch.float64)
    before, after = forward_kinematics(walk).p_world_joint, forward_kinematics(mirror(walk)).p_world_joint
    pairs = list(mirror_pairs(walk.skeleton))
    # the captured body is not quite symmetric: its joints stay on bones of their own length
    assert float((after - before[:, pairs] * S).norm(dim=-1).max()) < 0.06
    assert frames_differ(mirror(mirror(walk)), walk) < 1e-6


# --- place ----------------------------------------------------------------------------------------------------------


def test_placing_moves_the_whole_body_rigidly_and_keeps_its_height() -> None:
    clip = random_clip(skeleton("soma30"), translations=True)
    placed = place(clip, (2.0, -1.0), math.pi / 2)
    p, q = forward_kinematics(clip).p_world_joint, forward_kinematics(placed).p_world_joint
    expected = torch.stack([p[..., 2] + 2.0, p[..., 1], -p[..., 0] - 1.0], dim=-1)  # a quarter turn takes +Z to +X
    torch.testing.assert_close(q, expected, rtol=0, atol=1e-9)


def test_placing_back() -> None:
    clip = random_clip(skeleton("smplx22"))
    there = place(clip, (0.0, 0.0), 1.1)
    assert frames_differ(place(there, (0.0, 0.0), -1.1), clip) < 1e-6
    shifted = place(clip, (3.0, 4.0), 0.0)
    assert frames_differ(place(shifted, (-3.0, -4.0), 0.0), clip) < 1e-6
