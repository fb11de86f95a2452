"""Priors that know the answer: what they would rather see is always one clip."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from bunraku.priors.noise_paths import NoisePath, RectifiedFlow
from bunraku.priors.prior import PriorSpec, VideoPrior, require_text, require_video


class Oracle(VideoPrior):
    """Latents are the pixels themselves, or what a small random net makes of them."""

    def __init__(self, target: Tensor, fps: float = 8.0, *, path: NoisePath | None = None, net: nn.Module | None = None) -> None:
        frames, height, width, _ = target.shape
        self.net, self.path = net, path or RectifiedFlow()
        self.asked: list[tuple[float, float]] = []
        self.target = self._latent(target).detach()
        shape = tuple(self.target.shape)
        self.spec = PriorSpec(name="oracle", frames=frames, width=width, height=height, fps=fps, latent_shape=shape)  # type: ignore[arg-type]

    def _latent(self, video: Tensor) -> Tensor:
        x = (2 * video - 1).movedim(-1, 0)
        return x if self.net is None else self.net(x[None])[0]

    def encode(self, video: Tensor, generator: torch.Generator | None = None) -> Tensor:
        require_video(self.spec, video)
        return self._latent(video)

    def embed(self, text: str) -> str:
        return require_text(text)

    def predict_clean(self, noisy: Tensor, sigma: float, condition: Any, guidance: float) -> Tensor:
        self.asked.append((sigma, guidance))
        return self.target


def random_encoder(channels: int = 8) -> nn.Module:
    """Half the size in space and, but for the edges, in time."""
    torch.manual_seed(7)
    layers = nn.Conv3d(3, channels, 3, stride=(1, 2, 2), padding=1), nn.Tanh(), nn.Conv3d(channels, channels, 3, stride=(2, 1, 1), padding=1)
    return nn.Sequential(*layers).requires_grad_(False)
