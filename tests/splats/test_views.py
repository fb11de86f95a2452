"""Pictures that splats are fitted to: exact areas and colours, from all around, the same for the same seed."""

from __future__ import annotations

import numpy as np
import torch

from bunraku.geometry.appearance import appearance_of
from bunraku.geometry.colour import to_srgb
from bunraku.geometry.mesh import Material, Mesh
from bunraku.splats import Camera
from bunraku.splats.views import draw_mesh, random_views
from tests.splats.puppet import puppet


def test_a_pixel_is_covered_by_its_share() -> None:
    """A square of 10.5 × 7.25 pixels, facing the camera."""
    camera = Camera.look_at((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), 24, 20)
    size = torch.tensor([10.5, 7.25, 0]) / float(camera.K[0, 0]) / 2
    corners = torch.tensor([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * size
    square = Mesh(vertices=corners, faces=torch.tensor([[0, 1, 2], [0, 2, 3]]), materials=(Material(base_color=(0.2, 0.5, 0.9, 1.0)),))
    picture = draw_mesh(square.vertices, appearance_of(square), camera)
    assert abs(float(picture.alpha.sum()) - 10.5 * 7.25) < 0.06 * 10.5 * 7.25
    assert set(np.unique((picture.alpha * 9).round().int())) <= set(range(10))
    torch.testing.assert_close(picture.color, picture.alpha[..., None] * torch.from_numpy(to_srgb(np.array([0.2, 0.5, 0.9]))).float())
    torch.testing.assert_close(picture.over(torch.ones(3))[0, 0], torch.ones(3))


def test_views_hold_the_whole_body_and_come_from_everywhere() -> None:
    vertices = puppet().mesh.vertices
    cameras = random_views(vertices, 60, 0, size=100)
    seen = [camera.project(vertices) for camera in cameras]
    pixel, depth = (torch.stack(values) for values in zip(*seen, strict=True))
    assert (depth > 0).all()
    assert (pixel > 0).all()
    assert (pixel < 100).all()
    assert float((pixel[..., 1].amax(1) - pixel[..., 1].amin(1)).max()) > 70
    eyes = torch.stack([camera.p_world for camera in cameras])
    towards = torch.nn.functional.normalize(eyes - eyes.mean(0), dim=1)
    assert float(towards.mean(0).norm()) < 0.1
    torch.testing.assert_close(torch.linalg.eigvalsh(towards.T @ towards / 60), torch.full((3,), 1 / 3), atol=0.08, rtol=0)


def test_the_seed_decides() -> None:
    first, again, other = (torch.stack([camera.T_world_camera for camera in random_views(puppet().mesh.vertices, 5, seed)]) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_every_second_view_is_closer() -> None:
    vertices = puppet().mesh.vertices
    focal = torch.tensor([float(camera.K[0, 0]) for camera in random_views(vertices, 40, 0, closest=3.0)])
    assert (focal[::2] == focal[0]).all()
    zoom = focal[1::2] / focal[0]
    assert zoom.min() >= 1
    assert 2 < zoom.max() <= 3.001
    close = random_views(vertices, 2, 0, closest=3.0)[1]
    aimed = (close.project(vertices)[0] - close.width / 2).norm(dim=1).min()
    assert float(aimed) < 0.1
