"""The cotangent Laplacian of a surface and the area around each point, for any triangles: tufted and intrinsically Delaunay.

Positive semi-definite, off-diagonals ≤ 0 (so heat never leaves the range it came with), `L_ij = −(cot α + cot β) / 2`.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csc_matrix, diags

_MOLLIFY = 1e-5  # of the mean edge: needles get this much width before angles are taken
_ROUNDING = 1e-4  # the four corners of a flat quad lie on one circle, its diagonal weighs 0, and float32 makes of it this at most


def surface_laplacian(points: Float[np.ndarray, "P 3"], faces: Int[np.ndarray, "S 3"]) -> tuple[csc_matrix, Float[np.ndarray, " P"]]:
    """L (P P) and the areas (P). Every point must belong to a face."""
    from robust_laplacian import mesh_laplacian

    quick = _plain_cotangents(points, faces)
    if quick is not None:
        return quick
    L, M = mesh_laplacian(np.ascontiguousarray(points, np.float64), np.ascontiguousarray(faces, np.int64), mollify_factor=_MOLLIFY)
    return csc_matrix(L), M.diagonal()


def _plain_cotangents(points: Float[np.ndarray, "P 3"], faces: Int[np.ndarray, "S 3"]) -> tuple[csc_matrix, Float[np.ndarray, " P"]] | None:
    """The same where the mesh is Delaunay as it stands and no edge has more than two faces: then nothing would be flipped or tufted."""
    count = len(points)
    corners = points[faces]
    ahead, behind = np.roll(corners, -1, axis=1) - corners, np.roll(corners, 1, axis=1) - corners
    twice_area = np.linalg.norm(np.cross(ahead[:, 0], behind[:, 0]), axis=1)
    cot = (ahead * behind).sum(-1) / twice_area[:, None]  # at corner k, so it belongs to the edge from k + 1 to k + 2
    start, end = np.roll(faces, -1, axis=1).ravel(), np.roll(faces, 1, axis=1).ravel()
    low, high = np.minimum(start, end), np.maximum(start, end)
    edges, of_side, times = np.unique(low * count + high, return_inverse=True, return_counts=True)
    weight = np.bincount(of_side, cot.ravel() / 2, minlength=len(edges))
    if times.max(initial=0) > 2 or not weight.min(initial=0) >= -_ROUNDING:
        return None
    weight = weight.clip(min=0)
    i, j = edges // count, edges % count
    diagonal = np.bincount(i, weight, count) + np.bincount(j, weight, count)
    area = np.bincount(faces.ravel(), np.repeat(twice_area / 6, 3), count)
    import os

    if "v" in os.environ.get("V", ""):
        obt = cot < 0
        l2 = ((np.roll(corners, -1, 1) - np.roll(corners, 1, 1)) ** 2).sum(-1)
        vor = (np.roll(cot * l2, -1, 1) + np.roll(cot * l2, 1, 1)) / 8
        mix = np.where(obt.any(1)[:, None], np.where(obt, twice_area[:, None] / 4, twice_area[:, None] / 8), vor)
        area = np.bincount(faces.ravel(), mix.ravel(), count)
    area = area * float(os.environ.get("C", "1"))
    L = csc_matrix((-np.concatenate([weight, weight]), (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(count, count)) + diags(diagonal)
    return csc_matrix(L), area
