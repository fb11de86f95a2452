"""The stage: what is filmed is a function of the motion, and its gradient is that function's, camera included."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.distill.small_stage import SIDE, clip, rest, stage, waving


def test_the_character_is_in_the_picture_on_its_ground() -> None:
    film, empty = clip(rest()), clip_without_character()
    there = (film - empty).abs().amax(-1) > 0.15
    rows, columns = there[0].nonzero().unbind(1)
    assert 0.5 * SIDE < int(rows.max() - rows.min()) < SIDE - 1
    assert abs(float(columns.float().mean()) - SIDE / 2) < 3


def clip_without_character() -> torch.Tensor:
    made = stage()[0]
    gone = replace(made, splats=replace(made.splats, opacity_logits=torch.full_like(made.splats.opacity_logits, -20.0)))
    with torch.no_grad():
        return gone.film(rest().poses(), SIDE, SIDE)


def test_the_camera_follows() -> None:
    """Moved as a whole by two squares of the ground the clip looks the same, up to the ground's fading."""
    away = rest()
    square = stage()[0].scene.ground.square  # type: ignore[union-attr]
    away.root_way.data[:, 2] = 2 * square / away.height
    assert float((clip(away) - clip(rest())).abs().max()) < 0.02


@pytest.mark.parametrize("name", ["angles", "root_turn", "root_way"])
def test_the_gradient_is_that_of_finite_differences(name: str) -> None:
    """With a camera that moves along: without its own gradient a character is sent where the camera then follows it to, for ever."""
    made, trajectory = stage()[0], waving().double()
    exact = replace(
        made,
        splats=made.splats.to(dtype=torch.float64),
        rig=replace(made.rig, **{part: getattr(made.rig, part).double() for part in ("weights", "arms", "T_world_joint_rest")}),
        backend="torch",
        scene=replace(made.scene, shadow=None),  # the map that shadows are read from has pixels of its own: 0.4 % off
    )
    generator = torch.Generator().manual_seed(3)
    pull = torch.nn.functional.avg_pool2d(torch.randn(6 * 3, 1, 12, 12, generator=generator, dtype=torch.float64), 3, 1, 1).reshape(6, 12, 12, 3)
    p = dict(trajectory.named_parameters())[name]

    def value() -> torch.Tensor:
        return (exact.film(trajectory.poses(), 12, 12) * pull).sum()

    value().backward()
    direction, step = torch.randn(p.shape, generator=generator, dtype=torch.float64), 1e-7  # splats end abruptly, further apart
    with torch.no_grad():
        p += step * direction
        high = value()
        p -= 2 * step * direction
        low = value()
    assert p.grad is not None
    assert float((p.grad * direction).sum()) == pytest.approx(float(high - low) / (2 * step), rel=1e-4)
