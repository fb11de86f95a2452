"""Retargeting: the same performance on another body, feet where they stood, hinges within limits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bunraku.errors import RoleMissing
from bunraku.evaluate.quality import check
from bunraku.files.gltf import load_character
from bunraku.kinematics.contacts import contact_joints
from bunraku.kinematics.forward import forward_kinematics, pose_joints, rest_poses
from bunraku.kinematics.hinges import hinge_angles
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.retarget import retarget
from bunraku.kinematics.skeleton import SIDES, Skeleton
from bunraku.kinematics.stance import measure_legs
from bunraku.kinematics.transfer import compose_turns, role_joint, transferred_turns
from bunraku.kinematics.walk import walk
from bunraku.math.rotations import exp_quat, geodesic_distance, quat_distance, quat_multiply, quat_rotate, yaw_quat
from tests.cmu import load_cmu


@pytest.fixture(scope="module")
def walking() -> Motion:
    return walk(skeleton("soma30"), seconds=3.0)


def scaled(body: Skeleton, size: float) -> Skeleton:
    return replace(body, name=f"{body.name}×{size:g}", offsets=body.offsets * size, tips={j: tuple(size * x for x in tip) for j, tip in body.tips.items()})


def under_a_root(body: Skeleton) -> Skeleton:
    """The body as game rigs have it: a root joint on the ground, the hips below it."""
    return Skeleton(
        name=f"{body.name} under a root",
        joints=("Root", *body.joints),
        parents=(-1, *(p + 1 for p in body.parents)),
        offsets=torch.cat([torch.zeros(1, 3), body.offsets]),
        rest_quats=torch.cat([torch.tensor([[1.0, 0, 0, 0]]), body.rest_quats]),
        roles={role: j + 1 for role, j in body.roles.items()},
    )


def standing_speed(motion: Motion, contacts: torch.Tensor) -> float:
    """Mean horizontal speed [cm/s] of feet in the frames where the source says they stand."""
    columns, joints = contact_joints(motion.skeleton)
    p = forward_kinematics(motion).p_world_joint[:, joints][..., [0, 2]]
    stands = contacts[1:, columns] & contacts[:-1, columns]
    return float((p[1:] - p[:-1]).norm(dim=-1)[stands].mean()) * motion.fps * 100


def test_to_the_same_skeleton_changes_almost_nothing(walking: Motion) -> None:
    out = retarget(walking, walking.skeleton)
    before, after = forward_kinematics(walking), forward_kinematics(out)
    assert (before.p_world_joint - after.p_world_joint).norm(dim=-1).max() < 0.02
    assert geodesic_distance(before.R_world_joint, after.R_world_joint).mean() < 0.02


@pytest.mark.parametrize("name", ["soma77", "smplx22", "cmu23", "g1"])
def test_body_parts_turn_alike_and_feet_stand(walking: Motion, name: str) -> None:
    target = skeleton(name)
    out = retarget(walking, target)
    assert out.fps == walking.fps
    assert len(out) == len(walking)
    assert walking.contacts is not None
    assert standing_speed(out, walking.contacts) < standing_speed(walking, walking.contacts) + 1.0
    source, result = forward_kinematics(walking).p_world_joint, forward_kinematics(out).p_world_joint
    for upper, lower in (("left_hip", "left_knee"), ("right_knee", "right_foot"), ("left_shoulder", "left_elbow"), ("right_elbow", "right_hand")):
        a = source[:, walking.skeleton.role(lower)] - source[:, walking.skeleton.role(upper)]
        b = result[:, target.role(lower)] - result[:, target.role(upper)]
        angle = torch.acos(torch.nn.functional.cosine_similarity(a, b, dim=-1).clamp(-1, 1))
        assert angle.mean() < 0.2, (upper, lower)
    report = check(out)
    assert report["penetration_max"] < 30
    assert report["pops"] == 0


def test_size_is_only_a_unit(walking: Motion) -> None:
    small, large = (retarget(walking, scaled(skeleton("smplx22"), size)) for size in (0.1, 10.0))
    torch.testing.assert_close(forward_kinematics(large).p_world_joint / 100, forward_kinematics(small).p_world_joint, atol=2e-3, rtol=0)


def test_turning_and_moving_the_source_turns_and_moves_the_result(walking: Motion) -> None:
    turn = yaw_quat(torch.tensor(1.0))
    aside = torch.tensor([2.0, 0.0, -1.0])
    quats = walking.quats.clone()
    quats[:, 0] = quat_multiply(turn, quats[:, 0])
    moved = replace(walking, quats=quats, root_position=quat_rotate(turn, walking.root_position) + aside)
    target = skeleton("smplx22")
    scale = 1.0  # the horizontal scale of the path, found from the result itself
    straight, turned = (forward_kinematics(retarget(m, target)).p_world_joint for m in (walking, moved))
    expected = quat_rotate(turn, straight)
    shift = (turned - expected).mean(dim=(0, 1))
    torch.testing.assert_close(turned, expected + shift, atol=5e-3, rtol=0)
    assert abs(float(shift[1])) < 1e-3
    assert 0.5 * scale < float(shift.norm() / aside.norm()) < 2.0


def test_hips_under_a_root_move_and_the_root_stays(walking: Motion) -> None:
    target = under_a_root(skeleton("smplx22"))
    out = retarget(walking, target)
    poses = forward_kinematics(out)
    assert out.translations is not None
    torch.testing.assert_close(out.root_position, torch.zeros_like(out.root_position))
    plain = forward_kinematics(retarget(walking, skeleton("smplx22")))
    torch.testing.assert_close(poses.p_world_joint[:, 1:], plain.p_world_joint, atol=2e-3, rtol=0)


def test_g1_stays_on_its_hinges_and_within_limits(walking: Motion) -> None:
    out = retarget(walking, skeleton("g1"))
    hinges = out.skeleton.hinges
    assert hinges is not None
    angles, off_axis = hinge_angles(out)
    assert off_axis.abs().max() < 1e-4
    assert (angles >= hinges.lower - 1e-5).all()
    assert (angles <= hinges.upper + 1e-5).all()
    hips = out.root_position[:, 1]
    rest = float(rest_poses(out.skeleton).p_world_joint[0, 1])
    assert 0.85 * rest < hips.min() < hips.max() < 1.05 * rest


def test_hands_that_meet_still_meet_on_longer_arms(walking: Motion) -> None:
    source = skeleton("soma30")
    clap = walking.quats.clone()
    for side, sign in (("left", 1.0), ("right", -1.0)):
        for role, angle in (("shoulder", (0.0, -1.31 * sign, 0.0)), ("elbow", (0.0, -1.08 * sign, 0.0))):
            clap[:, source.role(f"{side}_{role}")] = exp_quat(torch.tensor(angle))
    meeting = replace(walking, quats=clap)
    p = forward_kinematics(meeting).p_world_joint
    gap = (p[:, source.role("left_hand")] - p[:, source.role("right_hand")]).norm(dim=-1).mean()
    assert gap < 0.15  # the source's wrists are close together
    longer = source.offsets.clone()
    for side in ("left", "right"):
        for role in ("elbow", "hand"):
            longer[source.role(f"{side}_{role}")] *= 1.25
    target = replace(source, name="long arms", offsets=longer)
    q = forward_kinematics(retarget(meeting, target)).p_world_joint
    assert abs(float((q[:, source.role("left_hand")] - q[:, source.role("right_hand")]).norm(dim=-1).mean() - gap)) < 0.06


def test_one_frame_is_enough(walking: Motion) -> None:
    for name in ("smplx22", "g1"):
        assert len(retarget(walking[40:41], skeleton(name))) == 1


def test_a_body_without_legs_says_what_is_missing(walking: Motion) -> None:
    legless = replace(skeleton("smplx22"), roles={"hips": 0})
    with pytest.raises(RoleMissing, match="left_hip, left_knee"):
        retarget(walking, legless)
    with pytest.raises(RoleMissing, match="roles file"):
        retarget(replace(walking, skeleton=replace(walking.skeleton, roles={})), skeleton("g1"))


def test_role_joint_is_the_roles_own_joint_on_people() -> None:
    body = skeleton("soma30")
    assert all(role_joint(body, role) == joint for role, joint in body.roles.items())


@pytest.mark.parametrize(("sequence", "what"), [("35_01", "walk"), ("09_01", "run"), ("16_01", "jump")])
@pytest.mark.parametrize("body", ["soma30", "g1", "KayKit_Knight", "Man_CasualHoodie", "Mannequin_F"])
def test_real_motion_capture(shared: Path, sequence: str, what: str, body: str) -> None:
    source = load_cmu(shared, sequence)
    rig = shared / "data" / "rigged_assets" / "humanoids" / f"{body}.glb"
    target = load_character(rig).skeleton if rig.exists() else skeleton(body)
    report = check(retarget(source, target))
    assert report["skate"] <= check(source)["skate"] + 1.0, what
    assert report["hinge_violations"] == (0 if body == "g1" else None)
    assert report["pop_frames"] == 0


def test_an_arm_thrown_overhead_does_not_drop(shared: Path) -> None:
    """Fitted from the zero pose alone, this throw left the robot's arm hanging for five frames."""
    source = load_cmu(shared, "138_24")[20:60]
    report = check(retarget(source, skeleton("g1")))
    assert report["pop_frames"] == 0
    assert report["jerk_mean"] < 2 * check(source)["jerk_mean"]


def test_wide_hips_that_turn_over_planted_feet_do_not_drag_them() -> None:
    """Steps are widened sideways from where the hips face; a foot that stands must not follow when they turn."""
    body, frames = skeleton("soma30"), 20
    stands = torch.ones(frames, 4, dtype=torch.bool)
    turning = replace(rest_motion(body, frames), contacts=stands)
    turning.quats[:, 0] = yaw_quat(torch.linspace(-0.25, 0.25, frames))
    source = retarget(turning, body)  # plants the feet
    assert standing_speed(source, stands) < 0.5
    offsets = body.offsets.clone()
    for side in ("left", "right"):
        offsets[body.role(f"{side}_hip"), 0] *= 4.0
    assert standing_speed(retarget(source, replace(body, name="broad", offsets=offsets)), stands) < 0.5


def legs_apart(motion: Motion) -> torch.Tensor:
    """How far the ankles are apart across the way the hips face [m]."""
    p, at = forward_kinematics(motion).p_world_joint, motion.skeleton.role
    across = torch.nn.functional.normalize((p[:, at("left_hip")] - p[:, at("right_hip")]) * torch.tensor([1.0, 0.0, 1.0]), dim=-1)
    return ((p[:, at("left_foot")] - p[:, at("right_foot")]) * across).sum(-1)


def test_feet_do_not_close_in_where_hip_joints_do(walking: Motion) -> None:
    """SMPL-X and the G1's hip pitch joints lie near the middle; their feet are as broad as anybody's and would pass through each other."""
    apart = legs_apart(walking).min()
    assert apart > 0.1
    for name, scale in (("smplx22", 1.0), ("g1", 0.75)):
        assert legs_apart(retarget(walking, skeleton(name))).min() > scale * apart - 0.01, name


def on_high_ankles(body: Skeleton, by: float) -> Skeleton:
    """The same legs on thicker soles: ankles and toes, hips and all above rest higher by that much."""
    offsets = body.offsets.clone()
    offsets[0, 1] += by
    return replace(body, name="in big boots", offsets=offsets)


def squat(body: Skeleton) -> Motion:
    """Thighs level, shins straight down, soles flat where they rest."""
    rest = rest_motion(body, 10)
    quats, R_world = rest.quats.clone(), rest_poses(body).R_world_joint
    for side in ("left", "right"):
        for part, angle in (("hip", -1.2), ("knee", 2.0), ("foot", -0.8)):
            j = body.role(f"{side}_{part}")
            quats[:, j] = quat_multiply(quats[:, j], exp_quat(R_world[j].T @ torch.tensor([angle, 0.0, 0.0])))
    bent = replace(rest, quats=quats)
    foot = body.role("left_foot")
    down = rest_poses(body).p_world_joint[foot] - forward_kinematics(bent).p_world_joint[0, foot]
    return replace(bent, root_position=bent.root_position + down)


def knee_bend(motion: Motion, side: str) -> torch.Tensor:
    p, at = forward_kinematics(motion).p_world_joint, motion.skeleton.role
    thigh, shin = p[:, at(f"{side}_knee")] - p[:, at(f"{side}_hip")], p[:, at(f"{side}_foot")] - p[:, at(f"{side}_knee")]
    return torch.acos(torch.nn.functional.cosine_similarity(thigh, shin, dim=-1).clamp(-1, 1))


def test_knees_bend_alike_on_thick_soles() -> None:
    """The height of an ankle is no length of a leg: scaled with it, a figure in big boots would squat into the ground."""
    source = squat(skeleton("soma30"))
    out = retarget(source, on_high_ankles(skeleton("soma30"), 0.06))
    for side in ("left", "right"):
        assert (knee_bend(source, side) - knee_bend(out, side)).abs().max() < 0.02


def test_a_robot_squats_as_deep_as_its_source() -> None:
    """Fitted from its zero pose with feet at full weight, the G1's stretched knees bent by 33° too little."""
    source = squat(skeleton("soma30"))
    out = retarget(source, skeleton("g1"))
    for side in ("left", "right"):
        assert (knee_bend(source, side) - knee_bend(out, side)).abs().max() < 0.12


def broad_hipped(body: Skeleton, by: float) -> Skeleton:
    offsets = body.offsets.clone()
    for side, out in (("left", 1.0), ("right", -1.0)):
        offsets[body.role(f"{side}_hip"), 0] += out * by
    return replace(body, name="broad-hipped", offsets=offsets)


def beside_hips(motion: Motion) -> torch.Tensor:
    """How far the left hand hangs outside the left thigh [m]."""
    p, at = forward_kinematics(motion).p_world_joint, motion.skeleton.role
    return p[:, at("left_hand"), 0] - p[:, at("left_hip"), 0]


def test_a_hanging_hand_stays_outside_a_broader_hip() -> None:
    body = skeleton("soma30")
    standing = rest_motion(body, 10)
    quats, R_world = standing.quats.clone(), rest_poses(body).R_world_joint
    for side, down in (("left", -1.45), ("right", 1.45)):
        j = body.role(f"{side}_shoulder")
        quats[:, j] = quat_multiply(quats[:, j], exp_quat(R_world[j].T @ torch.tensor([0.0, 0.0, down])))
    hanging = replace(standing, quats=quats)
    near = float(beside_hips(hanging).mean())
    assert 0.05 < near < 0.25
    by = near - 0.02  # so broad that an arm that hangs as before would end inside the thigh
    assert float(beside_hips(retarget(hanging, broad_hipped(body, by))).min()) > 0.4 * near


def test_reaching_hands_do_not_pull_the_legs(shared: Path) -> None:
    """Climbing steps (14_21), a hand near a thigh dragged hips and knees along: SMPL-X's shins passed through each other."""
    out = retarget(load_cmu(shared, "14_21")[180:260], skeleton("smplx22"))
    assert check(out)["collisions"] == 0


@pytest.mark.parametrize("name", ["smplx22", "g1"])
def test_a_hand_s_wish_turns_nothing_but_arms(walking: Motion, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    body = skeleton(name)
    with_wishes = retarget(walking, body)
    monkeypatch.setattr("bunraku.kinematics.retarget.REACHING", 0.0)
    without = retarget(walking, body)
    turned = quat_distance(with_wishes.quats, without.quats).amax(dim=0)
    in_arms = torch.tensor([any(body.role(f"{side}_shoulder") in body.ancestors(j) for side in ("left", "right")) for j in range(len(body))])
    assert turned[in_arms].max() > 0.02
    assert turned[~in_arms].max() < 1e-3
    assert (with_wishes.root_position - without.root_position).norm(dim=-1).max() < 1e-4


def test_a_jumping_robot_is_no_rougher_than_its_source(shared: Path) -> None:
    """While hips and knees gave way to the hands, the G1's jump had 117 m/s³ of jerk and 7 mm of penetration."""
    source = load_cmu(shared, "16_01")
    report = check(retarget(source, skeleton("g1")))
    assert report["jerk_mean"] < 0.8 * check(source)["jerk_mean"]
    assert report["penetration_max"] < 3


def on_three_boned_legs(body: Skeleton) -> Skeleton:
    """Legs as animals and some robots have them: at rest the knee is far in front, a long second bone leads back, a third one down to the ankle."""
    p = rest_poses(body).p_world_joint
    joints, parents, places = [], [], []
    for j, name in enumerate(body.joints):
        parent = -1 if body.parents[j] < 0 else joints.index(body.joints[body.parents[j]])
        for side in SIDES:
            if j == body.role(f"{side}_foot"):
                joints.append(f"{side}_hock")
                parents.append(parent)
                places.append(p[j] + torch.tensor([0.0, 0.20, -0.15]))
                parent = len(joints) - 1
        joints.append(name)
        parents.append(parent)
        places.append(p[j] + torch.tensor([0.0, 0.1, 0.3]) * (j in (body.role("left_knee"), body.role("right_knee"))))
    offsets = [place - (places[parent] if parent >= 0 else torch.zeros(3)) for place, parent in zip(places, parents, strict=True)]
    roles = {role: joints.index(body.joints[j]) for role, j in body.roles.items()}
    return Skeleton(name="three-boned", joints=tuple(joints), parents=tuple(parents), offsets=torch.stack(offsets), roles=roles)


def test_legs_of_three_bones_straighten() -> None:
    """Only the bone above the ankle was given the turn of the shin: the knee kept its bend, and the body hung above the ground on bent legs."""
    source, target = skeleton("soma30"), on_three_boned_legs(skeleton("soma30"))
    standing = forward_kinematics(rest_motion(source))
    legs = compose_turns(target, transferred_turns(source, standing, target), 1)
    p = pose_joints(target, target.offsets[0].expand(1, 3), legs).p_world_joint[0]
    for side in SIDES:
        longest = (p[target.role(f"{side}_hip")] - p[target.role(f"{side}_foot")]).norm()
        assert longest == pytest.approx(measure_legs(target).length, rel=0.01)


@pytest.mark.parametrize("sequence", ["144_21", "136_30"])
@pytest.mark.parametrize("name", ["Woman_Casual", "Mech_George"])
def test_feet_without_toes_stand_as_still(shared: Path, sequence: str, name: str) -> None:
    """Nailed for as long as heel *or* toe touched, a lifted heel made a slide of the whole stance: up to 32 cm/s on the robot."""
    source = load_cmu(shared, sequence)[:150]
    target = load_character(shared / "data" / "rigged_assets" / "humanoids" / f"{name}.glb").skeleton
    assert check(retarget(source, target))["skate"] < 1.0
