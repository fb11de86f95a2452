"""Cameras: everything in the picture in every frame, smooth where they follow, still where they are fixed, no gradient through the way they go."""

from __future__ import annotations

import math

import pytest
import torch

from bunraku.errors import BadValue
from bunraku.film.camera_moves import MOVES, camera_path, facing_at_first, followed, outline
from bunraku.kinematics.edit import place
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import rest_motion
from tests.film.film_bodies import POINT


def cloud(frames: int = 60, seed: int = 0, fps: float = 30.0) -> torch.Tensor:
    """A body of 26 points that walks, sways and jumps about."""
    generator = torch.Generator().manual_seed(seed)
    shape = torch.rand(26, 3, generator=generator) * torch.tensor([0.6, 1.7, 0.4])
    time = torch.arange(frames)[:, None] / fps
    sway = 0.05 * torch.sin(12 * time + torch.tensor([0.0, 1.0, 2.0])) + torch.tensor([0.2, 0.0, 1.3]) * time
    return shape + sway[:, None] + 0.02 * torch.rand(frames, 26, 3, generator=generator)


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("size", [(72, 48), (30, 90), (64, 64)])
@pytest.mark.parametrize("along", [False, True])
def test_the_whole_body_is_in_the_picture_in_every_frame(move: str, size: tuple[int, int], along: bool) -> None:
    points = cloud()
    camera = camera_path(move, points, 0.7, 30.0, size, along=along)
    assert camera.T_world_camera.shape == (60, 4, 4)
    pixel, depth = camera.project(points)
    assert float(depth.min()) > 0
    share = ((pixel - torch.tensor(size) / 2).abs() / (torch.tensor(size) / 2)).amax(1)
    assert float(share.max()) == pytest.approx(0.84, abs=0.002)  # and no farther away than needed


@pytest.mark.parametrize("move", ["front", "side", "three-quarter"])
def test_fixed_cameras_stand_still(move: str) -> None:
    poses = camera_path(move, cloud(), 0.0, 30.0, (60, 40)).T_world_camera
    assert torch.equal(poses, poses[:1].expand_as(poses))


def test_cameras_stand_where_their_names_say() -> None:
    points = cloud(3)
    for facing in (0.0, 1.0, -2.5):
        ahead = torch.tensor([math.sin(facing), 0.0, math.cos(facing)])
        left = torch.tensor([math.cos(facing), 0.0, -math.sin(facing)])
        middle = (points.amin((0, 1)) + points.amax((0, 1))) / 2
        for move, direction in (("front", ahead), ("side", left)):
            towards = camera_path(move, points, facing, 30.0, (40, 40)).p_world[0] - middle
            assert float(towards @ direction / towards.norm()) > 0.98


def test_following_is_smooth_and_keeps_up() -> None:
    points = cloud(90)
    centre = (points.amin(1) + points.amax(1)) / 2
    way = followed(points, 30.0)
    jerk = [(p[2:] - 2 * p[1:-1] + p[:-2]).norm(dim=-1).mean() for p in (centre, way)]
    assert float(jerk[1]) < 0.05 * float(jerk[0])
    assert float((way - centre).norm(dim=-1).max()) < 0.12  # the sway, not the way
    assert float((way[-1] - way[0])[2]) == pytest.approx(1.3 * 89 / 30, abs=0.1)


def test_a_straight_way_is_followed_without_lag() -> None:
    time = torch.arange(40, dtype=torch.float64)[:, None, None] / 20
    points = torch.rand(1, 26, 3, dtype=torch.float64) + time * torch.tensor([1.0, 0.0, -2.0])
    centre = (points.amin(1) + points.amax(1)) / 2
    assert torch.allclose(followed(points, 20.0), centre, atol=1e-5)


def test_an_orbit_goes_round_at_one_speed_and_distance() -> None:
    points = cloud(1).expand(101, -1, -1)
    path = camera_path("orbit", points, 0.0, 10.0, (40, 40)).p_world
    middle = path[:100].mean(0)
    away = (path - middle)[:, [0, 2]]
    assert torch.allclose(away.norm(dim=-1), away.norm(dim=-1).mean().expand(101), rtol=1e-3)
    assert torch.allclose(path[100], path[0], atol=1e-3)  # once round in ten seconds
    step = (path[1:] - path[:-1]).norm(dim=-1)
    assert torch.allclose(step, step.mean().expand(100), rtol=1e-3)


def test_no_gradient_goes_through_the_camera() -> None:
    points = cloud(4).requires_grad_()
    assert not camera_path("follow", points, 0.0, 30.0, (40, 40)).T_world_camera.requires_grad
    assert not outline(torch.rand(2, 50, 3).requires_grad_()).requires_grad


def test_the_outline_has_the_box_of_all_vertices() -> None:
    vertices = torch.randn(5, 400, 3)
    points = outline(vertices)
    assert points.shape == (5, 26, 3)
    assert torch.equal(points.amin(1), vertices.amin(1))
    assert torch.equal(points.amax(1), vertices.amax(1))


@pytest.mark.parametrize("yaw", [0.0, 2.0, -1.2])
def test_the_body_is_seen_from_the_front_wherever_it_faces(yaw: float) -> None:
    motion = place(rest_motion(skeleton("soma30")), (0.0, 0.0), yaw)
    assert facing_at_first(motion.skeleton, forward_kinematics(motion).p_world_joint) == pytest.approx(yaw, abs=0.02)


def test_what_has_no_hips_faces_ahead() -> None:
    assert facing_at_first(POINT, torch.zeros(1, 1, 3)) == 0


def test_a_single_point_can_be_looked_at() -> None:
    camera = camera_path("follow", torch.zeros(1, 26, 3), 0.0, 30.0, (40, 40))
    assert bool(torch.isfinite(camera.T_world_camera).all())


def test_unknown_cameras_are_refused_with_a_list() -> None:
    with pytest.raises(BadValue, match="no camera 'top'; choose follow, three-quarter, front, side, orbit"):
        camera_path("top", cloud(2), 0.0, 30.0, (40, 40))
