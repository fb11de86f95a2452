"""The one interface of video models that teach motion. A model of your own plugs in by subclassing `VideoPrior`.

    video ─► encode (with gradient) ─► latent ─► noise ─► predict_clean (without) ─► what the model would rather see
    text  ─► embed ──────────────────────────────────────────▲

The latent is a tensor that the model defines; only its spec is known outside.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.priors.noise_paths import Latent, NoisePath

Video = Float[Tensor, "F H W 3"]


@dataclass(frozen=True, kw_only=True)
class PriorSpec:
    """The videos that a prior judges."""

    name: str
    frames: int
    width: int  # [px]
    height: int  # [px]
    fps: float
    latent_shape: tuple[int, int, int, int]  # channels, frames, rows, columns

    @property
    def seconds(self) -> float:
        return self.frames / self.fps


class VideoPrior(ABC):
    """A video diffusion model: it encodes, and it says what a noisy latent was."""

    spec: PriorSpec
    path: NoisePath

    @abstractmethod
    def encode(self, video: Video, generator: torch.Generator | None = None) -> Latent:
        """The latent of a video (sRGB, 0 to 1), differentiable. Without a generator the most likely latent, with one a sample."""

    @abstractmethod
    def embed(self, text: str) -> Any:
        """What `predict_clean` takes as condition. A text that is empty or longer than the model reads is refused."""

    @abstractmethod
    def predict_clean(self, noisy: Latent, sigma: float, condition: Any, guidance: float) -> Latent:
        """The clean latent that the model sees in a noisy one, without gradient.

        With guidance g this is x̂(–) + g (x̂(text) − x̂(–)): 1 is the text alone, 0 none.
        """

    def noise(self, latent: Latent, sigma: float, eps: Latent) -> Latent:
        """The latent with that share of noise."""
        return self.path.noisy(latent, sigma, eps)


def require_video(spec: PriorSpec, video: Tensor) -> None:
    """Refuses a video of another size than the prior was set up for."""
    wanted = (spec.frames, spec.height, spec.width, 3)
    if tuple(video.shape) != wanted:
        given = " × ".join(str(n) for n in video.shape)
        raise BadValue(f"prior '{spec.name}' judges videos of {wanted[0]} frames, {wanted[1]} × {wanted[2]} pixels, RGB; it was given {given}.")


def require_text(text: str) -> str:
    """Refuses an empty prompt: unconditional guidance would pull nowhere."""
    if not text.strip():
        raise BadValue("the text is empty; say what the character does, such as 'a fox is running'.")
    return text.strip()


def guided(without: Latent, with_text: Latent, guidance: float) -> Latent:
    """Classifier-free guidance in the standard form: 1 is the text alone."""
    return without + guidance * (with_text - without)
