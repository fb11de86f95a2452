"""Timelines as values, and constraints moved in time and on the ground."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from some_constraints import TYPES, difference, some_constraint

import bunraku.timeline
from bunraku.errors import BadValue
from bunraku.kinematics.edit import place
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.heading import heading_of
from bunraku.kinematics.library import skeleton
from bunraku.math.rotations import matrix_to_quat, quat_distance
from bunraku.timeline import (
    EffectorTarget,
    Heading,
    Prompt,
    RootPath,
    Timeline,
    crop_constraints,
    place_constraints,
    retime_constraints,
    shift_constraints,
)


def test_prompts_own_frames() -> None:
    timeline = Timeline(prompts=(Prompt(text="a", seconds=3.5333), Prompt(text="b", seconds=4.0333)))
    assert timeline.prompt_frames() == [range(106), range(106, 227)]
    assert timeline.frames() == 227
    assert timeline.frames(20) == 151
    assert timeline.seconds == pytest.approx(7.5666)
    with pytest.raises(BadValue, match="without prompts has no length"):
        Timeline().frames()


@pytest.mark.parametrize(
    "values",
    [{"fps": 0.0}, {"fps": math.nan}, {"heading": math.inf}, {"seed": -1}, {"seed": 2**63}, {"samples": 0}, {"prompts": ("walk",)}, {"constraints": (3,)}],
)
def test_values_that_cannot_be(values: dict, unchecked_shapes: None) -> None:
    with pytest.raises(BadValue, match="timeline"):
        Timeline(**values)


def test_cropping_renumbers() -> None:
    path = RootPath(frames=torch.tensor([9, 4, 30]), xz=torch.tensor([[9.0, 0], [4, 0], [30, 0]]), heading=torch.tensor([9.0, 4, 30]))
    (cut,) = crop_constraints([path, Heading(frames=torch.tensor([10]), heading=torch.zeros(1))], 4, 10)
    assert cut.frames.tolist() == [5, 0]
    assert cut.xz[:, 0].tolist() == [9, 4]
    assert cut.heading.tolist() == [9, 4]
    with pytest.raises(BadValue, match="from 5 up to 5"):
        crop_constraints([path], 5, 5)


@pytest.mark.parametrize("kind", TYPES)
def test_pieces_and_shifts_of_every_type(kind: str) -> None:
    whole = some_constraint(kind, 5, rows=6, last=100)
    assert difference(whole, crop_constraints([whole], 0, 100)[0]) == 0
    assert difference(whole, shift_constraints(shift_constraints([whole], 7), -7)[0]) == 0
    pieces = crop_constraints([whole], 0, 50) + shift_constraints(crop_constraints([whole], 50, 100), 50)
    assert sorted(f for piece in pieces for f in piece.frames.tolist()) == sorted(whole.frames.tolist())
    there_and_back = place_constraints(place_constraints([whole], (0.0, 0.0), 0.7), (0.0, 0.0), -0.7)[0]
    assert difference(whole, there_and_back) < 1e-5
    assert difference(whole, place_constraints(place_constraints([whole], (1.0, -2.0), 0.0), (-1.0, 2.0), 0.0)[0]) < 1e-5


def test_nothing_moves_before_the_first_frame() -> None:
    with pytest.raises(BadValue, match="crop_constraints"):
        shift_constraints([Heading(frames=torch.tensor([3]), heading=torch.zeros(1))], -4)


def test_everything_moves_as_the_motion_does() -> None:
    body = skeleton("soma30")
    pose = some_constraint("pose", 2, body)
    moved = place(pose.poses, (1.0, -2.0), 0.9)
    hand = body.role("left_hand")
    before, after = forward_kinematics(pose.poses), forward_kinematics(moved)
    target = EffectorTarget(
        frames=pose.frames, effector="left_hand", position=before.p_world_joint[:, hand], quats=matrix_to_quat(before.R_world_joint[:, hand])
    )
    facing = Heading(frames=pose.frames, heading=heading_of(body, before.p_world_joint))
    path = RootPath(frames=pose.frames, xz=pose.poses.root_position[:, [0, 2]])
    target, facing, path, pose = place_constraints([target, facing, path, pose], (1.0, -2.0), 0.9)
    assert torch.allclose(target.position, after.p_world_joint[:, hand], atol=1e-5)
    assert float(quat_distance(target.quats, matrix_to_quat(after.R_world_joint[:, hand])).max()) < 1e-5
    apart = facing.heading - heading_of(body, after.p_world_joint)
    assert torch.allclose(apart.cos(), torch.ones(3), atol=1e-6)
    assert torch.allclose(path.xz, moved.root_position[:, [0, 2]], atol=1e-5)
    assert torch.allclose(pose.poses.root_position, moved.root_position, atol=1e-6)


def test_retiming_keeps_the_first_of_frames_that_fall_together() -> None:
    facing = Heading(frames=torch.tensor([0, 1, 2, 3, 60]), heading=torch.arange(5.0))
    (half,) = retime_constraints([facing], 60, 30)
    assert half.frames.tolist() == [0, 1, 2, 30]
    assert half.heading.tolist() == [0, 2, 3, 4]
    timeline = Timeline(prompts=(Prompt(text="a"),), constraints=(facing,), fps=60.0).at(120)
    assert timeline.constraints[0].frames.tolist() == [0, 2, 4, 6, 120]
    assert timeline.frames() == 600


def test_the_room_opens_without_torch() -> None:
    code = "import sys, bunraku.timeline; assert 'torch' not in sys.modules; bunraku.timeline.parse_prompt('a@3'); assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
    for name in bunraku.timeline.__all__:
        assert getattr(bunraku.timeline, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Wish'"):
        bunraku.timeline.Wish  # noqa: B018


def test_timelines_are_values() -> None:
    timeline = Timeline(prompts=(Prompt(text="a"),))
    assert timeline.prompts == (Prompt(text="a"),)
    with pytest.raises(AttributeError):
        timeline.seed = 3  # type: ignore[misc]
    assert replace(timeline, seed=3).seed == 3
