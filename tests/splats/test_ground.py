"""The ground: its squares averaged exactly over each pixel, no moiré up to the horizon, and gradients to the camera."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.splats.camera import Camera
from bunraku.splats.ground import Checkerboard, checkerboard, see_ground


def plain(place: Tensor) -> Tensor:
    """The checkerboard at points: 1 where both coordinates fall into even or both into odd squares."""
    return ((place.floor().long().sum(-1) % 2) == 0).double()


@given(st.floats(-30, 30), st.floats(-30, 30), st.floats(0.01, 7), st.floats(0.01, 7))
def test_the_box_filter_is_the_average_over_the_box(x: float, z: float, width: float, depth: float) -> None:
    n = 400
    steps = (torch.arange(n, dtype=torch.float64) + 0.5) / n - 0.5
    points = torch.stack(torch.meshgrid(x + width * steps, z + depth * steps, indexing="ij"), dim=-1)
    exact = checkerboard(torch.tensor([x, z], dtype=torch.float64), torch.tensor([width, depth], dtype=torch.float64))
    assert float(exact) == pytest.approx(float(plain(points).mean()), abs=(width + depth) / n / min(width, depth) + 0.006)


def test_a_thin_box_is_the_square_itself() -> None:
    place = torch.rand(500, 2, dtype=torch.float64) * 20 - 10
    place = place[((place - place.round()).abs() > 0.01).all(-1)]
    assert torch.equal(checkerboard(place, torch.full_like(place, 1e-9)).round(), plain(place))


def ahead(height: float = 1.5, width: int = 48, tall: int = 32, dtype: torch.dtype = torch.float64) -> Camera:
    eye = torch.tensor([1.6, height, 3.7], dtype=dtype)
    return Camera.look_at(eye, torch.tensor([0.1, height - 0.6, 0.0], dtype=dtype), width, tall)


def test_pixels_are_what_many_rays_see() -> None:
    """Against 24 × 24 rays for each pixel, where squares are larger than pixels and where they are not."""
    ground = Checkerboard(colours=((1.0, 1.0, 1.0), (0.0, 0.0, 0.0)), fade=1e3)
    camera, n = ahead(), 24
    fine = see_ground(camera.resized(camera.width * n, camera.height * n), ground)
    light = plain(fine.p_world[..., (0, 2)] / ground.square).reshape(camera.height, n, camera.width, n).mean((1, 3))
    floor = see_ground(camera, ground)
    whole = floor.share[:, 0] > 0.99  # rows below the horizon
    assert int(whole.sum()) > 20
    away = (floor.color[..., 0] - light)[whole].abs()
    assert float(away.mean()) < 0.03  # a footprint is a parallelogram, not a row of boxes
    assert float(away.square().mean().sqrt()) < 0.06


def test_towards_the_horizon_there_is_no_moire() -> None:
    """Where a pixel covers many squares it shows their mean, and a step of the camera changes nothing."""
    ground = Checkerboard(colours=((1.0, 1.0, 1.0), (0.0, 0.0, 0.0)), fade=1e4, square=0.2)
    floor = see_ground(ahead(height=1.0, width=64, tall=64), ground)
    far = (floor.p_world[..., 2] < -60) & (floor.share > 0)
    assert far.sum() > 60
    assert float((floor.color[..., 0][far] - 0.5).abs().max()) < 0.06


def test_it_fades_into_the_sky_and_ends_at_the_horizon() -> None:
    floor = see_ground(ahead(), Checkerboard(fade=5.0))
    column = floor.share[:, 24]
    assert bool((column[1:] >= column[:-1]).all())
    assert float(column[0]) == 0
    assert float(column[-1]) > 0.4
    assert bool(torch.isfinite(floor.p_world).all())


def test_from_below_there_is_no_ground() -> None:
    camera = Camera.look_at((0.0, -1.0, 3.0), (0.0, 1.0, 0.0), 20, 20)
    assert float(see_ground(camera, Checkerboard()).share.max()) == 0


def test_a_batch_is_every_camera_by_itself() -> None:
    eyes = torch.tensor([[0.0, 1.0, 3.0], [2.0, 2.0, 1.0], [0.0, 5.0, 0.1]])
    cameras = Camera.look_at(eyes, torch.zeros(3, 3), 20, 14)
    together = see_ground(cameras, Checkerboard())
    for number in range(3):
        alone = see_ground(cameras[number], Checkerboard())
        assert torch.equal(together.color[number], alone.color)
        assert torch.equal(together.share[number], alone.share)


def test_gradients_reach_the_camera() -> None:
    camera = ahead(width=7, tall=5)
    weight = torch.rand(5, 7, 3, dtype=torch.float64)

    def seen(shift: Tensor) -> Tensor:
        T = camera.T_world_camera
        T = torch.cat([torch.cat([T[:3, :3], (T[:3, 3] + shift)[:, None]], dim=1), T[3:]])
        floor = see_ground(Camera(T_world_camera=T, K=camera.K, width=7, height=5), Checkerboard(square=1.7))
        return (floor.color * floor.share[..., None] * weight).sum()

    shift = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(seen, (shift,), eps=1e-7, atol=1e-5)
    (slope,) = torch.autograd.grad(seen(shift), shift)
    assert bool((slope.abs() > 1e-6).all())


def test_squares_and_fades_have_lengths() -> None:
    for wrong in ({"square": 0.0}, {"fade": -1.0}, {"square": math.nan}):
        with pytest.raises(BadValue, match="positive length"):
            Checkerboard(**wrong)
