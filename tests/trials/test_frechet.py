"""The Fréchet distance against its closed form, and its laws."""

from __future__ import annotations

import pytest
import torch

import bunraku
from bunraku.trials.frechet import frechet_distance


def whitened(rows: int, width: int, seed: int) -> torch.Tensor:
    """Rows with mean exactly 0 and covariance exactly 1."""
    x = torch.randn(rows, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    x = x - x.mean(0)
    covariance = x.T @ x / (rows - 1)
    return x @ torch.linalg.inv(torch.linalg.cholesky(covariance)).T


def test_gaussians_along_the_same_axes() -> None:
    """Σ (m_a − m_b)² + (σ_a − σ_b)²"""
    scale_a, scale_b = torch.tensor([1.0, 2.0, 0.5]).double(), torch.tensor([3.0, 1.0, 0.5]).double()
    shift = torch.tensor([0.1, -2.0, 0.0]).double()
    a, b = whitened(50, 3, 0) * scale_a, whitened(80, 3, 1) * scale_b + shift
    expected = float((shift**2).sum() + ((scale_a - scale_b) ** 2).sum())
    assert frechet_distance(a, b) == pytest.approx(expected, rel=1e-9)


def test_gaussians_in_any_directions() -> None:
    """With Σ_a = A², Σ_b = B² symmetric: tr(A² + B² − 2 (A B² A)^½), by scipy's root of a matrix."""
    from scipy.linalg import sqrtm

    generator = torch.Generator().manual_seed(3)
    roots = [(m := torch.randn(4, 4, dtype=torch.float64, generator=generator)) @ m.T for _ in range(2)]
    a, b = (whitened(60, 4, seed) @ root for seed, root in enumerate(roots))
    product = sqrtm((roots[0] @ roots[0] @ roots[1] @ roots[1]).numpy()).real
    expected = float(sum((root @ root).trace() for root in roots)) - 2 * float(product.trace())
    assert frechet_distance(a, b) == pytest.approx(expected, rel=1e-6)


def test_laws() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(40, 6, generator=generator), torch.randn(30, 6, generator=generator) * 2 + 1
    assert frechet_distance(a, a) == pytest.approx(0, abs=1e-9)
    assert frechet_distance(a, b) == pytest.approx(frechet_distance(b, a), rel=1e-9)
    assert frechet_distance(3 * a, 3 * b) == pytest.approx(9 * frechet_distance(a, b), rel=1e-6)
    turn = torch.linalg.qr(torch.randn(6, 6, generator=generator)).Q
    assert frechet_distance(a @ turn, b @ turn) == pytest.approx(frechet_distance(a, b), rel=1e-5)


def test_fewer_motions_than_numbers_do_no_harm() -> None:
    a, b = torch.randn(5, 64, generator=torch.Generator().manual_seed(0)), torch.randn(7, 64, generator=torch.Generator().manual_seed(1))
    assert 0 < frechet_distance(a, b) < 1000
    assert frechet_distance(a, a) == pytest.approx(0, abs=1e-6)


def test_one_motion_is_too_few() -> None:
    with pytest.raises(bunraku.BunrakuError, match="at least 2 motions on either side; got 1 and 3"):
        frechet_distance(torch.zeros(1, 4), torch.zeros(3, 4))
