"""How like two pictures are."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from bunraku.splats import Camera, Splats, render
from bunraku.splats.views import Target


def psnr(splats: Splats, cameras: Sequence[Camera], targets: Sequence[Target], background: float = 0.5) -> float:
    """Mean over the views [dB], both before the same grey."""
    grey = torch.full((3,), background)
    errors = [(render(splats, camera).over(grey) - target.over(grey)).square().mean() for camera, target in zip(cameras, targets, strict=True)]
    return -10 * float(torch.stack(errors).log10().mean())
