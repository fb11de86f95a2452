"""Scenes: what is in front of what, splats under the ground, and gradients that live at its edge."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.splats.camera import Camera
from bunraku.splats.ground import Checkerboard, see_ground
from bunraku.splats.scene import Scene, backdrop, hide_below, render_scene
from bunraku.splats.splats import Splats, random_splats


def ball(height: float, n: int = 40, dtype: torch.dtype = torch.float64) -> Splats:
    """A small opaque ball of splats about (0, height, 0)."""
    some = random_splats(n, 1).to(dtype=dtype)
    return replace(
        some, means=0.25 * some.means + torch.tensor([0.0, height, 0.0], dtype=dtype), factors=0.4 * some.factors, opacity_logits=some.opacity_logits * 0 + 4
    )


def camera(dtype: torch.dtype = torch.float64, width: int = 24, height: int = 16) -> Camera:
    return Camera.look_at(torch.tensor([0.5, 1.2, 3.0], dtype=dtype), torch.tensor([0.0, 0.4, 0.0], dtype=dtype), width, height)


def test_sky_ground_and_splats_lie_behind_one_another() -> None:
    scene, eye = Scene(shadow=None, sky=(0.1, 0.2, 0.9)), camera()
    image, empty = render_scene(ball(0.5), eye, scene, "torch"), backdrop(scene, eye)
    assert image.shape == (16, 24, 3)
    assert image[0, 0].tolist() == pytest.approx([0.1, 0.2, 0.9])
    changed = (image - empty).abs().amax(-1) > 0.02
    assert 10 < int(changed.sum()) < 200
    assert torch.equal(image[-1], empty[-1])
    floor = see_ground(eye, Checkerboard())
    sure = floor.share > 0
    assert torch.allclose(empty[sure], (torch.tensor(scene.sky) + floor.share[..., None] * (floor.color - torch.tensor(scene.sky)))[sure])


def test_without_ground_there_is_only_sky() -> None:
    image = render_scene(ball(0.5), camera(), Scene(ground=None), "torch")
    assert image[-1, 0].tolist() == pytest.approx(list(Scene().sky))


def test_splats_below_the_ground_are_hidden() -> None:
    scene = Scene(shadow=None)
    assert torch.allclose(render_scene(ball(-0.6), camera(), scene, "torch"), backdrop(scene, camera()), atol=1e-3)


def test_the_edge_at_the_ground_is_soft() -> None:
    heights = torch.linspace(-0.05, 0.05, 21, dtype=torch.float64)
    some = random_splats(21, 0).to(dtype=torch.float64)
    splats = replace(some, means=torch.stack([heights * 0, heights + 2, heights * 0], dim=-1))
    left = hide_below(splats, 2.0, 0.004).opacities / splats.opacities
    assert bool((left[1:] >= left[:-1]).all())
    assert float(left[10]) == pytest.approx(0.953, abs=0.002)  # at the ground
    assert float(left[0]) < 1e-4
    assert float(left[-1]) > 0.9999
    assert bool(torch.isfinite(hide_below(replace(splats, opacity_logits=splats.opacity_logits * 0 + 40), 2.0, 0.004).opacity_logits).all())


def test_gradients_pull_splats_out_of_the_ground_and_reach_the_camera() -> None:
    still, eye, scene = ball(0.0, n=12), camera(width=10, height=8), Scene(shadow=None, edge=0.05)
    weight = torch.rand(8, 10, 3, dtype=torch.float64)

    def seen(lift: Tensor, shift: Tensor) -> Tensor:
        T = torch.cat([eye.T_world_camera[:, :3], (eye.T_world_camera[:, 3] + torch.cat([shift, shift[:1] * 0]))[:, None]], dim=1)
        splats = replace(still, means=still.means + lift[:, None] * torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64))
        return (render_scene(splats, replace(eye, T_world_camera=T), scene, "torch") * weight).sum()

    lift = torch.full((12,), -0.05, dtype=torch.float64, requires_grad=True)
    shift = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    slopes = torch.autograd.grad(seen(lift, shift), (lift, shift))
    assert bool((slopes[0].abs() > 1e-5).all())
    steps = [(slopes[0][k], row, torch.zeros(3)) for k, row in enumerate(1e-5 * torch.eye(12, dtype=torch.float64))][::4]
    steps += [(slopes[1][k], torch.zeros(12), row) for k, row in enumerate(1e-5 * torch.eye(3, dtype=torch.float64))]
    for slope, rise, step in steps:
        change = seen(lift.detach() + rise, shift.detach() + step) - seen(lift.detach() - rise, shift.detach() - step)
        assert float(change) / 2e-5 == pytest.approx(float(slope), rel=2e-3, abs=1e-5)


def test_a_clip_is_its_frames() -> None:
    still = ball(0.5).to(dtype=torch.float32)
    clip = replace(still, means=torch.stack([still.means, still.means + 0.1]))
    cameras = Camera.look_at(torch.tensor([[0.0, 1.0, 3.0], [1.0, 1.0, 3.0]]), torch.zeros(2, 3), 20, 14)
    images = render_scene(clip, cameras, Scene(), "torch")
    assert images.shape == (2, 14, 20, 3)
    for frame in range(2):
        # the map of the shadow is as wide as the widest frame of a clip
        assert torch.allclose(images[frame], render_scene(clip[frame], cameras[frame], Scene(), "torch"), atol=0.02)


def test_nothing_at_all_can_be_in_a_scene() -> None:
    empty = random_splats(0, 0)
    assert torch.allclose(render_scene(empty, camera(torch.float32), Scene(), "torch"), backdrop(Scene(), camera(torch.float32)))


def test_an_edge_without_width_is_refused() -> None:
    with pytest.raises(BadValue, match="positive width"):
        Scene(edge=0.0)
