"""One point for all vertices that lie on one spot, and only faces that have a surface: what a solver on a mesh wants, told apart from what is drawn.

UV seams, hard edges and exporters split vertices; heat, distance and visibility must not stop there. The input's vertices stay as they
are: `of_vertex` leads from each of them to its point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

_SAME_SPOT = 1e-6  # of the mesh's size: what float32 and exporters' rounding do to one spot
_FAR_OFF = 10.0  # times as large as the box around 98 of 100 vertices: then a few of them are strays
_FLAT = 1e-12  # of the size squared: a face with less area is a line


@dataclass(frozen=True, kw_only=True, eq=False)
class Welded:
    """P points in a unit box around the origin: p_input = centre + size · p_here."""

    points: Float[np.ndarray, "P 3"]
    faces: Int[np.ndarray, "S 3"]
    of_vertex: Int[np.ndarray, " V"]
    centre: Float[np.ndarray, "3"]
    size: float
    repeated: int  # vertices that were not the first on their spot
    flat: int  # faces without area that were dropped
    doubled: int  # faces that had the same three corners as another one and were dropped

    def to_unit(self, places: Float[np.ndarray, "N 3"]) -> Float[np.ndarray, "N 3"]:
        return (places - self.centre) / self.size


def weld(vertices: Float[np.ndarray, "V 3"], faces: Int[np.ndarray, "T 3"]) -> Welded:
    """Welds vertices closer than a millionth of the mesh's size; drops faces without area and repeated faces (also those turned round)."""
    centre, size = _box(vertices[np.unique(faces)] if len(faces) else vertices)
    unit = (vertices.astype(np.float64) - centre) / size
    of_vertex, first = _spots(unit)
    points, corners = unit[first], of_vertex[faces]
    a, b, c = np.moveaxis(points[corners], 1, 0)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2
    solid = area > _FLAT
    kept = corners[solid]
    alone = _first_of_each(np.sort(kept, axis=1), len(points))
    return Welded(
        points=points,
        faces=kept[alone],
        of_vertex=of_vertex,
        centre=centre,
        size=size,
        repeated=len(vertices) - len(points),
        flat=int((~solid).sum()),
        doubled=len(kept) - len(alone),
    )


def _box(vertices: Float[np.ndarray, "N 3"]) -> tuple[Float[np.ndarray, "3"], float]:
    """Centre and size of the box around them, or around most of them where a few lie so far off that the body would shrink to a dot."""
    low, inner_low, inner_high, high = np.percentile(vertices.astype(np.float64), (0, 1, 99, 100), axis=0)
    if (high - low).max() > _FAR_OFF * (inner_high - inner_low).max() > 0:
        low, high = inner_low, inner_high
    return low + (high - low) / 2, float((high - low).max()) or 1.0


def _spots(unit: Float[np.ndarray, "V 3"]) -> tuple[Int[np.ndarray, " V"], Int[np.ndarray, " P"]]:
    """For each vertex the number of its spot, and for each spot one vertex that lies there."""
    pairs = KDTree(unit).query_pairs(_SAME_SPOT, output_type="ndarray")
    if not len(pairs):
        return np.arange(len(unit)), np.arange(len(unit))
    graph = coo_matrix((np.ones(len(pairs), bool), (pairs[:, 0], pairs[:, 1])), shape=(len(unit), len(unit)))
    of_vertex = connected_components(graph, directed=False)[1].astype(np.int64)
    return of_vertex, np.unique(of_vertex, return_index=True)[1]


def _first_of_each(corners: Int[np.ndarray, "S 3"], points: int) -> Int[np.ndarray, " K"]:
    """Rows that no earlier row repeats, in their order."""
    if points < 2_000_000:  # three numbers fit into one, which sorts much faster than rows
        key = (corners[:, 0] * points + corners[:, 1]) * points + corners[:, 2]
        return np.sort(np.unique(key, return_index=True)[1])
    return np.sort(np.unique(corners, axis=0, return_index=True)[1])
