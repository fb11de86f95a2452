"""Weights as renderers want them: few joints per vertex, no faint ones, sums of exactly 1."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue

_FAINT = 0.025  # weights below this go, those up to twice of it fade: what heat carries around a corner would only smear


def prune(weights: Float[Tensor, "V J"], influences: int = 4) -> Float[Tensor, "V J"]:
    """At most `influences` weights above 0 in every row (ties: the earlier joint stays). A row keeps its strongest in any case."""
    if influences < 1:
        raise BadValue(f"every vertex must follow at least one joint; got {influences} influences. 4 and 8 are usual.")
    exact = weights.double() / weights.double().sum(1, keepdim=True)
    top = exact.amax(1, keepdim=True)
    faded = torch.where(exact < top, torch.minimum(exact, 2 * (exact - _FAINT)).clamp_min(0), exact)
    order = faded.argsort(dim=1, descending=True, stable=True)[:, :influences]
    kept = torch.zeros_like(faded).scatter(1, order, faded.gather(1, order))
    rounded = (kept / kept.sum(1, keepdim=True)).to(weights.dtype)
    # what rounding took or gave, the strongest weight gives or takes
    strongest = order[:, :1]
    others = rounded.scatter(1, strongest, 0.0).double().sum(1, keepdim=True)
    return rounded.scatter(1, strongest, (1 - others).to(weights.dtype))
