"""What solvers on a mesh stand on: welding, shells, the Laplacian, sides and rays."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bunraku.geometry.components import shells
from bunraku.geometry.laplacian import surface_laplacian
from bunraku.geometry.orient import turned_outward
from bunraku.geometry.primitives import capsule
from bunraku.geometry.visibility import Occluder
from bunraku.geometry.weld import weld

CUBE = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
CUBE_FACES = np.array([[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]])


def ball() -> tuple[np.ndarray, np.ndarray]:
    mesh = capsule(torch.zeros(3, dtype=torch.float64), torch.tensor([0.0, 0.6, 0.0], dtype=torch.float64), 0.2, 0.2, segments=12, rings=4, spans=4)
    welded = weld(mesh.vertices.numpy(), mesh.faces.numpy())
    return welded.points, welded.faces


@given(seed=st.integers(0, 100))
def test_welding_brings_split_vertices_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    split = CUBE[CUBE_FACES].reshape(-1, 3) * 7 + rng.normal(size=3) + 1e-7 * rng.normal(size=(36, 3))
    welded = weld(split, np.arange(36).reshape(-1, 3))
    assert (len(welded.points), welded.repeated, welded.flat, welded.doubled) == (8, 28, 0, 0)
    assert np.abs(welded.centre + welded.size * welded.points[welded.of_vertex] - split).max() < 1e-5


def test_welding_drops_what_has_no_surface() -> None:
    welded = weld(CUBE, np.concatenate([CUBE_FACES, CUBE_FACES[:3, ::-1], [[0, 0, 1], [2, 2, 2]]]))
    assert (len(welded.faces), welded.flat, welded.doubled) == (12, 2, 3)


def test_shells_are_told_apart() -> None:
    assert shells(np.concatenate([CUBE_FACES, CUBE_FACES + 8]), 17) == (3, pytest.approx(np.repeat([0, 1, 2], [8, 8, 1])))


def test_the_laplacian_is_that_of_the_referee() -> None:
    """Where nothing has to be flipped our quick way must be robust_laplacian's."""
    from robust_laplacian import mesh_laplacian

    from bunraku.geometry.laplacian import _plain_cotangents

    quick = _plain_cotangents(CUBE, CUBE_FACES)
    assert quick is not None
    L, M = mesh_laplacian(CUBE, CUBE_FACES, mollify_factor=0)
    assert abs(quick[0] - L).max() < 1e-9
    assert np.abs(quick[1] - M.diagonal()).max() < 1e-12


@pytest.mark.parametrize("kind", ["quick", "needs flips", "non-manifold"])
def test_laws_of_the_laplacian(kind: str) -> None:
    points, faces = ball()
    if kind == "needs flips":
        points = points * np.array([1.0, 6.0, 1.0])
    elif kind == "non-manifold":
        faces = np.concatenate([faces, [[0, 5, 20], [0, 5, 30], [0, 5, 40]]])
    L, area = surface_laplacian(points, faces)
    assert np.abs(L @ np.ones(len(points))).max() < 1e-8
    assert abs(L - L.T).max() < 1e-9
    assert (L - np.asarray(L.diagonal()) * np.eye(len(points))).max() < 1e-9  # nothing flows uphill
    assert np.linalg.eigvalsh(L.toarray()).min() > -1e-9
    assert area.min() > 0
    a, b, c = np.moveaxis(points[faces], 1, 0)
    assert area.sum() == pytest.approx(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2, rel=1e-3)


@given(seed=st.integers(0, 100))
def test_flipped_faces_are_found(seed: int) -> None:
    points, faces = ball()
    flip = np.random.default_rng(seed).random(len(faces)) < 0.5
    mixed = np.where(flip[:, None], faces[:, ::-1], faces)
    assert (turned_outward(points, mixed, Occluder(points, mixed)) == flip).all()


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("soup", [True, False])
def test_insides_of_open_bodies_are_found(opened: bool, soup: bool) -> None:
    points, faces = ball()
    faces = faces[6:] if opened else faces
    if soup:
        points, faces = points[faces].reshape(-1, 3), np.arange(3 * len(faces)).reshape(-1, 3)
    for given_ in (faces, faces[:, ::-1]):
        turned = turned_outward(points, given_, Occluder(points, given_))
        assert turned.mean() == pytest.approx(0 if given_ is faces else 1, abs=0.1 if soup else 0)


def test_rays() -> None:
    occluder = Occluder(CUBE / 2, CUBE_FACES)
    a, b, c = np.moveaxis(CUBE[CUBE_FACES], 1, 0)
    outward = np.cross(b - a, c - a)
    start = np.array([[0.0, 0.03, 0.01], [0.4, 0.03, 0.01], [0.4, 0.03, 0.01], [0.0, 0.03, 0.01], [0.4, 0.3, 0.0]])
    end = np.array([[0.1, 0.03, 0.02], [0.0, 0.03, 0.01], [-0.4, 0.03, 0.01], [0.4, 0.03, 0.01], [0.4, -0.3, 0.0]])
    assert occluder.blocked(start, end).tolist() == [False, True, True, True, False]
    assert occluder.entered(start, end, outward).tolist() == [False, True, True, False, False]
    zeros = np.zeros(5, np.int64)
    assert occluder.surrounded(start, end, zeros, np.zeros(12, np.int64)).tolist() == [True, True, False, False, False]
    assert not occluder.blocked(start, start).any()
