"""Points spread evenly by area over a surface: one in every equal share of the area, and evenly inside each face."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from bunraku.errors import BadValue

_GOLDEN = np.array([0.7548776662466927, 0.5698402909980532])  # 1/g and 1/g², g³ = g + 1: steps that fill a square evenly


def face_areas(vertices: Float[np.ndarray, "V 3"], faces: Int[np.ndarray, "T 3"]) -> Float[np.ndarray, " T"]:
    """[m²]"""
    return np.linalg.norm(face_crosses(vertices, faces), axis=1) / 2


def face_crosses(vertices: Float[np.ndarray, "V 3"], faces: Int[np.ndarray, "T 3"]) -> Float[np.ndarray, "T 3"]:
    """The faces' outward normals, twice their areas long [m²]."""
    a, b, c = np.moveaxis(vertices[faces], 1, 0)
    return np.cross(b - a, c - a)


def sample_surface(
    vertices: Float[np.ndarray, "V 3"], faces: Int[np.ndarray, "T 3"], count: int, seed: int
) -> tuple[Int[np.ndarray, " N"], Float[np.ndarray, "N 3"]]:
    """The face of each of `count` points, and the weights of its three corners. A face gets its share of them, rounded up or down."""
    if count < 1:
        raise BadValue(f"{count} points cannot be spread over a surface; ask for at least 1.")
    if not np.isfinite(vertices).all():
        raise BadValue("the mesh has vertices that are not finite numbers; mend it before points are spread over it.")
    area = face_areas(vertices.astype(np.float64), faces)
    ends = np.cumsum(area)
    if not len(faces) or not ends[-1] > 0:
        raise BadValue(f"points can only be spread over a surface with area; this mesh has {len(faces)} faces of 0 m² in all.")
    random = np.random.default_rng(seed)
    place = (np.arange(count) + random.uniform(size=count)) / count * ends[-1]
    face = np.minimum(np.searchsorted(ends, place, side="right"), len(faces) - 1)
    first = np.flatnonzero(np.diff(face, prepend=-1))
    number = np.arange(count) - np.repeat(first, np.diff(first, append=count))  # which of its face's points this is
    square = (random.uniform(size=(len(faces), 2))[face] + number[:, None] * _GOLDEN) % 1.0
    square = np.where(square.sum(1, keepdims=True) > 1, 1 - square, square)  # the square's other half, folded over
    return face, np.concatenate([square, 1 - square.sum(1, keepdims=True)], axis=1)
