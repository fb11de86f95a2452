"""Values along time: resampling, finite differences and smoothing. Time runs along one named axis, frame i at i / fps seconds."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
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


def low_pass_kernel(sigma: float) -> Float[Tensor, " K"]:
    """Weights of a smooth low-pass filter; it lets waves pass that are longer than about 6 `sigma` [frames].

    A Gaussian times (3 − x² / σ²) / 2: its second moment vanishes, so cubics pass unchanged and slow curves lose nothing.
    """
    radius = math.ceil(5 * sigma)
    x = torch.arange(-radius, radius + 1, dtype=torch.float64) / sigma
    kernel = torch.exp(-(x**2) / 2) * (3 - x**2) / 2
    return (kernel / kernel.sum()).float()


def low_pass(values: Float[Tensor, "B F C"], kernel: Float[Tensor, " K"], valid: Bool[Tensor, "B F"] | None = None) -> Float[Tensor, "B F C"]:
    """Curves filtered along time. Beyond their ends they go on point-mirrored, so straight lines stay straight up to the last frame.

    `valid` marks the frames of each curve, the first ones; None: all. Frames that are not valid come out as anything.
    """
    radius, frames = len(kernel) // 2, values.shape[1]
    last = torch.full((len(values), 1), frames - 1, device=values.device) if valid is None else valid.sum(dim=1, keepdim=True) - 1
    at = torch.arange(-radius, frames + radius, device=values.device)[None].expand(len(values), -1)
    inside = torch.minimum(torch.maximum(at, -last), 2 * last)  # a curve shorter than the filter is mirrored once and then stands still
    index = torch.where(inside < 0, -inside, torch.where(inside > last, 2 * last - inside, inside))
    ends = torch.where(inside < 0, torch.zeros_like(last), last)
    rows = values.gather(1, index[..., None].expand(-1, -1, values.shape[2]))
    edge = values.gather(1, ends[..., None].expand(-1, -1, values.shape[2]))
    rows = torch.where((inside != index)[..., None], 2 * edge - rows, rows)
    return torch.nn.functional.conv1d(rows.transpose(1, 2).flatten(0, 1)[:, None], kernel.to(rows)[None, None]).reshape(len(values), -1, frames).transpose(1, 2)
