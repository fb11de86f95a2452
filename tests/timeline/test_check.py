"""What is asked for is checked: one sentence for each thing that cannot be."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from bunraku.errors import BadValue, BunrakuError, RoleMissing, SkeletonMismatch
from bunraku.kinematics.edit import place
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.heading import heading_of
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.kinematics.walk import walk
from bunraku.math.rotations import matrix_to_quat
from bunraku.timeline import EFFECTORS, Constraint, EffectorTarget, FootPlan, Heading, PoseKey, RootPath, check_constraints

SOMA = skeleton("soma30")


def check(*constraints: Constraint, body: Skeleton = SOMA, frames: int = 100, first_wins: bool = False) -> list[str]:
    return check_constraints(constraints, skeleton=body, frames=frames, fps=30.0, first_wins=first_wins)


def at(*frames: int) -> torch.Tensor:
    return torch.tensor(frames)


def path(frames: list[int], xz: list[list[float]], heading: list[float] | None = None) -> RootPath:
    return RootPath(frames=at(*frames), xz=torch.tensor(xz).float(), heading=None if heading is None else torch.tensor(heading))


def facing(frames: list[int], degrees: list[float]) -> Heading:
    return Heading(frames=at(*frames), heading=torch.deg2rad(torch.tensor(degrees).float()))


def hand(frame: int, position: list[float], effector: str = "left_hand") -> EffectorTarget:
    return EffectorTarget(frames=at(frame), effector=effector, position=torch.tensor([position]).float())


def pose(frame: int, x: float = 0.0, z: float = 0.0, yaw: float = 0.0, effectors: tuple[str, ...] | None = None) -> PoseKey:
    return PoseKey(frames=at(frame), poses=place(rest_motion(SOMA), (x, z), yaw), effectors=effectors)


def test_what_a_walk_does_can_be_asked_for() -> None:
    """Every type at once, all taken from one motion: they agree, and a body can do it."""
    motion = walk(SOMA, seconds=3.0)
    frames = torch.arange(0, 90, 10)
    poses = forward_kinematics(motion)
    keys = Motion(skeleton=SOMA, fps=30.0, root_position=motion.root_position[frames], quats=motion.quats[frames])
    constraints: list[Constraint] = [
        PoseKey(frames=frames, poses=keys),
        PoseKey(frames=frames, poses=keys, effectors=("left_hand", "right_foot")),
        RootPath(frames=torch.arange(90), xz=motion.root_position[:, [0, 2]], heading=heading_of(SOMA, poses.p_world_joint)),
        Heading(frames=frames, heading=heading_of(SOMA, poses.p_world_joint)[frames]),
        FootPlan(frames=torch.arange(90), contacts=motion.contacts),
    ]
    for role in EFFECTORS:
        joint = SOMA.role(role)
        quats = matrix_to_quat(poses.R_world_joint[:, joint])
        constraints.append(EffectorTarget(frames=torch.arange(90), effector=role, position=poses.p_world_joint[:, joint], quats=-quats))
    assert check(*constraints, frames=90) == []


@pytest.mark.parametrize(
    ("constraint", "says"),
    [
        (path([100], [[0, 0]]), r"constraints\[0\] \(root path\) holds at frame 100, outside the clip: its last frame is 99 \(3\.33 s"),
        (path([-1], [[0, 0]]), "holds at frame -1; frames are counted from 0"),
        (path([3, 3], [[0, 0], [0, 0]]), "names frame 3 more than once"),
        (RootPath(frames=torch.zeros(0, dtype=torch.long), xz=torch.zeros(0, 2)), "holds at no frame"),
        (path([3], [[0, math.nan]]), "number in xz, row 0, that is not finite"),
        (facing([3], [math.inf]), "number in heading, row 0"),
        (EffectorTarget(frames=at(1), effector="tail", position=torch.zeros(1, 3)), "asks for 'tail'; on skeleton 'soma30' it is one of left_hand"),
        (EffectorTarget(frames=at(1), effector="hips"), "neither where nor how"),
        (EffectorTarget(frames=at(1), effector="hips", quats=torch.ones(1, 4)), "quaternion of length 2"),
        (pose(1, effectors=()), "names no effector"),
        (pose(1, effectors=("nose",)), "asks for 'nose'"),
        (PoseKey(frames=at(1, 2), poses=rest_motion(SOMA)), "2 frames and 1 poses"),
        (PoseKey(frames=at(1), poses=replace(rest_motion(SOMA), quats=torch.full((1, 30, 4), math.nan))), "not finite"),
        (PoseKey(frames=at(1), poses=rest_motion(skeleton("g1"))), r"poses on 'g1' \(34 joints\), the clip is on 'soma30' \(30 joints\). Use retarget"),
    ],
)
def test_each_constraint_by_itself(constraint: Constraint, says: str) -> None:
    with pytest.raises(BunrakuError, match=says):
        check(constraint)


def test_shapes_that_do_not_fit(unchecked_shapes: None) -> None:
    for constraint in (
        RootPath(frames=at(1, 2), xz=torch.zeros(1, 2)),
        RootPath(frames=at(1), xz=torch.zeros(1, 3)),
        RootPath(frames=torch.tensor([1.0]), xz=torch.zeros(1, 2)),
        Heading(frames=torch.tensor([[1]]), heading=torch.zeros(1)),
        FootPlan(frames=at(1), contacts=torch.zeros(1, 2, dtype=torch.bool)),
        FootPlan(frames=at(1), contacts=torch.zeros(1, 4)),
        EffectorTarget(frames=at(1), effector="hips", quats=torch.ones(1, 4, dtype=torch.long)),
        "jump",
    ):
        with pytest.raises(BadValue, match=r"constraints\[0\]"):
            check(constraint)  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="a clip of 0 frames"):
        check(frames=0)


def test_roles_that_a_body_lacks() -> None:
    crane = Skeleton(name="crane", joints=("base", "arm"), parents=(-1, 0), offsets=torch.tensor([[0, 0, 0], [0, 1.0, 0]]), roles={"hips": 0})
    assert check(path([1, 3], [[0, 0], [0, 0.1]]), hand(3, [0, 0, 0], "hips"), body=crane) == []
    with pytest.raises(RoleMissing, match=r"'left_foot', which skeleton 'crane' does not have.*no feet at all"):
        check(FootPlan(frames=at(1), contacts=torch.zeros(1, 4, dtype=torch.bool)), body=crane)
    with pytest.raises(RoleMissing, match="told by left_hip and right_hip; skeleton 'crane' has only: hips"):
        check(facing([1], [0]), body=crane)
    with pytest.raises(RoleMissing, match="'left_hand'; on skeleton 'crane' it is one of hips"):
        check(hand(1, [0, 0, 0]), body=crane)
    with pytest.raises(SkeletonMismatch):
        check(pose(1), body=skeleton("soma77"))


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        (path([5], [[0, 0]]), path([5], [[0, 0.002]]), r"different places of the smoothed root at frame 5, 0\.002 m apart"),
        (facing([5], [0]), path([5], [[0, 0]], [0.01]), r"different angles of the heading at frame 5, 0\.57° apart"),
        (hand(5, [0.5, 1, 0]), hand(5, [0.51, 1, 0]), r"constraints\[0\] \(left_hand\) and constraints\[1\] \(left_hand\) .*places of left_hand"),
        (hand(5, [0.5, 1, 0]), pose(5), "places of left_hand at frame 5"),
        (pose(5, effectors=("left_hand",)), pose(5, x=0.1), "places of left_hand"),
        (facing([5], [90]), pose(5), r"the heading at frame 5, 89\.9.° apart"),
        (pose(5), pose(5, x=0.002), "different places of"),
        (
            EffectorTarget(frames=at(5), effector="hips", quats=torch.tensor([[1.0, 0, 0, 0]])),
            EffectorTarget(frames=at(5), effector="hips", quats=torch.tensor([[0.0, 1, 0, 0]])),
            r"turns of hips at frame 5, 180\.00°",
        ),
        (
            FootPlan(frames=at(5), contacts=torch.ones(1, 4, dtype=torch.bool)),
            FootPlan(frames=at(5), contacts=torch.tensor([[True, True, True, False]])),
            "opposites of the feet's contacts at frame 5",
        ),
    ],
)
def test_two_things_at_once(a: Constraint, b: Constraint, says: str) -> None:
    with pytest.raises(BadValue, match=says):
        check(a, b)
    assert check(a, b, first_wins=True)
    later = replace(b, frames=b.frames + 60)
    assert check(a, later) == []


def test_what_agrees_is_no_conflict() -> None:
    assert check(path([5], [[0, 0]], [0.0]), path([5], [[0, 0.0005]]), facing([5], [360.05]), pose(5), pose(5, x=0.0005)) == []
    assert check(pose(5, effectors=("left_hand",)), pose(5, x=0.3, effectors=("right_hand",))) == []


def test_the_first_wins_and_the_loser_is_named() -> None:
    lost = check(path([5, 5], [[0, 0], [0, 9]]), hand(7, [0.5, 1, 0]), hand(7, [0.6, 1, 0]), first_wins=True)
    assert len(lost) == 2
    assert "names frame 5 more than once" in lost[0]
    assert "constraints[2] (left_hand)" in lost[1]


@pytest.mark.parametrize(
    ("constraints", "says"),
    [
        ([path([0, 3], [[0, 0], [0, 2]])], r"constraints\[0\] \(root path\) would move the body at 20\.0 m/s between frames 0 and 3; at most 12 m/s"),
        ([path([0], [[0, 0]]), path([3], [[0, 2]])], r"constraints\[0\] \(root path\) and constraints\[1\] \(root path\) would move"),
        ([pose(0), pose(3, z=2.0)], r"would move the hips at 20\.0 m/s"),
        ([path([5], [[0, 0]]), pose(5, z=1.0)], r"constraints\[1\] \(pose\) \(frame 5\) and .*have the body 1\.00 m apart, which it cannot cover in 0\.00 s"),
        ([path([5], [[0, 0]]), pose(8, z=2.0)], r"2\.00 m apart, which it cannot cover in 0\.10 s"),
        ([facing([0, 1], [0, 30])], r"turn the body at 900°/s between frames 0 and 1; at most 720°/s"),
        ([facing([0], [175]), path([1], [[0, 0]], [math.radians(-150)])], r"turn the body at 1050°/s"),
        ([hand(0, [0, 1, 0]), hand(1, [0, 1, 2])], r"move the left hand at 60\.0 m/s"),
        ([pose(5), hand(5, [3, 1, 0], "right_foot")], "asks for|different places"),
        (
            [path([5], [[0, 0]]), hand(5, [3, 1, 0])],
            r"asks for the left hand 3\.00 m from where constraints\[0\] \(root path\) has the body at frame 5; 'soma30' reaches",
        ),
        ([hand(5, [0, 1, 0], "hips"), hand(5, [0, 3, 0])], r"left hand 2\.00 m from where"),
        ([pose(5, effectors=("left_foot",)), hand(5, [0, 4, 0])], "left hand"),
    ],
)
def test_what_no_body_can_do(constraints: list[Constraint], says: str) -> None:
    with pytest.raises(BadValue, match=says):
        check(*constraints)


def test_what_a_body_can_do() -> None:
    assert check(path([0, 3], [[0, 0], [0, 1]]), pose(4, z=1.4)) == []
    assert check(facing([0, 30], [0, 180]), facing([31], [-160])) == []
    assert check(pose(5), hand(6, [0, 2.2, 0])) == []
    assert check(hand(5, [0.2, 1.9, 0.3]), path([5], [[0, 0]])) == []


def test_many_constraints_are_no_trouble() -> None:
    frames = torch.arange(9000)
    ahead = frames / 30.0
    straight = RootPath(frames=frames, xz=torch.stack([0 * ahead, ahead], dim=-1), heading=0 * ahead)
    p_hand = torch.stack([0 * ahead + 0.3, 0 * ahead + 1.2, ahead], dim=-1)
    targets = [EffectorTarget(frames=frames[i::100], effector="left_hand", position=p_hand[i::100]) for i in range(100)]
    assert check(straight, *targets, frames=9000) == []
