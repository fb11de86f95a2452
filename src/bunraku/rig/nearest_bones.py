"""The bones closest to each of many points, ties included."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

_TIE = 1e-4  # relative: bones no farther than this beyond the closest one are as close
_AT_ONCE = 1 << 21  # point–bone pairs measured at once


@dataclass(frozen=True, kw_only=True, eq=False)
class Nearest:
    """N pairs of a point and a bone that is closest to it (one, unless several tie), and where on the bone that is."""

    points: Int[np.ndarray, " N"]
    bones: Int[np.ndarray, " N"]
    places: Float[np.ndarray, "N 3"]
    distances: Float[np.ndarray, " N"]


def nearest_bones(points: Float[np.ndarray, "P 3"], heads: Float[np.ndarray, "B 3"], tails: Float[np.ndarray, "B 3"]) -> Nearest:
    """Every point has at least one pair; pairs are in the order of the points."""
    step = max(1, _AT_ONCE // len(heads))
    found = [_closest(points[start : start + step], heads, tails) for start in range(0, len(points), step)]
    rows = np.concatenate([row + i * step for i, (row, _, _) in enumerate(found)])
    bones, along = np.concatenate([bone for _, bone, _ in found]), np.concatenate([t for _, _, t in found])
    places = heads[bones] + along[:, None] * (tails - heads)[bones]
    return Nearest(points=rows, bones=bones, places=places, distances=np.linalg.norm(points[rows] - places, axis=1))


def _closest(
    points: Float[np.ndarray, "P 3"], heads: Float[np.ndarray, "B 3"], tails: Float[np.ndarray, "B 3"]
) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"], Float[np.ndarray, " N"]]:
    """Rows, bones, and how far along the bone (0 … 1) the closest place is."""
    bone = tails - heads
    squared = (bone**2).sum(1)
    dot = points @ bone.T - (heads * bone).sum(1)
    along = (dot / np.where(squared > 0, squared, 1)).clip(0, 1)
    square = (points**2).sum(1)[:, None] - 2 * points @ heads.T + (heads**2).sum(1) - along * (2 * dot - along * squared)
    rows, bones = np.nonzero(square <= (square.min(1, keepdims=True).clip(min=0) * (1 + _TIE) ** 2))
    return rows, bones, along[rows, bones]
