"""What the encoders of all video models share: drawing from their posterior, and which sizes they take."""

from __future__ import annotations

import torch
from torch import Tensor

from bunraku.errors import BadValue


def posterior(moments: Tensor, generator: torch.Generator | None) -> Tensor:
    """The mean of a diagonal Gaussian given as (B 2C …) moments, or a sample of it."""
    mean, log_variance = moments.chunk(2, dim=1)
    if generator is None:
        return mean
    spread = torch.exp(0.5 * log_variance.clamp(-30, 20))
    return mean + spread * torch.randn(mean.shape, generator=generator, device=mean.device, dtype=mean.dtype)


def require_size(name: str, frames: int, size: tuple[int, int], *, multiple: int, along: int, together: int = 1) -> None:
    """Width and height in whole patches, and a number of frames that fills whole latent frames (and patches of them)."""
    if frames < 1 or (frames - 1) % along or ((frames - 1) // along + 1) % together:
        step = along * together
        first = 1 + along * (together - 1)
        near = first + max(round((frames - first) / step), 0) * step
        raise BadValue(f"'{name}' takes {first}, {first + step}, {first + 2 * step} … frames; {frames} were asked for. The nearest is {near}.")
    if min(size) < multiple or size[0] % multiple or size[1] % multiple:
        near = tuple(max(round(side / multiple), 1) * multiple for side in size)
        raise BadValue(f"'{name}' takes widths and heights in steps of {multiple} pixels; {size[0]} × {size[1]} was asked for. Use {near[0]} × {near[1]}.")
