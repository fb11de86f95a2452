"""How far apart two sets of motions are: the Fréchet distance between the Gaussians that fit their embeddings (FID)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue


def frechet_distance(a: Float[Tensor, "N L"], b: Float[Tensor, "M L"]) -> float:
    """|μ_a − μ_b|² + tr(Σ_a + Σ_b − 2 (Σ_a Σ_b)^½) in float64; 0 for a set and itself.

    The trace of the root is that of (Σ_a^½ Σ_b Σ_a^½)^½, which is symmetric: no root of a matrix that may have none is needed, and
    covariances that are not of full rank (fewer motions than numbers) do no harm.
    """
    for rows in (a, b):
        if len(rows) < 2:
            raise BadValue(f"a Fréchet distance needs at least 2 motions on either side; got {len(a)} and {len(b)}.")
    (mean_a, cov_a), (mean_b, cov_b) = _gaussian(a.double()), _gaussian(b.double())
    root_a = _root(cov_a)
    between = torch.linalg.eigvalsh(root_a @ cov_b @ root_a).clamp_min(0).sqrt().sum()
    return max(float((mean_a - mean_b).square().sum() + cov_a.trace() + cov_b.trace() - 2 * between), 0.0)


def _gaussian(rows: Float[Tensor, "N L"]) -> tuple[Float[Tensor, " L"], Float[Tensor, "L L"]]:
    away = rows - rows.mean(0)
    return rows.mean(0), away.T @ away / (len(rows) - 1)


def _root(cov: Float[Tensor, "L L"]) -> Float[Tensor, "L L"]:
    values, vectors = torch.linalg.eigh(cov)
    return vectors * values.clamp_min(0).sqrt() @ vectors.T
