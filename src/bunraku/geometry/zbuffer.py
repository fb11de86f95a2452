"""Triangles to pixels for films: the same answer as `raster.py`, its readable twin, by one compiled loop over faces, some thirty times faster."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from bunraku.geometry.raster import NEAR, Hits
from bunraku.math.machine_code import machine_code

_NOTHING = Hits(pixel=np.zeros(0, dtype=np.int64), face=np.zeros(0, dtype=np.int64), weight=np.zeros((0, 3)), depth=np.zeros(0))


def rasterise_fast(
    p_image: Float[np.ndarray, "V 3"], faces: Int[np.ndarray, "T 3"], width: int, height: int, *, parallel: bool = False, near: float = NEAR
) -> Hits:
    """See `raster.rasterise_projected`. Only the part of the picture is gone through in which the vertices lie."""
    ahead = p_image[(p_image[:, 2] > near) & np.isfinite(p_image).all(1), :2]
    if not len(ahead):
        return _NOTHING
    low, high = (np.clip(edge, 0, (width, height)).astype(np.int64) for edge in (np.floor(ahead.min(0)), np.ceil(ahead.max(0))))
    columns, rows = high - low
    shifted = np.ascontiguousarray(p_image - (*low, 0.0), dtype=np.float64)
    face, weight, depth = _compiled(shifted, np.ascontiguousarray(faces, dtype=np.int64), columns, rows, parallel, near)
    inside = np.flatnonzero(face >= 0)
    pixel = (inside // max(columns, 1) + low[1]) * width + inside % max(columns, 1) + low[0]
    return Hits(pixel=pixel, face=face[inside], weight=weight[inside], depth=depth[inside])


def _fill(
    p: np.ndarray, faces: np.ndarray, width: int, height: int, parallel: bool, near: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # pragma: no cover - compiled
    """For every pixel the nearest face (−1: none), the weights of its corners and its depth."""
    seen = np.full(width * height, -1, dtype=np.int64)
    weight = np.empty((width * height, 3))
    nearest = np.full(width * height, np.inf)
    for f in range(len(faces)):
        a, b, c = faces[f]
        ax, ay, az, bx, by, bz, cx, cy, cz = p[a, 0], p[a, 1], p[a, 2], p[b, 0], p[b, 1], p[b, 2], p[c, 0], p[c, 1], p[c, 2]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if not (min(az, bz, cz) > near and abs(area) >= 1e-12):
            continue
        x_low, x_high = max(np.floor(min(ax, bx, cx) - 0.5), 0.0), min(np.ceil(max(ax, bx, cx) - 0.5), width - 1.0)
        y_low, y_high = max(np.floor(min(ay, by, cy) - 0.5), 0.0), min(np.ceil(max(ay, by, cy) - 0.5), height - 1.0)
        ux, uy, vx, vy = (by - cy) / area, (bx - cx) / area, (cy - ay) / area, (cx - ax) / area
        for y in range(int(y_low), int(y_high) + 1):
            py = y + 0.5 - cy
            for x in range(int(x_low), int(x_high) + 1):
                px = x + 0.5 - cx
                u, v = px * ux - py * uy, px * vx - py * vy
                if u < 0 or v < 0 or u + v > 1:
                    continue
                w = 1 - u - v
                if not parallel:
                    u, v, w = u / az, v / bz, w / cz
                    total = u + v + w
                    u, v, w = u / total, v / total, w / total
                depth = u * az + v * bz + w * cz
                pixel = y * width + x
                if depth < nearest[pixel]:
                    nearest[pixel], seen[pixel] = depth, f
                    weight[pixel, 0], weight[pixel, 1], weight[pixel, 2] = u, v, w
    return seen, weight, nearest


_compiled = machine_code(_fill)
