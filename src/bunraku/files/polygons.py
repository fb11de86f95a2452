"""Polygons as triangles, for the mesh formats whose faces may have any number of corners."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int


def fan_triangles(corners: Int[np.ndarray, " N"], sizes: Int[np.ndarray, " P"]) -> tuple[Int[np.ndarray, "T 3"], Int[np.ndarray, " T"]]:
    """Positions in `corners` (one polygon's after the other's) of the corners of triangles that fan out from each first one; and whose they are."""
    starts = np.cumsum(sizes) - sizes
    owner = np.repeat(np.arange(len(sizes)), np.maximum(sizes - 2, 0))
    number = np.arange(len(owner)) - np.repeat(np.cumsum(np.maximum(sizes - 2, 0)) - np.maximum(sizes - 2, 0), np.maximum(sizes - 2, 0))
    first = starts[owner]
    return corners[np.stack([first, first + number + 1, first + number + 2], axis=1)], owner
