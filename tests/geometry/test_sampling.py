"""Points spread over a surface: by area, inside their faces, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunraku.errors import BadValue
from bunraku.geometry.sampling import face_areas, sample_surface


@given(seed=st.integers(0, 1000), count=st.integers(1, 300))
def test_every_face_gets_its_share(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    vertices, faces = rng.normal(size=(12, 3)), rng.integers(0, 12, size=(15, 3))
    face, weight = sample_surface(vertices, faces, count, seed)
    area = face_areas(vertices, faces)
    shares = np.bincount(face, minlength=15) - count * area / area.sum()
    assert np.abs(shares).max() < 2  # strata that two faces share
    assert (weight >= 0).all()
    np.testing.assert_allclose(weight.sum(1), 1.0, atol=1e-12)


def test_points_in_a_triangle_are_even() -> None:
    _, weight = sample_surface(np.eye(3), np.array([[0, 1, 2]]), 3000, 0)
    np.testing.assert_allclose(weight.mean(0), 1 / 3, atol=3e-3)
    cells = np.floor(weight[:, :2] * 6).astype(int)
    inner = cells.sum(1) <= 4  # whole cells of the grid, each 2/36 of the triangle
    counts = np.unique(cells[inner], axis=0, return_counts=True)[1]
    assert counts.min() > 0.85 * 3000 / 18
    assert counts.max() < 1.15 * 3000 / 18


def test_the_seed_decides() -> None:
    first, again, other = (sample_surface(np.eye(3), np.array([[0, 1, 2]]), 50, seed)[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.01


@pytest.mark.parametrize(
    ("vertices", "count", "word"),
    [(np.eye(3), 0, "at least 1"), (np.eye(3) * np.nan, 5, "finite"), (np.zeros((3, 3)), 5, "with area")],
)
def test_what_cannot_be_sampled(vertices: np.ndarray, count: int, word: str) -> None:
    with pytest.raises(BadValue, match=word):
        sample_surface(vertices, np.array([[0, 1, 2]]), count, 0)
    with pytest.raises(BadValue, match="0 faces"):
        sample_surface(np.eye(3), np.zeros((0, 3), int), 5, 0)
