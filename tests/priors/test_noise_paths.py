"""Noise paths: the clean latent comes back from what a perfect network would say."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bunraku.errors import BadValue
from bunraku.priors.noise_paths import Diffusion, NoisePath, RectifiedFlow


def table(end: float = 1.0) -> torch.Tensor:
    return torch.linspace(0.01, end, 1000, dtype=torch.float64)


PATHS: dict[str, NoisePath] = {
    "v": Diffusion(sigmas=table()),
    "epsilon": Diffusion(sigmas=table(0.998), predicts="epsilon"),
    "flow": RectifiedFlow(),
}


def said(name: str, latent: torch.Tensor, eps: torch.Tensor, sigma: float) -> torch.Tensor:
    """What a network that knows latent and noise says."""
    if name == "flow":
        return eps - latent
    return eps if name == "epsilon" else (1 - sigma**2) ** 0.5 * eps - sigma * latent


@pytest.mark.parametrize("name", PATHS)
@given(time=st.floats(0, 1), seed=st.integers(0, 99))
def test_a_perfect_network_gives_the_latent_back(name: str, time: float, seed: int) -> None:
    path, generator = PATHS[name], torch.Generator().manual_seed(seed)
    latent, eps = torch.randn(2, 3, 2, 4, 4, generator=generator, dtype=torch.float64)
    sigma = path.sigma_at(time)
    found = path.clean(path.noisy(latent, sigma, eps), sigma, said(name, latent, eps, sigma))
    assert torch.allclose(found, latent, atol=1e-9)


@pytest.mark.parametrize("name", PATHS)
@given(time=st.floats(0, 1))
def test_the_network_is_told_the_level_that_was_used(name: str, time: float) -> None:
    path = PATHS[name]
    sigma = path.sigma_at(time)
    assert 0 <= path.told(sigma) <= 1000
    steps = 1000 if name == "flow" else 999
    assert path.told(sigma) == pytest.approx(time * steps, abs=0.51)


def test_nothing_breaks_where_no_signal_is_left() -> None:
    latent, eps = torch.randn(2, 3, 2, 4, 4)
    for name in ("v", "flow"):
        found = PATHS[name].clean(PATHS[name].noisy(latent, 1.0, eps), 1.0, said(name, latent, eps, 1.0))
        assert torch.allclose(found, latent, atol=1e-6)
    with pytest.raises(BadValue, match="predicts noise"):
        Diffusion(sigmas=table(), predicts="epsilon").clean(eps, 1.0, eps)


@pytest.mark.parametrize("sigma", [-0.1, 1.1, float("nan")])
def test_sigma_outside_is_refused(sigma: float) -> None:
    with pytest.raises(BadValue, match="between 0 and 1"):
        RectifiedFlow().noisy(torch.zeros(1, 1, 1, 1), sigma, torch.zeros(1, 1, 1, 1))


def test_a_schedule_must_grow() -> None:
    with pytest.raises(BadValue, match="grow"):
        Diffusion(sigmas=torch.tensor([0.5, 0.4]))
