"""Feet stay out of the ground: toes that would go through it are bent up, without a snap, and nothing else moves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bunraku.evaluate.quality import check
from bunraku.kinematics.forward import forward_kinematics, rest_poses
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.retarget import retarget
from bunraku.kinematics.soles import lift_toes
from bunraku.kinematics.stance import _not_through_ground
from bunraku.math.rotations import exp_quat, quat_multiply
from tests.cmu import load_cmu


def bent_down(joint: str, angle: torch.Tensor) -> Motion:
    """SOMA 77 standing, one joint pitched down [rad] by a curve over the frames."""
    motion = rest_motion(skeleton("soma77"), len(angle))
    j = motion.skeleton.role(joint)
    across = rest_poses(motion.skeleton).R_world_joint[j].T @ torch.tensor([1.0, 0.0, 0.0])
    quats = motion.quats.clone()
    quats[:, j] = quat_multiply(quats[:, j], exp_quat(across * angle[:, None]))
    return replace(motion, quats=quats)


def test_toes_are_lifted_out_of_the_ground_and_nothing_else_moves() -> None:
    sunk = bent_down("left_toe", 0.6 * torch.sin(torch.linspace(0, 3.14159, 40)) ** 2)
    lifted = lift_toes(sunk)
    assert check(sunk)["penetration_max"] > 20  # type: ignore[operator]
    assert check(lifted)["penetration_max"] < 1  # type: ignore[operator]
    toe = sunk.skeleton.role("left_toe")
    others = [j for j in range(len(sunk.skeleton)) if j != toe]
    torch.testing.assert_close(lifted.quats[:, others], sunk.quats[:, others], atol=1e-5, rtol=0)


def test_toes_in_the_air_are_left_alone() -> None:
    high = bent_down("left_toe", torch.full((5,), 0.6))
    high = replace(high, root_position=high.root_position + torch.tensor([0.0, 0.3, 0.0]))
    torch.testing.assert_close(forward_kinematics(lift_toes(high)).p_world_joint, forward_kinematics(high).p_world_joint, atol=1e-5, rtol=0)


def test_the_toes_of_a_foot_on_tiptoe_lie_flat() -> None:
    """A robot's toes do not bend; on a body whose toes do, a heel raised by 75° must not drive them into the ground."""
    steep = bent_down("left_foot", torch.full((5,), 1.3))
    toe = steep.skeleton.role("left_toe")
    up = rest_poses(steep.skeleton).p_world_joint[toe, 1] - forward_kinematics(steep).p_world_joint[0, toe, 1]
    steep = replace(steep, root_position=steep.root_position + torch.stack([0 * up, up, 0 * up]))
    sole = check(lift_toes(steep))["penetration_max"]
    assert check(steep)["penetration_max"] > 30  # type: ignore[operator]
    assert sole < 5  # type: ignore[operator]


def test_one_frame_is_enough() -> None:
    assert check(lift_toes(bent_down("right_toe", torch.tensor([0.5]))))["penetration_max"] < 1  # type: ignore[operator]


def test_a_foot_that_steps_down_from_a_platform_does_not_jump() -> None:
    """What dips a little is put on the ground, what is deep is left; in between the correction fades."""
    y = torch.linspace(0.2, -0.5, 700)
    path = torch.stack([torch.zeros_like(y), y, torch.zeros_like(y)], dim=-1)
    raised = _not_through_ground(path, 0.08, 1.0)[:, 1]
    assert (raised[1:] - raised[:-1]).abs().max() < 0.004
    assert (raised[(y < 0.08) & (y > 0.0)] - 0.08).abs().max() < 1e-6
    torch.testing.assert_close(raised[y < -0.15], y[y < -0.15])


@pytest.mark.parametrize("name", ["soma77", "g1"])
def test_a_captured_walk_keeps_feet_out_of_the_ground(shared: Path, name: str) -> None:
    report = check(retarget(load_cmu(shared, "35_01"), skeleton(name)))
    assert report["penetration_max"] < 5  # type: ignore[operator]
    assert report["pops"] == 0
