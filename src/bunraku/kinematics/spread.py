"""Corrections known at some frames, spread over their neighbours so that they fade in and out."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.math.curves import smooth_step

FIRM = 1e7  # how much more than its bending a curve minds missing a known frame; what is left is then put right outright


def spread(offsets: Float[Tensor, "F C"], known: Bool[Tensor, " F"], fade: float) -> Float[Tensor, "F C"]:
    """The curves that equal `offsets` where `known` and cost the least Σ|e|² + fade⁴ Σ|e(f−1) − 2 e(f) + e(f+1)|² elsewhere.

    Away from known frames they die out within about `fade` frames. Frames that are not known may hold anything.
    """
    if not bool(known.any()):
        return torch.zeros_like(offsets)
    rows, firm = len(offsets), FIRM * max(fade, 1.0) ** 4
    band = _bending(rows) * fade**4
    band[0] += 1 + firm * known.double().numpy()
    wished = torch.where(known[:, None], offsets, torch.zeros_like(offsets))
    curves = torch.from_numpy(scipy.linalg.solveh_banded(band, firm * wished.double().numpy(), lower=True)).to(offsets)
    return torch.where(known[:, None], offsets, curves)


def follow(wished: Float[Tensor, "F C"], weight: Float[Tensor, " F"], fade: float) -> Float[Tensor, "F C"]:
    """As `spread`, with a weight for each frame instead of certainty: the curve that costs the least if misses cost `weight`|miss|²."""
    band = _bending(len(wished)) * fade**4
    band[0] += 1 + weight.double().numpy()
    return torch.from_numpy(scipy.linalg.solveh_banded(band, (weight[:, None] * wished).double().numpy(), lower=True)).to(wished)


def beside(fixed: Bool[Tensor, " F"], frames: float) -> Float[Tensor, " F"]:
    """0 where `fixed`, rising to 1 within so many frames."""
    if not bool(fixed.any()):
        return torch.ones(len(fixed), dtype=torch.float64)
    away = (torch.arange(len(fixed))[:, None] - fixed.nonzero()[None, :, 0]).abs().amin(dim=-1)
    return smooth_step(away.double() / frames)


def spans(mask: Bool[Tensor, " F"]) -> list[range]:
    """The unbroken stretches in which a mask is True."""
    edge = torch.zeros(1, dtype=torch.int8, device=mask.device)
    steps = torch.diff(mask.to(torch.int8), prepend=edge, append=edge)
    starts, ends = (steps == 1).nonzero()[:, 0].tolist(), (steps == -1).nonzero()[:, 0].tolist()
    return [range(start, end) for start, end in zip(starts, ends, strict=True)]


def _bending(rows: int) -> Float[np.ndarray, "B F"]:
    """AᵀA for the second differences A, in LAPACK's lower band storage: three bands, fewer where there are fewer frames."""
    band = np.zeros((3, rows))
    for row in range(rows - 2):
        for lag, products in enumerate(((1.0, 4.0, 1.0), (-2.0, -2.0), (1.0,))):
            band[lag, row : row + len(products)] += products
    return band[: min(rows, 3)]
