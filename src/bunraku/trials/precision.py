"""Does a sentence find its motion among all others? R@k, the share of sentences whose motion is among the k nearest."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

KS = (1, 2, 3, 5, 10)


@dataclass(frozen=True, kw_only=True)
class Precision:
    """Retrieval over a whole set, each share in percent."""

    at: dict[int, float]  # k → R@k [%]
    median_rank: float  # 1 is best
    size: int  # how many motions there are to choose from


def precision(sentences: Float[Tensor, "N L"], motions: Float[Tensor, "N L"], same: Bool[Tensor, "N N"] | None = None) -> Precision:
    """Row i of both belongs together; `same[i, j]`: sentence j says what sentence i says, so that motion j is as good an answer."""
    ranks = retrieval_ranks(sentences, motions, same)
    at = {k: 100 * float((ranks <= k).double().mean()) for k in KS}
    return Precision(at=at, median_rank=float(ranks.double().quantile(0.5)), size=len(ranks))


def retrieval_ranks(sentences: Float[Tensor, "N L"], motions: Float[Tensor, "N L"], same: Bool[Tensor, "N N"] | None = None) -> Int[Tensor, " N"]:
    """The place, from 1, of the first right motion for every sentence. Of equals the wrong ones come first, so that a blind model finds nothing."""
    near = sentences.double() @ motions.double().T
    right = torch.eye(len(near), dtype=torch.bool) if same is None else same | torch.eye(len(near), dtype=torch.bool)
    best = near.masked_fill(~right, float("-inf")).amax(dim=1, keepdim=True)
    return ((near >= best) & ~right).sum(dim=1) + 1
