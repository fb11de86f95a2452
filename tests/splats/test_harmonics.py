"""Spherical harmonics: orthonormal on the sphere, with the signs that splat files mean."""

from __future__ import annotations

import math

import pytest
import torch

from bunraku.splats.harmonics import basis, color_toward, sh_from_color


def test_they_are_orthonormal() -> None:
    """Integrated exactly: products of degree 6 by 8 Gauss points in height and 16 equal steps around."""
    import numpy as np

    height, weight = (torch.from_numpy(value) for value in np.polynomial.legendre.leggauss(8))
    around = torch.arange(16, dtype=torch.float64) * math.tau / 16
    ring = torch.sqrt(1 - height**2)[:, None]
    direction = torch.stack([ring * torch.cos(around), ring * torch.sin(around), height[:, None].expand(-1, 16)], dim=-1).reshape(-1, 3)
    area = (weight[:, None] * (math.tau / 16)).expand(-1, 16).reshape(-1)
    values = basis(direction, 3)
    torch.testing.assert_close(values.T @ (area[:, None] * values), torch.eye(16, dtype=torch.float64))


def test_signs_are_those_of_the_files() -> None:
    """Of degree 1: −y, z, −x; of degree 2 xy, −yz, …, −xz; of degree 3 −y³ on the Y axis and −x³ on the X axis."""
    x, y, z = torch.eye(3)
    first = 0.4886025
    torch.testing.assert_close(basis(torch.stack([x, y, z]), 1)[:, 1:], first * torch.tensor([[0.0, 0, -1], [-1, 0, 0], [0, 1, 0]]))
    slanted = basis((x + y + z) / math.sqrt(3), 2)
    assert [math.copysign(1, value) for value in slanted[[4, 5, 7]]] == [1, -1, -1]
    assert basis(y, 3)[9] > 0  # −y (3x² − y²)
    assert basis(x, 3)[15] < 0


def test_a_plain_colour_looks_the_same_from_everywhere() -> None:
    color = torch.rand(7, 3)
    sh = torch.zeros(7, 9, 3)
    sh[:, :1] = sh_from_color(color)
    seen = color_toward(sh, torch.randn(7, 3), torch.randn(4, 3), degree=2)
    torch.testing.assert_close(seen, color.expand(4, 7, 3))


def test_colours_are_never_below_zero() -> None:
    assert color_toward(torch.full((1, 1, 3), -10.0), torch.zeros(1, 3), torch.ones(3), degree=0).tolist() == [[0.0, 0.0, 0.0]]


def test_a_splat_at_the_camera_has_a_finite_gradient() -> None:
    means = torch.zeros(1, 3, requires_grad=True)
    color_toward(torch.ones(1, 16, 3), means, torch.zeros(3), degree=3).sum().backward()
    assert means.grad is not None
    assert torch.isfinite(means.grad).all()


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_each_degree_adds_its_own(degree: int) -> None:
    direction = torch.nn.functional.normalize(torch.randn(5, 3), dim=-1)
    torch.testing.assert_close(basis(direction, degree), basis(direction, 3)[:, : (degree + 1) ** 2])
