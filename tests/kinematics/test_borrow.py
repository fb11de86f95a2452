"""Borrowing: a limb that is caught for some frames takes over a pose from nearby, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import torch

from bunraku.kinematics.borrow import REACH, borrow_limbs, unbranched_chains
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.inverse import RotationTarget, Target
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.retarget import retarget
from bunraku.kinematics.skeleton import Skeleton
from bunraku.kinematics.walk import walk
from bunraku.math.rotations import exp_quat, geodesic_distance, quat_multiply

LIMBS = ("left_shoulder", "left_elbow", "left_hand", "right_hand", "left_foot", "right_foot")


def walking_g1() -> Motion:
    return retarget(walk(skeleton("soma30"), seconds=2.0), skeleton("g1"))


def turns_of(motion: Motion) -> list[Target]:
    R = forward_kinematics(motion).R_world_joint
    joints = [motion.skeleton.role(role) for role in LIMBS]
    return [RotationTarget(joint=joint, R_world=R[:, joint], weight=torch.ones(len(motion))) for joint in joints]


def arm_of(body: Skeleton) -> list[int]:
    return next(chain for chain in unbranched_chains(body) if body.role("left_shoulder") in chain)


def test_a_robot_has_five_limbs() -> None:
    body = skeleton("g1")
    chains = unbranched_chains(body)
    assert len(chains) == 5
    assert sorted(joint for chain in chains for joint in chain) == list(range(1, len(body)))
    assert {body.role("left_shoulder"), body.role("left_elbow"), body.role("left_hand")} <= set(arm_of(body))


def test_a_motion_that_meets_its_targets_is_left_alone() -> None:
    motion = walking_g1()
    assert borrow_limbs(motion, turns_of(motion)) is motion


def test_a_limb_that_is_caught_comes_free() -> None:
    motion = walking_g1()
    arm = arm_of(motion.skeleton)
    caught = range(20, 20 + REACH[-1])
    quats = motion.quats.clone()
    quats[caught.start : caught.stop, arm[0]] = quat_multiply(quats[caught.start : caught.stop, arm[0]], exp_quat(torch.tensor([0.0, 2.8, 0.0])))
    free = borrow_limbs(replace(motion, quats=quats), turns_of(motion))
    others = [joint for joint in range(len(motion.skeleton)) if joint not in arm]
    assert torch.equal(free.quats[:, others], quats[:, others])
    assert torch.equal(free.quats[: caught.start], quats[: caught.start])
    wrong = geodesic_distance(forward_kinematics(free).R_world_joint, forward_kinematics(motion).R_world_joint)[:, arm]
    assert wrong.max() < 1.0  # a pose from up to 16 frames away, instead of one turned by 2.8


def test_one_frame_has_no_neighbours() -> None:
    motion = walking_g1()[10:11]
    assert borrow_limbs(motion, turns_of(walking_g1()[20:21])) is motion
