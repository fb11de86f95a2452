"""The ways from a clean latent to noise that video models were trained on, told by sigma: the share of noise in what they see.

    diffusion        z_σ = √(1 − σ²) z + σ ε      the network says v = √(1 − σ²) ε − σ z, or ε itself
    rectified flow   z_σ = (1 − σ) z + σ ε        the network says v = ε − z

Everything is solved for the clean latent. In that form nothing breaks where no signal is left (σ = 1), as schedules with zero
terminal SNR ask; only a network that says ε knows nothing there, and says so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue

Latent = Float[Tensor, "C T Y X"]


class NoisePath(ABC):
    """How noise is mixed in, and how the clean latent follows from what a network says."""

    @abstractmethod
    def shares(self, sigma: float) -> tuple[float, float]:
        """How much signal and how much noise a noisy latent holds."""

    @abstractmethod
    def clean(self, noisy: Latent, sigma: float, output: Latent) -> Latent:
        """The clean latent that a network means by its output."""

    @abstractmethod
    def sigma_at(self, time: float) -> float:
        """The noise at a time of the model's own schedule, from 0 (nearly clean) to 1 (all noise)."""

    @abstractmethod
    def told(self, sigma: float) -> float:
        """The number by which the network is told how much noise there is."""

    def noisy(self, latent: Latent, sigma: float, eps: Latent) -> Latent:
        signal, noise = self.shares(check_sigma(sigma))
        return signal * latent + noise * eps


@dataclass(frozen=True, kw_only=True, eq=False)
class Diffusion(NoisePath):
    """Variance-preserving diffusion on a table of noise levels, growing with the number of the step."""

    sigmas: Float[Tensor, " N"]  # float64
    predicts: Literal["v", "epsilon"] = "v"

    def __post_init__(self) -> None:
        if len(self.sigmas) < 2 or bool((self.sigmas.diff() < 0).any()) or not 0 <= float(self.sigmas[0]) <= float(self.sigmas[-1]) <= 1:
            raise BadValue("a noise schedule must grow from step to step, between 0 and 1.")

    @classmethod
    def of_alpha_bar(cls, alpha_bar: Float[Tensor, " N"], predicts: Literal["v", "epsilon"] = "v") -> Diffusion:
        """From the squared shares of signal, as diffusers' schedulers keep them."""
        return cls(sigmas=(1 - alpha_bar.double()).clamp(0, 1).sqrt(), predicts=predicts)

    def shares(self, sigma: float) -> tuple[float, float]:
        return max(1 - sigma * sigma, 0.0) ** 0.5, sigma

    def clean(self, noisy: Latent, sigma: float, output: Latent) -> Latent:
        signal, noise = self.shares(check_sigma(sigma))
        if self.predicts == "v":
            return signal * noisy - noise * output
        if signal < 1e-4:
            raise BadValue(f"at sigma {sigma:g} a network that predicts noise says nothing of the signal; stay below sigma 1.")
        return (noisy - noise * output) / signal

    def sigma_at(self, time: float) -> float:
        last = len(self.sigmas) - 1
        return float(self.sigmas[min(max(round(time * last), 0), last)])

    def told(self, sigma: float) -> float:
        return float((self.sigmas - sigma).abs().argmin())


@dataclass(frozen=True, kw_only=True)
class RectifiedFlow(NoisePath):
    """The straight line between latent and noise. The network is told sigma times the number of its training steps."""

    steps: int = 1000

    def shares(self, sigma: float) -> tuple[float, float]:
        return 1 - sigma, sigma

    def clean(self, noisy: Latent, sigma: float, output: Latent) -> Latent:
        return noisy - check_sigma(sigma) * output

    def sigma_at(self, time: float) -> float:
        return min(max(time, 0.0), 1.0)

    def told(self, sigma: float) -> float:
        return sigma * self.steps


def check_sigma(sigma: float) -> float:
    if not 0 <= sigma <= 1:
        raise BadValue(f"sigma is {sigma:g}; the share of noise lies between 0 and 1.")
    return sigma
