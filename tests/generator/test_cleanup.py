"""Clean-up: constraints are met exactly, standing feet stand still, nothing pops, and what was right is left alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from bunraku.errors import BunrakuError
from bunraku.evaluate.adherence import adherence
from bunraku.evaluate.quality import check
from bunraku.files.npz import load_npz
from bunraku.generator.cleanup import cleanup, cleanup_all
from bunraku.kinematics.contacts import contact_joints, rest_ground
from bunraku.kinematics.forward import forward_kinematics, rest_poses
from bunraku.kinematics.inverse import displace
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.retarget import retarget
from bunraku.kinematics.smooth_root import smoothed_root
from bunraku.kinematics.soma import reduce_soma
from bunraku.kinematics.spread import spread
from bunraku.kinematics.walk import walk
from bunraku.math.curves import smooth_step
from bunraku.math.rotations import exp_quat, quat_multiply
from bunraku.timeline.constraints import Constraint, EffectorTarget, FootPlan, Heading, PoseKey, RootPath

EXAMPLES = {
    "soma-03": "soma-03_full_body_keyframes",
    "soma-04": "soma-04_ee_constraint",
    "soma-05": "soma-05_root_path",
    "g1-02": "g1-02_multi_text_ee_constraint",
}
AT = (15, 40)  # constrained frames of the walk
SKELETONS = ("soma30", "soma77", "smplx22", "cmu23", "g1")


@cache
def strides(name: str, seconds: float = 2.0) -> Motion:
    return retarget(strides("soma30", seconds), skeleton("g1")) if name == "g1" else walk(skeleton(name), seconds=seconds)


def places(motion: Motion) -> torch.Tensor:
    return forward_kinematics(motion).p_world_joint


def pose_key(motion: Motion, frames: tuple[int, ...], effectors: tuple[str, ...] | None = None) -> PoseKey:
    at = torch.tensor(frames)
    poses = replace(motion[: len(frames)], quats=motion.quats[at], root_position=motion.root_position[at], contacts=None)
    return PoseKey(frames=at, poses=poses, effectors=effectors)


def noisy(motion: Motion, frames: torch.Tensor, how: str, seed: int = 0) -> Motion:
    """5 cm and 10° of noise at the given frames: on these alone ('raw'), or spread smoothly over their neighbours."""
    draw = torch.Generator().manual_seed(seed)
    F, J = len(motion), len(motion.skeleton)
    known = torch.zeros(F, dtype=torch.bool)
    known[frames] = True
    place = torch.nn.functional.normalize(torch.randn(F, 3, generator=draw), dim=-1) * 0.05
    turn = torch.nn.functional.normalize(torch.randn(F, J, 3, generator=draw), dim=-1) * math.radians(10)
    if how == "raw":
        place, turn = place * known[:, None], turn * known[:, None, None]
    else:
        if len(frames) > F / 2:  # along a path: one draw a second
            known = torch.arange(F) % 30 == 0
        place, turn = spread(place, known, 8.0), spread(turn.flatten(1), known, 8.0).view(F, J, 3)
    return replace(motion, root_position=motion.root_position + place, quats=quat_multiply(motion.quats, exp_quat(turn)))


def fastest_acceleration(motion: Motion) -> float:
    return float(places(motion.to(torch.float64)).diff(n=2, dim=0).norm(dim=-1).max()) * motion.fps**2


def all_constrained(constraints: list[Constraint]) -> torch.Tensor:
    return torch.cat([c.frames for c in constraints]).unique()


def assert_met(motion: Motion, constraints: list[Constraint]) -> None:
    for miss in adherence(motion, constraints):
        assert miss.position <= 1e-3, miss
        assert miss.turn <= math.radians(0.1), miss


def assert_clean(cleaned: Motion, given: Motion, constraints: list[Constraint]) -> None:
    """The proof: constraints within 1 mm and 0.1°, skate within 0.5 cm/s, no spike beyond twice the input's largest acceleration."""
    assert_met(cleaned, constraints)
    feet = check(cleaned).feet
    assert feet is not None
    assert feet.skate is not None
    assert feet.skate <= 0.5
    assert fastest_acceleration(cleaned) <= 2 * fastest_acceleration(given)


# --- the proof -------------------------------------------------------------------------------------------------------


def example(shared: Path, name: str) -> tuple[Motion, list[Constraint]]:
    folder = shared / "data" / "kimodo-examples" / EXAMPLES[name]
    timeline = pytest.importorskip("bunraku.timeline.document")
    motion = load_npz(folder / "motion.npz")
    motion = reduce_soma(motion) if motion.skeleton.name == "soma77" else motion
    return motion, list(timeline.load_constraints(folder / "constraints.json", motion.skeleton))


@pytest.mark.parametrize("how", ["smooth", "raw"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_released_examples_with_noise_at_their_constraints(shared: Path, name: str, how: str) -> None:
    released, constraints = example(shared, name)
    given = noisy(released, all_constrained(constraints), how)
    cleaned = cleanup(given, constraints)
    assert_clean(cleaned, given, constraints)
    assert fastest_acceleration(cleaned) <= 2 * fastest_acceleration(released)  # noise is no licence
    assert not any(key.startswith("constraint") for key in cleaned.provenance.notes)
    joints = check(cleaned).joints
    assert joints is not None
    assert not joints.hinge_violations
    assert not joints.bend_frames


@pytest.mark.parametrize(("name", "how"), [("soma30", "smooth"), *((name, "raw") for name in SKELETONS)])
def test_a_walk_with_noise_at_its_constraints(name: str, how: str) -> None:
    true = strides(name)
    p = places(true)
    constraints: list[Constraint] = [
        pose_key(true, AT[:1]),
        pose_key(true, AT[1:], ("left_hand", "right_foot")),
        RootPath(frames=torch.tensor([55]), xz=p[55:56, 0][:, [0, 2]] + 0.05),
        Heading(frames=torch.tensor([28]), heading=torch.tensor([0.1])),
    ]
    given = noisy(true, torch.tensor(AT), how)
    cleaned = cleanup(given, constraints)
    assert_clean(cleaned, true, constraints)
    assert dict(cleaned.provenance.notes) == dict(given.provenance.notes)


@pytest.mark.parametrize(("name", "at"), [("soma30", (7, 10, 18, 29, 30, 48)), ("g1", (5, 32, 33, 38, 43, 55)), ("smplx22", (0, 20, 21, 22, 39, 59))])
def test_places_alone_with_noise_in_neighbouring_frames(name: str, at: tuple[int, ...]) -> None:
    true = strides(name)
    p, parts = places(true), ("left_hand", "right_hand", "left_foot", "right_foot", "left_hand", "hips")
    targets: list[Constraint] = [
        EffectorTarget(frames=torch.tensor([f]), effector=part, position=p[[f], true.skeleton.role(part)]) for f, part in zip(at, parts, strict=True)
    ]
    given = noisy(true, torch.tensor(at), "raw", seed=2)
    assert_clean(cleanup(given, targets), given, targets)


# --- each kind of constraint -----------------------------------------------------------------------------------------


def hand_place(m: Motion) -> list[Constraint]:
    j = m.skeleton.role("left_hand")
    return [EffectorTarget(frames=torch.tensor([0, 40]), effector="left_hand", position=places(m)[[0, 40], j] + torch.tensor([0.05, 0.1, 0.1]))]


def hand_turn(m: Motion) -> list[Constraint]:
    return [EffectorTarget(frames=torch.tensor([40]), effector="right_hand", quats=torch.tensor([[1.0, 0.0, 0.0, 0.0]]))]


def foot_place(m: Motion) -> list[Constraint]:
    j = m.skeleton.role("right_foot")
    return [EffectorTarget(frames=torch.tensor([45]), effector="right_foot", position=places(m)[[45], j] + torch.tensor([0.03, 0.03, 0.03]))]


def hips_place(m: Motion) -> list[Constraint]:
    p, q = places(m)[[30], 0], m.quats[[30], 0]
    return [EffectorTarget(frames=torch.tensor([30]), effector="hips", position=p + torch.tensor([0.03, -0.04, 0.02]), quats=q)]


def waypoints(m: Motion) -> list[Constraint]:
    at = torch.tensor([0, 30, 59])
    xz = places(m)[at, 0][:, [0, 2]] + torch.tensor([[0.1, 0.0], [-0.1, 0.1], [0.2, 0.0]])
    return [RootPath(frames=at, xz=xz, heading=torch.tensor([0.1, -0.1, 0.0]))]


@pytest.mark.parametrize("asked", [hand_place, hand_turn, foot_place, hips_place, waypoints])
def test_each_kind_of_constraint_is_met(asked: Callable[[Motion], list[Constraint]]) -> None:
    given = strides("soma30")
    assert_clean(cleanup(given, asked(given)), given, asked(given))


def test_a_planned_contact_makes_the_foot_stand_longer() -> None:
    given = strides("soma30")
    assert given.contacts is not None
    left = given.contacts[:, 1].int()
    end = int((left[20:].diff() == -1).nonzero()[0]) + 21  # the toe leaves here
    planned = given.contacts[end - 3 : end + 3].clone()
    planned[:, 1] = True
    cleaned = cleanup(given, [FootPlan(frames=torch.arange(end - 3, end + 3), contacts=planned)])
    assert cleaned.contacts is not None
    assert cleaned.contacts[end - 3 : end + 3].equal(planned)
    toe = places(cleaned)[end - 3 : end + 3, given.skeleton.role("left_toe")]
    assert toe.diff(dim=0).norm(dim=-1).max() * given.fps < 0.02


# --- feet, on any ground ---------------------------------------------------------------------------------------------


def slope(x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return 0.15 * z + 0.05 * x


def terrace(x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return 0.02 * torch.floor(z / 0.4)


@pytest.mark.parametrize("ground", [slope, terrace])
def test_feet_stand_on_any_ground(ground: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
    flat = strides("soma30")
    p = places(flat)
    lifted = displace(flat, 0, torch.stack([0 * p[:, 0, 0], ground(p[:, 0, 0], p[:, 0, 2]), 0 * p[:, 0, 0]], dim=-1))
    cleaned = cleanup(lifted, ground=ground)
    columns, joints = contact_joints(flat.skeleton)
    p = places(cleaned)[:, joints]
    standing = cleaned.contacts[:, columns]  # type: ignore[index]
    over = (p[..., 1] - ground(p[..., 0], p[..., 2]))[standing]
    at_rest = rest_poses(flat.skeleton).p_world_joint[joints, 1] - rest_ground(flat.skeleton)
    rest = at_rest[None, :].expand_as(standing)[standing]
    assert (over - rest).abs().median() < 1e-3
    assert (over - rest).min() > -2e-3
    speed = (p.diff(dim=0).norm(dim=-1) * flat.fps)[standing[:-1]]
    assert speed.mean() < 0.005


def test_contacts_without_a_stance_are_left_to_slide_and_said_so() -> None:
    given = replace(strides("soma30"), contacts=torch.ones(60, 4, dtype=torch.bool))
    cleaned = cleanup(given)
    assert "slide" in cleaned.provenance.notes["slides"]
    assert (places(cleaned) - places(given)).norm(dim=-1).max() < 0.3


# --- what must not happen --------------------------------------------------------------------------------------------


def test_what_is_right_is_left_alone() -> None:
    given = strides("g1")
    assert (places(cleanup(given)) - places(given)).norm(dim=-1).max() < 2e-3
    once = cleanup(strides("soma30"))
    assert (places(cleanup(once)) - places(once)).norm(dim=-1).max() < 1e-3
    still = replace(strides("soma30"), contacts=torch.zeros(60, 4, dtype=torch.bool))
    torch.testing.assert_close(cleanup(still).quats, still.quats)


@pytest.mark.parametrize("frame", [0, 30, 59])
def test_a_hand_out_of_reach_is_approached_and_named(frame: int) -> None:
    given = strides("soma30")
    goal = places(given)[[frame], given.skeleton.role("left_hand")] + torch.tensor([5.0, 0.0, 0.0])
    cleaned = cleanup(given, [EffectorTarget(frames=torch.tensor([frame]), effector="left_hand", position=goal)])
    assert "EffectorTarget is missed by 4" in cleaned.provenance.notes["constraint 0"]
    assert fastest_acceleration(cleaned) <= 2 * fastest_acceleration(given)
    assert (places(cleaned) - places(given)).norm(dim=-1).max() < 1.5


@pytest.mark.parametrize("frames", [1, 2, 3, 5])
def test_clips_of_a_few_frames(frames: int) -> None:
    given = strides("soma30")[30 : 30 + frames]
    key = pose_key(noisy(given, torch.tensor([0]), "raw"), (0,))
    assert_met(cleanup(given, [key]), [key])
    last = EffectorTarget(frames=torch.tensor([frames - 1]), effector="left_hand", position=places(given)[-1:, given.skeleton.role("left_hand")] + 0.05)
    assert_met(cleanup(given, [last]), [last])


def test_every_frame_posed() -> None:
    true = strides("soma30")
    key = pose_key(true, tuple(range(len(true))))
    cleaned = cleanup(noisy(true, key.frames, "raw"), [key])
    assert_met(cleaned, [key])


def test_a_batch_is_checked_before_it_is_begun() -> None:
    given = strides("soma30")[:10]
    late: list[Constraint] = [Heading(frames=torch.tensor([10]), heading=torch.zeros(1))]
    with pytest.raises(BunrakuError, match="speaks of frame 10; this motion has the frames 0 to 9"):
        cleanup_all([given, given], [[], late])
    other: list[Constraint] = [pose_key(strides("g1"), (3,))]
    with pytest.raises(BunrakuError, match="a pose of 'g1' for a motion of 'soma30'"):
        cleanup(given, other)
    with pytest.raises(BunrakuError, match="not finite"):
        cleanup(replace(given, root_position=given.root_position * math.nan))
    with pytest.raises(BunrakuError, match=r"Heading\) holds numbers that are not finite"):
        cleanup(given, [Heading(frames=torch.tensor([3]), heading=torch.tensor([math.nan]))])
    shares: list[float] = []
    assert len(cleanup_all([given, given], on_progress=shares.append)) == 2
    assert shares == [0.5, 1.0]


def test_a_path_over_all_frames() -> None:
    given = strides("soma30")
    every = torch.arange(len(given))
    aside = smooth_step(torch.linspace(-0.2, 1.2, len(given)))[:, None] * torch.tensor([0.3, 0.0])
    moved = smoothed_root(given.root_position)[:, [0, 2]] + aside
    path: list[Constraint] = [RootPath(frames=every, xz=moved)]
    assert_clean(cleanup(given, path), given, path)
