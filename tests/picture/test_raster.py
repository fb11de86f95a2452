"""The rasteriser, pixel by pixel: areas, hidden surfaces, and values that follow perspective."""

from __future__ import annotations

import numpy as np
import pytest

from bunraku.picture.raster import rasterise
from bunraku.picture.view import View, framing, looking

ALONG_Z = looking(np.array([0.0, 0.0, 1.0]))


def view(parallel: bool = False, scale: float = 100.0) -> View:
    return View(R_camera_world=ALONG_Z, p_world=np.zeros(3), scale=scale, width=200, height=160, parallel=parallel)


def test_a_camera_sees_right_as_right_and_up_as_up() -> None:
    # looking along +Z with +Y up, the world's −X is on the right
    x, y, depth = view().project(np.array([[-1.0, 0.5, 2.0]]))[0]
    assert (x, y, depth) == pytest.approx((150, 55, 2))


def test_rays_are_the_inverse_of_projection() -> None:
    camera = View(R_camera_world=looking(np.array([0.3, -0.4, 0.8])), p_world=np.array([1.0, 2.0, 3.0]), scale=90.0, width=40, height=30)
    points = camera.p_world + 2.5 * camera.rays()
    pixels = camera.project(points)
    assert pixels[..., 0] == pytest.approx(np.broadcast_to(np.arange(40) + 0.5, (30, 40)))
    assert pixels[..., 1] == pytest.approx(np.broadcast_to(np.arange(30)[:, None] + 0.5, (30, 40)))
    assert pixels[..., 2] == pytest.approx(2.5)


@pytest.mark.parametrize("size", [0.004, 0.05, 0.6])
def test_coverage_is_the_area(size: float) -> None:
    """Many triangles tile a square: every pixel centre inside is covered, by the right number of pixels."""
    n = 12
    grid = np.stack(np.meshgrid(np.linspace(-size, size, n + 1), np.linspace(-size, size, n + 1), indexing="ij"), axis=-1).reshape(-1, 2)
    vertices = np.concatenate([grid, np.ones((len(grid), 1))], axis=1)
    corner = np.arange((n + 1) ** 2).reshape(n + 1, n + 1)
    a, b, c, e = corner[:-1, :-1].ravel(), corner[1:, :-1].ravel(), corner[1:, 1:].ravel(), corner[:-1, 1:].ravel()
    faces = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, e], 1)])
    hits = rasterise(vertices, faces, view(scale=101.0))
    xs = np.arange(200) + 0.5
    ys = np.arange(160) + 0.5
    expected = (np.abs(xs - 100) <= 101 * size).sum() * (np.abs(ys - 80) <= 101 * size).sum()
    assert len(hits.pixel) == expected
    assert len(np.unique(hits.pixel)) == len(hits.pixel)


def test_the_nearer_face_hides_the_farther() -> None:
    square = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    far = np.concatenate([square * 2, np.full((4, 1), 2.0)], axis=1)
    near = np.concatenate([square * 0.4, np.full((4, 1), 1.0)], axis=1)
    faces = np.array([[0, 1, 2], [0, 2, 3], [4, 5, 6], [4, 6, 7]])
    hits = rasterise(np.concatenate([far, near]), faces, view())
    sees = np.full(200 * 160, -1)
    sees[hits.pixel] = hits.face
    sees = sees.reshape(160, 200)
    assert (sees[80 - 18 : 80 + 18, 100 - 18 : 100 + 18] >= 2).all()
    assert set(np.unique(sees[80, 60:75])) <= {0, 1}


def test_values_follow_perspective() -> None:
    """A floor that runs away: the world position interpolated at a pixel lies on the ray through that pixel."""
    vertices = np.array([[-3.0, -1.0, 1.0], [3.0, -1.0, 1.0], [3.0, -1.0, 30.0], [-3.0, -1.0, 30.0]])
    faces = np.array([[0, 1, 2], [0, 2, 3]])
    camera = view(scale=60.0)
    hits = rasterise(vertices, faces, camera)
    points = hits.interpolate(vertices, faces)
    back = camera.project(points)
    assert back[:, 0] == pytest.approx(hits.pixel % 200 + 0.5, abs=1e-6)
    assert back[:, 1] == pytest.approx(hits.pixel // 200 + 0.5, abs=1e-6)
    assert points[:, 1] == pytest.approx(-1.0)
    assert back[:, 2] == pytest.approx(hits.depth)


def test_nothing_behind_the_camera_or_beside_it_is_drawn() -> None:
    triangle = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 1.0, 0.0]])
    for shift in ([0, 0, -2.0], [50.0, 0, 1], [0, 50.0, 1]):
        assert len(rasterise(triangle + shift, np.array([[0, 1, 2]]), view()).pixel) == 0
    assert len(rasterise(triangle[[0, 0, 0]] + [0, 0, 2.0], np.array([[0, 1, 2]]), view()).pixel) == 0


@pytest.mark.parametrize("camera", ["three-quarter", "front", "side"])
@pytest.mark.parametrize("size", [(200, 200), (120, 300), (300, 120)])
def test_framing_has_everything_in_and_touches_the_margin(camera: str, size: tuple[int, int]) -> None:
    points = np.random.default_rng(0).uniform((-0.8, 0, -0.3), (0.8, 1.8, 0.3), (500, 3))
    pixels = framing(camera, np.array([0.0, 0.0, 1.0]), points, size).project(points)
    across = np.abs(pixels[:, 0] - size[0] / 2) / (size[0] / 2)
    down = np.abs(pixels[:, 1] - size[1] / 2) / (size[1] / 2)
    assert max(across.max(), down.max()) == pytest.approx(0.86, abs=1e-6)
    assert pixels[:, 2].min() > 0
