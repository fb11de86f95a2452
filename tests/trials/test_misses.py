"""Misses by family: zero for the truth, as far as it was moved for anything else."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

import bunraku
from bunraku.kinematics.edit import place
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.walk import walk
from bunraku.math.rotations import matrix_to_quat
from bunraku.timeline import EffectorTarget, FootPlan, Heading, PoseKey, RootPath
from bunraku.trials.misses import miss_metrics, misses

BODY = bunraku.skeleton("soma30")
MOTION = walk(BODY, seconds=2.0)
FRAMES = torch.tensor([3, 30, 59])
SHIFT = (0.03, 0.04)  # 5 cm


def poses(motion: Motion = MOTION) -> Motion:
    return replace(motion, root_position=motion.root_position[FRAMES], quats=motion.quats[FRAMES], contacts=None)


def hips_xz() -> torch.Tensor:
    return MOTION.root_position[FRAMES][:, [0, 2]]


def test_the_truth_misses_nothing() -> None:
    world = forward_kinematics(MOTION)
    hand = BODY.role("left_hand")
    p_hand, q_hand = world.p_world_joint[FRAMES, hand], matrix_to_quat(world.R_world_joint[FRAMES, hand])
    asked = [
        PoseKey(frames=FRAMES, poses=poses()),
        PoseKey(frames=FRAMES, poses=poses(), effectors=("left_hand", "right_foot")),
        EffectorTarget(frames=FRAMES, effector="left_hand", position=p_hand, quats=q_hand),
        Heading(frames=FRAMES, heading=misses_heading()),
        FootPlan(frames=FRAMES, contacts=MOTION.contacts[FRAMES]),  # type: ignore[index]
    ]
    found = miss_metrics([misses(MOTION, asked)])
    for name in ("fullbody", "effector", "effector_turn", "heading"):
        assert getattr(found, name) == pytest.approx(0, abs=2e-3), name
    assert found.contacts == 1.0
    assert found.root is None
    assert found.pelvis_p95 is None


def misses_heading() -> torch.Tensor:
    from bunraku.kinematics.heading import heading_of

    return heading_of(BODY, forward_kinematics(MOTION).p_world_joint[FRAMES])


def test_a_moved_motion_misses_by_as_much() -> None:
    moved = place(MOTION, SHIFT, 0.0)
    asked = [PoseKey(frames=FRAMES, poses=poses()), PoseKey(frames=FRAMES, poses=poses(), effectors=("right_hand",)), RootPath(frames=FRAMES, xz=hips_xz())]
    found = miss_metrics([misses(moved, asked)])
    assert found.fullbody == pytest.approx(5.0, abs=1e-3)
    assert found.effector == pytest.approx(5.0, abs=1e-3)
    assert found.effector_turn == pytest.approx(0, abs=1e-3)
    assert found.pelvis == pytest.approx(5.0, abs=1e-3)
    assert found.pelvis_p95 == pytest.approx(5.0, abs=1e-3)
    assert found.root_within == 1.0
    assert found.root != pytest.approx(5.0, abs=1e-3)  # the smoothed root is not the hips


def test_a_turned_motion_misses_by_the_angle() -> None:
    turned = place(MOTION, (0.0, 0.0), math.radians(20))
    asked = [Heading(frames=FRAMES, heading=misses_heading()), PoseKey(frames=FRAMES, poses=poses(), effectors=("left_foot",))]
    found = miss_metrics([misses(turned, asked)])
    assert found.heading == pytest.approx(20, abs=1e-3)
    assert found.effector_turn == pytest.approx(20, abs=1e-3)


def test_the_mean_is_over_motions_and_the_percentile_over_frames() -> None:
    near = misses(place(MOTION, (0.01, 0.0), 0.0), [RootPath(frames=FRAMES[:1], xz=hips_xz()[:1])])
    far = misses(place(MOTION, (0.5, 0.0), 0.0), [RootPath(frames=FRAMES, xz=hips_xz())])
    nothing = misses(MOTION, [])
    found = miss_metrics([near, far, nothing])
    assert found.pelvis == pytest.approx((1 + 50) / 2, abs=1e-3)
    assert found.pelvis_p95 == pytest.approx(50, abs=1e-3)
    assert found.root_within == pytest.approx(1 / 4)
    assert found.fullbody is None


def test_a_foot_plan_is_kept_or_not() -> None:
    assert MOTION.contacts is not None
    plan = FootPlan(frames=FRAMES, contacts=~MOTION.contacts[FRAMES])
    assert miss_metrics([misses(MOTION, [plan])]).contacts == 0.0
    assert miss_metrics([misses(replace(MOTION, contacts=None), [plan])]).contacts is None
