"""Triangles to pixels, exactly: which face each pixel sees, and where on it. A z-buffer without loops over triangles.

Faces are sorted into classes by the size of their bounding box; all boxes of one class are tested in one array operation.
Every pixel centre inside a triangle becomes a fragment, and of the fragments on one pixel the nearest stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

NEAR = 1e-3  # [m] nothing nearer to the camera is drawn
_FRAGMENTS_AT_ONCE = 1 << 22


@dataclass(frozen=True, kw_only=True, eq=False)
class Hits:
    """What the pixels see. Only covered pixels are listed."""

    pixel: Int[np.ndarray, " P"]  # row × width + column
    face: Int[np.ndarray, " P"]
    weight: Float[np.ndarray, "P 3"]  # of the face's three corners at that point
    depth: Float[np.ndarray, " P"]  # [m]

    def interpolate(self, values: Float[np.ndarray, "V C"], faces: Int[np.ndarray, "T 3"]) -> Float[np.ndarray, "P C"]:
        """Vertex values at the points seen."""
        return np.einsum("pk,pkc->pc", self.weight, values[faces[self.face]])


def rasterise_projected(
    p_image: Float[np.ndarray, "V 3"], faces: Int[np.ndarray, "T 3"], width: int, height: int, *, parallel: bool = False, near: float = NEAR
) -> Hits:
    """What each pixel sees of vertices given as pixel x, pixel y and depth [m]. Both sides of every face are drawn.

    `parallel`: the vertices were projected by parallel rays, so values along a face follow the pixels evenly.
    """
    corner = p_image[faces]
    low = np.floor(corner[..., :2].min(1) - 0.5).astype(np.int64)
    high = np.ceil(corner[..., :2].max(1) - 0.5).astype(np.int64)
    limit = np.array([width, height]) - 1
    seen = (corner[..., 2].min(1) > near) & (high >= 0).all(1) & (low <= limit).all(1)
    low, high = low.clip(0, limit), high.clip(0, limit)
    extent = (high - low).max(1) + 1
    found: list[tuple[np.ndarray, ...]] = []
    side = 2
    while seen.any():
        mine = np.flatnonzero(seen & (extent <= side))
        chunk = max(_FRAGMENTS_AT_ONCE // side**2, 1)
        chunks = (chosen for chosen in np.split(mine, range(chunk, len(mine), chunk)) if len(chosen))
        found += [_fragments(corner, chosen, low[chosen], side, (width, height), parallel) for chosen in chunks]
        seen &= extent > side
        side *= 2
    return _nearest(found)


def _fragments(
    corner: Float[np.ndarray, "T 3 3"], chosen: Int[np.ndarray, " N"], low: Int[np.ndarray, "N 2"], side: int, size: tuple[int, int], parallel: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pixels, faces, corner weights and depths of all pixel centres inside the chosen faces, looking in boxes of `side` pixels."""
    (ax, ay), (bx, by), (cx, cy) = (corner[chosen, k, :2].T for k in range(3))
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    area = np.where(np.abs(area) < 1e-12, np.nan, area)  # nan is inside nothing
    x, y = (low[:, axis, None] + np.arange(side) for axis in (0, 1))
    # the weights of the first two corners are linear in x and y: a row part plus a column part
    px, py = x + 0.5 - cx[:, None], y + 0.5 - cy[:, None]
    u = (px * ((by - cy) / area)[:, None])[:, None, :] - (py * ((bx - cx) / area)[:, None])[:, :, None]
    v = (px * ((cy - ay) / area)[:, None])[:, None, :] - (py * ((cx - ax) / area)[:, None])[:, :, None]
    inside = (u >= 0) & (v >= 0) & (u + v <= 1) & (x < size[0])[:, None, :] & (y < size[1])[:, :, None]
    number, row, column = np.nonzero(inside)
    u, v = u[inside], v[inside]
    weight = np.stack([u, v, 1 - u - v], axis=-1)
    depth = corner[chosen[number], :, 2]
    if not parallel:
        weight = weight / depth
        weight /= weight.sum(1, keepdims=True)
    pixel = (low[number, 1] + row) * size[0] + low[number, 0] + column
    return pixel, chosen[number], weight, (weight * depth).sum(1)


def _nearest(found: list[tuple[np.ndarray, ...]]) -> Hits:
    if not found:
        return Hits(pixel=np.zeros(0, dtype=np.int64), face=np.zeros(0, dtype=np.int64), weight=np.zeros((0, 3)), depth=np.zeros(0))
    pixel, face, weight, depth = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.lexsort((depth, pixel))
    pixel = pixel[order]
    first = np.flatnonzero(np.diff(pixel, prepend=-1))
    nearest = order[first]
    return Hits(pixel=pixel[first], face=face[nearest], weight=weight[nearest], depth=depth[nearest])
