"""The specification against formulas worked out by hand, and its gradients against finite differences."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from bunraku.math.rotations import exp_quat, quat_to_matrix
from bunraku.splats import Camera, Splats, random_splats, render
from bunraku.splats.harmonics import sh_from_color
from tests.splats.scenes import before, joined

RED, BLUE = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 0.0, 1.0])


def ball(z: float, color: Tensor, opacity: float, size: float = 0.5) -> Splats:
    return Splats(
        means=torch.tensor([[0.0, 0.0, z]]),
        factors=size * torch.eye(3)[None],
        opacity_logits=torch.logit(torch.tensor([opacity])),
        sh=sh_from_color(color)[None],
    ).to(dtype=torch.float64)


def ahead(side: int = 33) -> Camera:
    """5 m in front of the origin, which falls on the middle of the middle pixel; 20 pixels to the radian there."""
    camera = Camera.look_at((0.0, 0.0, 5.0), (0.0, 0.0, 0.0), side, side, field_of_view=2 * math.atan(side / 2 / 100))
    return camera.to(dtype=torch.float64)


def test_one_ball_is_a_gaussian() -> None:
    picture = render(ball(0.0, RED, 0.6), ahead(), "torch")
    variance = (0.5 * 100 / 5) ** 2 + 0.3
    for column in (16, 20, 28):
        alpha = 0.6 * math.exp(-0.5 * (column - 16) ** 2 / variance)
        assert picture.alpha[16, column] == pytest.approx(alpha, rel=1e-6)
        assert picture.color[16, column].tolist() == pytest.approx([alpha, 0, 0], abs=1e-7)
        assert picture.depth[16, column] == pytest.approx(5.0)


def test_what_covers_less_than_a_shade_is_not_drawn() -> None:
    picture = render(ball(0.0, RED, 0.6, size=0.1), ahead(), "torch")
    drawn = picture.alpha[picture.alpha > 0]
    assert drawn.min() >= 1 / 255
    assert picture.alpha[16, 0] == 0
    assert picture.depth[16, 0] == 0


def test_the_nearer_ball_hides_the_farther_one() -> None:
    for first, second in ((ball(1.0, RED, 0.6), ball(-1.0, BLUE, 0.5)), (ball(-1.0, BLUE, 0.5), ball(1.0, RED, 0.6))):
        picture = render(joined(first, second), ahead(), "torch")
        assert picture.color[16, 16].tolist() == pytest.approx([0.6, 0, 0.4 * 0.5], abs=1e-6)
        assert picture.alpha[16, 16] == pytest.approx(1 - 0.4 * 0.5)
        assert picture.depth[16, 16] == pytest.approx((0.6 * 4 + 0.2 * 6) / 0.8)


def test_light_never_runs_out_wholly() -> None:
    """Three opaque balls: the third would leave less than 1e-4, so a pixel is finished before it."""
    balls = joined(ball(1.0, RED, 0.999999), ball(0.0, BLUE, 0.99), ball(-1.0, BLUE, 0.99))
    picture = render(balls, ahead(), "torch")
    assert picture.alpha[16, 16] == pytest.approx(0.999)
    assert picture.color[16, 16].tolist() == pytest.approx([0.999, 0, 0], abs=1e-6)


def test_a_background_shines_through() -> None:
    picture = render(ball(0.0, RED, 0.6), ahead(), "torch")
    assert picture.over(BLUE.double())[16, 16].tolist() == pytest.approx([0.6, 0, 0.4], abs=1e-6)
    everywhere = torch.rand(33, 33, 3, dtype=torch.float64)
    torch.testing.assert_close(picture.over(everywhere), picture.color + (1 - picture.alpha)[..., None] * everywhere)


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_size_does_not_matter_only_angles_do(scale: float) -> None:
    splats = random_splats(60, 0).to(dtype=torch.float64)
    camera = before().to(dtype=torch.float64)
    T = camera.T_world_camera.clone()
    T[:3, 3] *= scale
    small = render(splats, camera, "torch")
    large = render(replace(splats, means=splats.means * scale, factors=splats.factors * scale), replace(camera, T_world_camera=T), "torch")
    torch.testing.assert_close(large.color, small.color)
    torch.testing.assert_close(large.depth, small.depth * scale)


def test_turning_the_world_with_the_camera_changes_nothing() -> None:
    splats = random_splats(60, 0).to(dtype=torch.float64)
    camera = before().to(dtype=torch.float64)
    T = torch.eye(4, dtype=torch.float64)
    T[:3, :3] = quat_to_matrix(exp_quat(torch.tensor([0.3, -1.0, 0.7], dtype=torch.float64)))
    T[:3, 3] = torch.tensor([1.0, -2.0, 0.5])
    turned = replace(splats, means=splats.means @ T[:3, :3].T + T[:3, 3], factors=T[:3, :3] @ splats.factors)
    there = render(turned, replace(camera, T_world_camera=T @ camera.T_world_camera), "torch")
    torch.testing.assert_close(there.color, render(splats, camera, "torch").color)


def test_any_factor_of_a_covariance_gives_the_same_picture() -> None:
    splats = random_splats(60, 0).to(dtype=torch.float64)
    turn = quat_to_matrix(exp_quat(torch.randn(60, 3, dtype=torch.float64)))
    other = replace(splats, factors=splats.factors @ turn)
    torch.testing.assert_close(render(other, before().to(dtype=torch.float64), "torch").color, render(splats, before().to(dtype=torch.float64), "torch").color)


@pytest.mark.parametrize(("degree", "count", "size"), [(0, 4, (6, 5)), (3, 2, (2, 2))])
def test_gradients_against_finite_differences(degree: int, count: int, size: tuple[int, int]) -> None:
    """Pixels where a splat begins or ends to be drawn jump by 1/255 there: the scene is small and has soft, wide splats, so that there are none."""
    generator = torch.Generator().manual_seed(2)
    crowd = random_splats(count, 2, degree=degree).to(dtype=torch.float64)
    factors = torch.eye(3, dtype=torch.float64) + 0.4 * torch.randn(count, 3, 3, dtype=torch.float64, generator=generator)
    camera = Camera.look_at(torch.tensor([0.2, 0.4, 4.0], dtype=torch.float64), (0.0, 0.0, 0.0), *size, field_of_view=0.3)
    twist = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    inputs = [value.clone().requires_grad_() for value in (0.3 * crowd.means, factors, crowd.opacity_logits, crowd.sh)]

    def picture(means: Tensor, factors: Tensor, logits: Tensor, sh: Tensor, twist: Tensor) -> tuple[Tensor, ...]:
        T = camera.T_world_camera
        moved = torch.cat([torch.cat([quat_to_matrix(exp_quat(twist[:3])), twist[3:, None]], dim=1), T.new_tensor([[0, 0, 0, 1]])])
        shown = render(Splats(means=means, factors=factors, opacity_logits=logits, sh=sh), replace(camera, T_world_camera=moved @ T), "torch")
        return shown.color, shown.alpha, shown.depth

    assert torch.autograd.gradcheck(picture, (*inputs, twist), eps=1e-6, atol=1e-6, rtol=1e-4)
