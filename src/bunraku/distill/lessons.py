"""What a prior teaches in one iteration: the way from the clip's latent to the one it would rather see (akd Eq. 6–7).

    video ─► encode ─► z ─► + noise ─► prior ─► ẑ          gradient on z:  w(σ) (z − ẑ) / size of z

Nothing goes back through the prior's network; through its encoder it does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.priors.noise_paths import Latent
from bunraku.priors.prior import VideoPrior


@dataclass(frozen=True, kw_only=True)
class NoiseSchedule:
    """Which noise is looked at in an iteration, as times of the prior's own schedule, from 0 (clean) to 1 (all noise)."""

    low: float = 0.02
    high: float = 0.98
    high_at_last: float = 0.5
    falling: float = 0.5  # share of the iterations in which `high` falls to `high_at_last`
    kind: Literal["uniform", "annealed"] = "uniform"  # annealed: from high to low in order, with a little chance

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high_at_last <= self.high <= 1 or not 0 <= self.falling <= 1:
            raise BadValue(f"noise times must have 0 ≤ low ≤ high at last ≤ high ≤ 1; got {self.low:g}, {self.high_at_last:g}, {self.high:g}.")

    def time(self, progress: float, dice: float) -> float:
        """The time in an iteration, `progress` (0 … 1) into the run, with a number drawn evenly from 0 … 1."""
        fallen = min(progress / self.falling, 1.0) if self.falling else 1.0
        high = self.high + (self.high_at_last - self.high) * fallen
        if self.kind == "uniform":
            return self.low + (high - self.low) * dice
        middle = self.high + (self.low - self.high) * progress
        spread = 0.1 * (self.high - self.low)
        return min(max(middle + spread * (2 * dice - 1), self.low), self.high)


@dataclass(frozen=True, kw_only=True)
class Guide:
    """How strongly the text is followed, at first and at last."""

    first: float = 100.0
    last: float = 100.0

    def at(self, progress: float) -> float:
        return self.first + (self.last - self.first) * progress


Weighting = Literal["even", "sds"]  # of (z − ẑ): 1, or signal × noise, which is what the usual 1 − ᾱ on noise comes to


@dataclass(frozen=True, kw_only=True, eq=False)
class Lesson:
    """What was seen, for the log."""

    loss: Float[Tensor, ""]  # its gradient is the lesson
    time: float
    sigma: float
    away: float  # root mean square of z − ẑ


def teach(
    prior: VideoPrior,
    video: Float[Tensor, "F H W 3"],
    condition: Any,
    *,
    time: float,
    guidance: float,
    weighting: Weighting,
    generator: torch.Generator,
) -> Lesson:
    """One lesson; noise comes from the generator."""
    latent: Latent = prior.encode(video)
    sigma = prior.path.sigma_at(time)
    with torch.no_grad():
        eps = torch.randn(latent.shape, generator=generator, device=generator.device, dtype=latent.dtype).to(latent.device)
        wanted = prior.predict_clean(prior.noise(latent.detach(), sigma, eps), sigma, condition, guidance)
        if wanted.shape != latent.shape:
            raise BadValue(f"prior '{prior.spec.name}' encodes to {tuple(latent.shape)} but predicts {tuple(wanted.shape)}; both must be one latent.")
        signal, noise = prior.path.shares(sigma)
        weight = signal * noise if weighting == "sds" else 1.0
        pull = weight * (latent.detach() - wanted)
    loss = (latent * (pull / pull.numel())).sum()  # its gradient on z is the pull; its value means nothing, so report the square instead
    shown = 0.5 * weight * (latent.detach() - wanted).square().mean()
    return Lesson(loss=loss - loss.detach() + shown, time=time, sigma=sigma, away=float((latent.detach() - wanted).square().mean().sqrt()))
