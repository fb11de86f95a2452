"""The nearest point of a surface against asking every face, and against points whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunraku.errors import BadValue
from bunraku.geometry.nearest import _project, nearest_on_surface


def soup(seed: int, spread: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Triangles of very different sizes, some without area."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(40, 1, 3))
    corner = centre + rng.normal(size=(40, 3, 3)) * 10.0 ** rng.uniform(-3, spread, size=(40, 1, 1))
    corner[0, 2] = (corner[0, 0] + corner[0, 1]) / 2
    corner[1] = corner[1, 0]
    return corner.reshape(-1, 3), np.arange(120).reshape(-1, 3)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), far=st.sampled_from([0.01, 1.0, 30.0]))
def test_it_is_what_asking_every_face_gives(seed: int, far: float) -> None:
    vertices, faces = soup(seed)
    points = np.random.default_rng(seed + 1).normal(size=(20, 3)) * far
    found = nearest_on_surface(points, vertices, faces)
    every = np.stack([_project(np.repeat(points[i : i + 1], len(faces), 0), vertices[faces])[1] for i in range(len(points))])
    np.testing.assert_allclose(found.distance, every.min(1), rtol=1e-12, atol=1e-15)
    place = found.interpolate(vertices, faces)
    np.testing.assert_allclose(np.linalg.norm(points - place, axis=1), found.distance, atol=1e-9 * (1 + far))
    assert (found.weight >= 0).all()
    np.testing.assert_allclose(found.weight.sum(1), 1.0, atol=1e-12)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_no_sample_of_a_triangle_is_nearer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    corner, point = rng.normal(size=(1, 3, 3)), rng.normal(size=(1, 3)) * 2
    samples = rng.dirichlet((1, 1, 1), size=400) @ corner[0]
    distance = _project(point, corner)[1][0]
    assert distance <= np.linalg.norm(samples - point, axis=1).min() + 1e-12


def test_a_point_on_the_surface_is_its_own_nearest() -> None:
    vertices, faces = soup(3)
    weight = np.random.default_rng(0).dirichlet((1, 1, 1), size=38)
    points = np.einsum("nk,nkc->nc", weight, vertices[faces[2:]])
    assert nearest_on_surface(points, vertices, faces).distance.max() < 1e-12


def test_of_two_faces_that_share_an_edge_the_first_answers() -> None:
    vertices = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    faces = np.array([[0, 1, 2], [0, 2, 3]])
    assert nearest_on_surface(np.array([[0.5, 0.5, 0.3]]), vertices, faces).face.tolist() == [0]


def test_what_cannot_be_asked() -> None:
    with pytest.raises(BadValue, match="without faces"):
        nearest_on_surface(np.zeros((1, 3)), np.eye(3), np.zeros((0, 3), int))
    with pytest.raises(BadValue, match="finite"):
        nearest_on_surface(np.full((1, 3), np.nan), np.eye(3), np.array([[0, 1, 2]]))
