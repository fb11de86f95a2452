"""Who performs: a human for SOMA, a mannequin for others, the character that is asked for; always on the ground."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bunraku.errors import BadValue
from bunraku.film.actors import perform
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import rest_motion
from bunraku.kinematics.rest import rebase
from bunraku.kinematics.walk import walk
from bunraku.math.rotations import quat_to_matrix, yaw_quat
from bunraku.rig.mannequin import mannequin
from tests.film.film_bodies import cube, moved, walker


def lift(motion, height: float):
    return replace(motion, root_position=motion.root_position + torch.tensor([0.0, height, 0.0]))


@pytest.mark.parametrize(("name", "body"), [("soma30", "SOMA body"), ("soma77", "SOMA body"), ("smplx22", "mannequin of smplx22"), ("g1", "mannequin of g1")])
def test_every_skeleton_has_its_body(name: str, body: str) -> None:
    performance = perform(rest_motion(skeleton(name)))
    assert performance.character.name == body
    assert performance.motion.skeleton.joints == performance.character.skeleton.joints


def test_other_proportions_are_put_on_the_human() -> None:
    body = skeleton("soma77")
    longer = replace(body, offsets=body.offsets * 1.4)
    performance = perform(rest_motion(longer))
    assert performance.character.name == "SOMA body"
    assert torch.allclose(performance.motion.skeleton.offsets, body.offsets)
    near = replace(body, offsets=body.offsets * 1.01)  # these are stretched a little
    assert perform(rest_motion(near)).motion.skeleton is near


def test_the_same_names_are_not_yet_the_same_skeleton() -> None:
    """Where joints rest turned otherwise, or a body is larger, the motion is retargeted."""
    body = mannequin(skeleton("smplx22"))
    motion = walk(body.skeleton, seconds=0.3, fps=10)
    assert perform(motion, body).motion.skeleton is motion.skeleton
    R = quat_to_matrix(yaw_quat(torch.full((len(body.skeleton),), 0.6)))
    turned = rebase(motion, R @ rest_poses(body.skeleton).R_world_joint)
    larger = walk(replace(body.skeleton, offsets=2 * body.skeleton.offsets), seconds=0.3, fps=10)
    for other in (turned, larger):
        performance = perform(other, body)
        assert performance.motion.skeleton.name == body.skeleton.name
        assert torch.allclose(performance.motion.skeleton.offsets, body.skeleton.offsets)
        straight = perform(motion, body)
        assert float((performance.points[0] - straight.points[0]).norm(dim=-1).median()) < 0.1


def test_a_character_with_another_skeleton_gets_the_motion_retargeted() -> None:
    performance = perform(walker(0.3), mannequin(skeleton("smplx22")))
    assert performance.motion.skeleton.name == "smplx22"


@pytest.mark.parametrize("height", [-0.9, -0.02, 0.0, 0.03, 0.12])
def test_feet_stand_on_the_ground(height: float) -> None:
    performance = perform(lift(walker(), height))
    lowest = performance.points[..., 1].amin(1)
    assert float(lowest.median().abs()) < 0.02
    assert performance.raised == pytest.approx(-height, abs=0.03)


def test_what_flies_high_flies_above_y_0() -> None:
    assert perform(moved([[0.0, 3.0, 0.0], [0.0, 3.1, 0.0]]), cube()).raised == 0
    assert perform(moved([[0.0, -3.0, 0.0]]), cube()).raised == pytest.approx(3.5)


def test_a_jump_leaves_the_ground_where_it_was() -> None:
    heights = [0.5] * 6 + [0.9, 1.3, 1.4, 1.3, 0.9] + [0.5] * 6
    assert perform(moved([[0.0, height, 0.0] for height in heights]), cube()).raised == pytest.approx(0, abs=1e-3)


def test_a_sword_may_go_through_the_ground() -> None:
    """A body whose feet stand at 0 while something that it holds reaches below."""
    body = mannequin(skeleton("smplx22"))
    hand = body.skeleton.role("right_hand")
    held = body.rig.weights[:, hand] > 0.9
    vertices = body.mesh.vertices.clone()
    vertices[held] += torch.tensor([0.0, -2.0, 0.0])
    armed = replace(body, mesh=replace(body.mesh, vertices=vertices))
    performance = perform(rest_motion(body.skeleton, 3), armed)
    assert abs(performance.raised) < 0.03
    assert float(performance.points[..., 1].min()) < -0.3


def test_motions_too_far_away_are_refused() -> None:
    with pytest.raises(BadValue, match="1e\\+06 m away from the origin"):
        perform(moved([[1e6, 0.5, 0.0]]), cube())


def test_a_character_without_faces_cannot_be_seen() -> None:
    bones = cube()
    bare = replace(bones, mesh=replace(bones.mesh, faces=bones.mesh.faces[:0]))
    with pytest.raises(BadValue, match="no faces to be seen"):
        perform(moved([[0.0, 0.0, 0.0]]), bare)
