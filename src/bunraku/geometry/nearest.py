"""The nearest point of a surface: which face, where on it, how far. Exact; balls around faces, kept in k-d trees, say which faces to ask.

A point's distance to any face bounds its distance to the surface, so only faces whose ball comes nearer than that can hold the nearest
point. Faces are kept in one tree per octave of ball size, so that a few large faces do not make every search wide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from bunraku.errors import BadValue

if TYPE_CHECKING:
    from scipy.spatial import KDTree

_PAIRS_AT_ONCE = 1 << 20  # candidates held in memory; about 300 bytes each
_FIRST_GUESSES = 4  # faces asked for the first bound
_NO_AREA = 1e-12  # a triangle whose height is less than this share of its longest edge is treated as its edges


@dataclass(frozen=True, kw_only=True, eq=False)
class SurfacePoints:
    """N points on the faces of a mesh."""

    face: Int[np.ndarray, " N"]
    weight: Float[np.ndarray, "N 3"]  # of the face's three corners, not negative, summing to 1
    distance: Float[np.ndarray, " N"]  # [m] from the points asked for

    def interpolate(self, values: Float[np.ndarray, "V C"], faces: Int[np.ndarray, "T 3"]) -> Float[np.ndarray, "N C"]:
        """Vertex values at the points."""
        return np.einsum("nk,nkc->nc", self.weight, values[faces[self.face]])


def nearest_on_surface(points: Float[np.ndarray, "N 3"], vertices: Float[np.ndarray, "V 3"], faces: Int[np.ndarray, "T 3"]) -> SurfacePoints:
    """Of several nearest faces (along a shared edge) the one with the lowest number."""
    if not len(faces):
        raise BadValue("nothing is nearest on a mesh without faces; give a mesh with triangles.")
    if not (np.isfinite(points).all() and np.isfinite(vertices).all()):
        raise BadValue("the nearest point of a surface needs finite points and vertices; some given are not finite numbers.")
    from scipy.spatial import KDTree

    points, corner = points.astype(np.float64), vertices.astype(np.float64)[faces]
    centre = corner.mean(1)
    radius = np.linalg.norm(corner - centre[:, None], axis=2).max(1)
    _, guesses = KDTree(centre).query(points, k=min(_FIRST_GUESSES, len(faces)))
    guesses = guesses.reshape(len(points), -1)
    rows = np.repeat(np.arange(len(points)), guesses.shape[1])
    best = _best(len(points), rows, guesses.ravel(), *_project(points[rows], corner[guesses.ravel()]))
    octave = np.floor(np.log2(np.maximum(radius, 1e-30))).astype(int)
    for size in np.unique(octave):
        members = np.flatnonzero(octave == size)
        reach = best.distance + radius[members].max()
        tree = KDTree(centre[members])
        for rows, found in _candidates(tree, points, reach * (1 + 1e-9)):
            asked = members[found]
            near = np.linalg.norm(points[rows] - centre[asked], axis=1) <= (best.distance[rows] + radius[asked]) * (1 + 1e-9)
            rows, asked = rows[near], asked[near]
            if len(rows):
                best = _merge(best, rows, asked, *_project(points[rows], corner[asked]))
    return best


def _candidates(tree: KDTree, points: Float[np.ndarray, "N 3"], reach: Float[np.ndarray, " N"]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of point and tree member within each point's reach, a bounded number at a time."""
    counts = tree.query_ball_point(points, reach, return_length=True)
    chunk_of = np.cumsum(counts) // _PAIRS_AT_ONCE
    for chunk in np.unique(chunk_of[counts > 0]):
        rows = np.flatnonzero((chunk_of == chunk) & (counts > 0))
        found = tree.query_ball_point(points[rows], reach[rows])
        yield np.repeat(rows, counts[rows]), np.concatenate([np.asarray(one, dtype=np.int64) for one in found])


def _best(count: int, rows: np.ndarray, asked: np.ndarray, weight: np.ndarray, distance: np.ndarray) -> SurfacePoints:
    empty = SurfacePoints(face=np.full(count, np.iinfo(np.int64).max), weight=np.zeros((count, 3)), distance=np.full(count, np.inf))
    return _merge(empty, rows, asked, weight, distance)


def _merge(best: SurfacePoints, rows: np.ndarray, asked: np.ndarray, weight: np.ndarray, distance: np.ndarray) -> SurfacePoints:
    """The better of what is known and what was found. `asked` faces may come several to a row."""
    order = np.lexsort((asked, distance, rows))
    first = order[np.flatnonzero(np.diff(rows[order], prepend=-1))]
    row = rows[first]
    nearer = (distance[first] < best.distance[row]) | ((distance[first] == best.distance[row]) & (asked[first] < best.face[row]))
    row, first = row[nearer], first[nearer]
    face, weights, distances = best.face.copy(), best.weight.copy(), best.distance.copy()
    face[row], weights[row], distances[row] = asked[first], weight[first], distance[first]
    return SurfacePoints(face=face, weight=weights, distance=distances)


def _project(p: Float[np.ndarray, "P 3"], corner: Float[np.ndarray, "P 3 3"]) -> tuple[Float[np.ndarray, "P 3"], Float[np.ndarray, " P"]]:
    """Corner weights of the point of each triangle nearest to each point, and the distance.

    Inside the triangle it is the foot of the perpendicular; otherwise the best of three edges. Needles without area are their edges.
    """
    a, b, c = np.moveaxis(corner, 1, 0)
    best_weight, best_distance = np.zeros_like(p), np.full(len(p), np.inf)
    for start, end, i, j in ((a, b, 0, 1), (b, c, 1, 2), (c, a, 2, 0)):
        along = end - start
        length2 = (along**2).sum(1)
        t = np.clip(((p - start) * along).sum(1) / np.where(length2 > 0, length2, 1.0), 0.0, 1.0)
        distance = np.linalg.norm(p - start - t[:, None] * along, axis=1)
        better = distance < best_distance
        best_distance = np.where(better, distance, best_distance)
        best_weight[better] = 0.0
        best_weight[better, i], best_weight[better, j] = 1 - t[better], t[better]
    normal = np.cross(b - a, c - a)
    area2 = (normal**2).sum(1)
    wide = area2 > (_NO_AREA * np.max([((b - a) ** 2).sum(1), ((c - b) ** 2).sum(1), ((a - c) ** 2).sum(1)], axis=0)) ** 2
    safe = np.where(wide, area2, 1.0)
    u = (np.cross(c - b, p - b) * normal).sum(1) / safe
    v = (np.cross(a - c, p - c) * normal).sum(1) / safe
    inside = wide & (u >= 0) & (v >= 0) & (u + v <= 1)
    height = np.abs(((p - a) * normal).sum(1)) / np.sqrt(safe)
    better = inside & (height <= best_distance)
    best_weight[better] = np.stack([u, v, 1 - u - v], axis=1)[better]
    return best_weight, np.where(better, height, best_distance)
