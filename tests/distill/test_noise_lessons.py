"""Lessons: the gradient on the latent is the way to what the prior would rather see, whatever the noise path."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bunraku.distill.lessons import Guide, NoiseSchedule, teach
from bunraku.errors import BadValue
from bunraku.priors.noise_paths import Diffusion, NoisePath, RectifiedFlow
from tests.distill.oracles import Oracle, random_encoder

PATHS: dict[str, NoisePath] = {"flow": RectifiedFlow(), "v": Diffusion(sigmas=torch.linspace(0.01, 1, 1000, dtype=torch.float64))}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("weighting", ["even", "sds"])
def test_the_gradient_is_the_way_to_what_the_prior_sees(path: str, weighting: str) -> None:
    target, video = torch.rand(2, 4, 8, 6, 3)
    prior = Oracle(target, path=PATHS[path])
    video.requires_grad_()
    lesson = teach(prior, video, "text", time=0.7, guidance=3.0, weighting=weighting, generator=torch.Generator())  # type: ignore[arg-type]
    found = torch.autograd.grad(lesson.loss, video)[0]
    signal, noise = prior.path.shares(lesson.sigma)
    weight = 1.0 if weighting == "even" else signal * noise
    assert torch.allclose(found, weight * 4 * (video.detach() - target) / video.numel(), atol=1e-7)  # 2 from the pixels' scale, twice
    assert float(lesson.loss.detach()) == pytest.approx(0.5 * weight * float((2 * (video.detach() - target)).square().mean()), rel=1e-4)
    assert prior.asked == [(lesson.sigma, 3.0)]


def test_the_gradient_goes_through_the_encoder() -> None:
    target, video = torch.rand(2, 4, 8, 6, 3)
    prior = Oracle(target, net=random_encoder())
    video.requires_grad_()
    lesson = teach(prior, video, "text", time=0.5, guidance=1.0, weighting="even", generator=torch.Generator())
    found = torch.autograd.grad(lesson.loss, video)[0]
    latent = prior.encode(video)
    wanted = torch.autograd.grad(0.5 * (latent - prior.target).square().mean(), video)[0]
    assert torch.allclose(found, wanted, atol=1e-8)


def test_a_seed_gives_the_same_lesson() -> None:
    class Noisy(Oracle):
        def predict_clean(self, noisy: torch.Tensor, sigma: float, condition: str, guidance: float) -> torch.Tensor:
            return noisy

    target, video = torch.rand(2, 4, 8, 6, 3)
    values = [
        float(teach(Noisy(target), video, "text", time=0.5, guidance=1.0, weighting="even", generator=torch.Generator().manual_seed(seed)).loss)
        for seed in (1, 1, 2)
    ]
    assert values[0] == values[1] != values[2]


def test_a_prior_of_two_latents_is_refused() -> None:
    class Wrong(Oracle):
        def predict_clean(self, noisy: torch.Tensor, sigma: float, condition: str, guidance: float) -> torch.Tensor:
            return noisy[:1]

    video = torch.rand(4, 8, 6, 3)
    with pytest.raises(BadValue, match=r"encodes to .* but predicts"):
        teach(Wrong(video), video, "text", time=0.5, guidance=1.0, weighting="even", generator=torch.Generator())


@given(progress=st.floats(0, 1), dice=st.floats(0, 1), kind=st.sampled_from(["uniform", "annealed"]))
def test_times_stay_within_their_bounds(progress: float, dice: float, kind: str) -> None:
    schedule = NoiseSchedule(kind=kind)  # type: ignore[arg-type]
    assert 0.02 <= schedule.time(progress, dice) <= 0.98 + 1e-9


def test_the_papers_schedule() -> None:
    """Evenly from 0.02 to an end that falls from 0.98 to 0.5 over the first half."""
    schedule = NoiseSchedule()
    assert [schedule.time(p, 1.0) for p in (0, 0.25, 0.5, 1)] == pytest.approx([0.98, 0.74, 0.5, 0.5])
    assert schedule.time(0.3, 0.0) == pytest.approx(0.02)
    assert Guide().at(0.3) == pytest.approx(100)
    with pytest.raises(BadValue, match="noise times"):
        NoiseSchedule(low=0.6)
