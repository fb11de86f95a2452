"""Shadows: the supplement's law, under the asset and nowhere else, and gradients to what throws them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bunraku.errors import BadValue
from bunraku.splats.shadow import Shadow, shadow_on_ground
from bunraku.splats.splats import Splats


def plate(height: float, side: float = 1.0, n: int = 12, dtype: torch.dtype = torch.float64) -> Splats:
    """A dense level square of flat splats."""
    steps = (torch.arange(n, dtype=dtype) + 0.5) / n * side - side / 2
    x, z = torch.meshgrid(steps, steps, indexing="ij")
    means = torch.stack([x, torch.full_like(x, height), z], dim=-1).reshape(-1, 3)
    size = torch.tensor([side / n, 1e-3, side / n], dtype=dtype)
    return Splats(
        means=means, factors=torch.diag(size).expand(len(means), 3, 3).clone(), opacity_logits=means[:, 0] * 0 + 6, sh=means[:, None] * 0
    )


def at(*points: tuple[float, float]) -> torch.Tensor:
    return torch.tensor([[[x, 0.0, z] for x, z in points]], dtype=torch.float64)


@given(st.floats(0, 3), st.floats(0, 1), st.floats(0, 5))
def test_the_law(height: float, strongest: float, decay: float) -> None:
    light = Shadow(strongest=strongest, decay=decay).light(torch.tensor(height, dtype=torch.float64))
    assert float(light) == pytest.approx(1 - strongest * math.exp(-decay * height))


@pytest.mark.parametrize("height", [0.05, 0.4, 1.2])
def test_below_a_plate_the_ground_obeys_the_law(height: float) -> None:
    shadow = Shadow(strongest=0.6, decay=1.3, pixels=48)
    light = shadow_on_ground(plate(height), at((0.0, 0.0), (0.2, -0.25), (2.0, 0.0), (0.0, 40.0)), 0.0, shadow, "torch")[0]
    expected = 1 - 0.6 * math.exp(-1.3 * height)
    assert light[:2].tolist() == pytest.approx([expected] * 2, abs=0.01)
    assert light[2:].tolist() == pytest.approx([1.0, 1.0], abs=1e-6)


def test_the_shadow_lies_under_what_throws_it() -> None:
    """Not mirrored, not turned: an asset to the left and ahead darkens the ground there."""
    moved = plate(0.2)
    moved = Splats(means=moved.means + torch.tensor([2.0, 0, -1.0]), factors=moved.factors, opacity_logits=moved.opacity_logits, sh=moved.sh)
    both = Splats(**{name: torch.cat([getattr(moved, name), getattr(plate(0.2), name)]) for name in ("means", "factors", "opacity_logits", "sh")})
    light = shadow_on_ground(both, at((2.0, -1.0), (0.0, 0.0), (2.0, 1.0), (-2.0, -1.0), (1.0, -0.5)), 0.0, Shadow(pixels=64), "torch")[0]
    assert light[:2].max() < 0.7
    assert light[2:4].min() > 0.99


def test_frames_have_their_own_shadows() -> None:
    still = plate(0.3)
    clip = Splats(
        means=torch.stack([still.means, still.means + torch.tensor([0.0, 0.9, 0.0])]),
        factors=still.factors.expand(2, -1, 3, 3),
        opacity_logits=still.opacity_logits,
        sh=still.sh,
    )
    light = shadow_on_ground(clip, at((0.0, 0.0)).expand(2, 1, 1, 3), 0.0, Shadow(pixels=48), "torch")
    assert light.flatten().tolist() == pytest.approx([1 - 0.55 * math.exp(-2 * height) for height in (0.3, 1.2)], abs=0.01)


def test_lifting_the_asset_lightens_the_ground() -> None:
    lift = torch.zeros((), dtype=torch.float64, requires_grad=True)
    still = plate(0.3, n=6)

    def light(lift: torch.Tensor) -> torch.Tensor:
        raised = still.means + lift * torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
        splats = Splats(means=raised, factors=still.factors, opacity_logits=still.opacity_logits, sh=still.sh)
        return shadow_on_ground(splats, at((0.0, 0.0)), 0.0, Shadow(pixels=24), "torch").sum()

    (slope,) = torch.autograd.grad(light(lift), lift)
    assert float(slope) == pytest.approx(0.55 * 2 * math.exp(-0.6), rel=0.05)
    assert torch.autograd.gradcheck(light, (lift,), eps=1e-6, atol=1e-4)


def test_wrong_shadows_are_refused() -> None:
    for wrong in ({"strongest": 1.5}, {"decay": -1.0}, {"pixels": 2}):
        with pytest.raises(BadValue, match="a strength from 0 to 1"):
            Shadow(**wrong)
