"""What motions are charged for: zero where nothing is wrong, growing with what is."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bunraku.distill.bone_boxes import bone_boxes
from bunraku.distill.regularise import Regularisers, beyond_limits, penetration, regularisers, skating, smoothness
from bunraku.distill.trajectory import Timing, Trajectory
from bunraku.kinematics.library import skeleton
from bunraku.rig.mannequin import mannequin
from tests.splats.puppet import puppet


def test_even_motion_is_smooth() -> None:
    ramp = torch.linspace(0, 3, 20)[:, None] * torch.randn(5)
    assert float(smoothness(ramp)) < 1e-5
    kink = ramp.clone()
    kink[10] += 1
    assert float(smoothness(kink)) == pytest.approx(4 / 18, rel=0.01)  # 1, 2 and 1, over 18 frames
    assert float(smoothness(ramp[:2])) == 0


def test_depth_below_the_ground_is_what_costs() -> None:
    heights = torch.tensor([[[0.1] * 4 + [-0.2] * 4]])
    assert float(penetration(heights)) == pytest.approx(0.1)
    assert float(penetration(heights.abs())) == 0


def test_feet_that_slide_cost_and_feet_that_fly_do_not() -> None:
    still = torch.zeros(5, 1, 8, 3)
    along = still.clone()
    along[..., 0] = torch.arange(5)[:, None, None] * 0.1
    high = along + torch.tensor([0.0, 0.5, 0.0])
    assert float(skating(along, 0.0, 1.0, 10.0)) == pytest.approx(1.0, rel=1e-3)
    assert float(skating(still, 0.0, 1.0, 10.0)) < 1e-4
    assert float(skating(high, 0.0, 1.0, 10.0)) < 1e-4


def test_limits_begin_at_75_degrees() -> None:
    assert float(beyond_limits(torch.full((2, 1, 3), 1.3))) == 0
    assert float(beyond_limits(torch.full((2, 1, 3), 2.0))) > 0.1


def test_boxes_hold_the_body_and_stand_on_the_ground() -> None:
    character = mannequin(skeleton("soma30"))
    boxes = bone_boxes(character, 0.0)
    trajectory = Trajectory(character.rig, Timing(frames=2, fps=8.0))
    corners = boxes.corners(trajectory.poses()).detach()
    assert float(corners[..., 1].min()) >= -1e-5
    vertices = character.mesh.vertices
    assert float((corners[0].amax((0, 1)) - vertices.amax(0)).abs().max()) < 0.05
    trajectory.root_way.data[:, 1] = -0.1
    lowered = boxes.corners(trajectory.poses())
    assert torch.allclose(lowered[..., 1], corners[..., 1] - 0.1 * trajectory.height, atol=1e-4)


def test_a_side_that_works_alone_costs() -> None:
    character = mannequin(skeleton("cmu23"))
    trajectory = Trajectory(character.rig, Timing(frames=12, fps=8.0), basis="frames")
    weights = Regularisers(smooth=0, ground=0, sides=1.0)
    boxes = bone_boxes(character, 0.0)

    def cost() -> float:
        return float(regularisers(weights, trajectory, trajectory.poses(), boxes, 0.0)["sides"])

    number = {character.skeleton.joints[int(joint)]: i for i, joint in enumerate(trajectory.joints)}
    left, right = (number[character.skeleton.joints[character.skeleton.role(f"{side}_hip")]] for side in ("left", "right"))
    swing = torch.sin(torch.linspace(0, 6, 12))
    assert cost() < 1e-6
    trajectory.angles.data[:, left, 0] = swing
    alone = cost()
    trajectory.angles.data[:, right, 0] = -swing
    assert cost() < 0.1 * alone


def test_terms_without_weight_are_not_there() -> None:
    character = puppet()
    trajectory = Trajectory(character.rig, Timing(frames=4, fps=8.0))
    found = regularisers(replace(Regularisers(), ground=0.0), trajectory, trajectory.poses(), bone_boxes(character, 0.0), 0.0)
    assert list(found) == ["smooth"]
