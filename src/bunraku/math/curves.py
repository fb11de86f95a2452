"""Values along time: resampling and finite differences. Time runs along one named axis, frame i at i / fps seconds."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bunraku.math.rotations import slerp


def resample_times(frames: int, fps_from: float, fps_to: float) -> Float[Tensor, " G"]:
    """Source-frame coordinates of the frames of the same clip at another rate: first frame kept, nothing beyond the last."""
    count = int((frames - 1) * fps_to / fps_from + 1e-6) + 1
    times = torch.arange(count, dtype=torch.float64) * (fps_from / fps_to)
    return times.clamp_max(frames - 1)


def _bracket(times: Float[Tensor, " G"], frames: int) -> tuple[Int[Tensor, " G"], Int[Tensor, " G"], Float[Tensor, " G"]]:
    low = times.floor().long().clamp(0, frames - 1)
    return low, (low + 1).clamp_max(frames - 1), times - low


def interpolate(values: Float[Tensor, "F ..."], times: Float[Tensor, " G"]) -> Float[Tensor, "G ..."]:
    """Linear interpolation at frame coordinates `times` (0 … F − 1)."""
    low, high, t = _bracket(times, values.shape[0])
    t = t.to(values).reshape(-1, *[1] * (values.dim() - 1))
    return values[low] * (1 - t) + values[high] * t


def interpolate_quats(quats: Float[Tensor, "F ... 4"], times: Float[Tensor, " G"]) -> Float[Tensor, "G ... 4"]:
    """Spherical interpolation at frame coordinates `times`."""
    low, high, t = _bracket(times, quats.shape[0])
    t = t.to(quats).reshape(-1, *[1] * (quats.dim() - 2))
    return slerp(quats[low], quats[high], t.expand(-1, *quats.shape[1:-1]))


def velocity(values: Float[Tensor, "F ..."], fps: float) -> Float[Tensor, "F ..."]:
    """Forward difference per second; the last frame repeats the one before. One frame alone has velocity 0."""
    if values.shape[0] < 2:
        return torch.zeros_like(values)
    step = (values[1:] - values[:-1]) * fps
    return torch.cat([step, step[-1:]])


def smooth_step(t: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """0 below 0, 1 above 1, in between the cubic with flat ends."""
    t = t.clamp(0, 1)
    return t * t * (3 - 2 * t)
