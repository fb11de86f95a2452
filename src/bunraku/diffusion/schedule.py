"""How much of a signal is left at each of N base steps, and which of them a run of fewer steps visits.

x_i = √ᾱ_i x_0 + √(1 − ᾱ_i) ε. The cosine schedule of Nichol and Dhariwal (2021): ᾱ falls as cos² from 1 to nearly 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bunraku.errors import BadValue

BASE_STEPS = 1000
_OFFSET = 0.008
_LARGEST_BETA = 0.999
_BLIND = 0.015  # the share of the noisiest base steps that a run passes in one


@dataclass(frozen=True, kw_only=True)
class CosineSchedule:
    base_steps: int = BASE_STEPS

    @cached_property
    def alpha_bar(self) -> Float[Tensor, " N"]:
        """ᾱ_0 … ᾱ_{N−1}, float64, rounded to float32 as the released models hold them: near 1 that moves σ by a thousandth."""
        u = torch.arange(self.base_steps + 1, dtype=torch.float64) / self.base_steps
        signal = torch.cos((u + _OFFSET) / (1 + _OFFSET) * math.pi / 2) ** 2
        beta = (1 - signal[1:] / signal[:-1]).clamp_max(_LARGEST_BETA)
        return torch.cumprod(1 - beta, dim=0).float().double()

    @cached_property
    def log_snr(self) -> Float[Tensor, " N"]:
        """λ_i = log(signal / noise) at each base step; it falls from about 5 to −10."""
        return 0.5 * torch.log(self.alpha_bar / (1 - self.alpha_bar))

    def levels(self, steps: int) -> Int[Tensor, " S"]:
        """Base steps evenly spaced from N − 1 down to 0, as released."""
        self._check(steps)
        return torch.round(torch.linspace(self.base_steps - 1, 0, steps, dtype=torch.float64)).long()

    def levels_even_in_log_snr(self, steps: int) -> Int[Tensor, " S"]:
        """Base steps from N − 1 down to 0 that are about evenly spaced in λ, as a solver of higher order likes them.

        All noise comes first and alone: the schedule's last hundredth runs off to λ = −10, where there is nothing to see.
        """
        self._check(steps)
        top = round(self.base_steps * (1 - _BLIND))
        wanted = torch.linspace(float(self.log_snr[top]), float(self.log_snr[0]), steps, dtype=torch.float64)[1:]
        level = torch.cat([torch.tensor([self.base_steps - 1]), (self.log_snr[:, None] - wanted).abs().argmin(dim=0)])
        order = torch.arange(steps)  # rounding must not make two steps one: each is at least 1 below the one before …
        level = torch.cummin(level + order, dim=0).values - order
        return torch.maximum(level, order.flip(0))  # … and leaves room for those after it

    def _check(self, steps: int) -> None:
        if not 1 <= steps <= self.base_steps:
            raise BadValue(f"{steps} diffusion steps were asked for; 1 to {self.base_steps} are possible.")

    def noisy(self, clean: Float[Tensor, "B ..."], noise: Float[Tensor, "B ..."], level: Int[Tensor, " B"]) -> Float[Tensor, "B ..."]:
        """The clean signal with noise of the given level."""
        kept = _on_device(self, clean.device)[level].reshape(-1, *[1] * (clean.dim() - 1))
        return (kept.sqrt() * clean + (1 - kept).sqrt() * noise).to(clean.dtype)


@lru_cache(maxsize=8)
def _on_device(schedule: CosineSchedule, device: torch.device) -> Float[Tensor, " N"]:
    """ᾱ where it is needed at every step of a training."""
    return schedule.alpha_bar.to(device)
