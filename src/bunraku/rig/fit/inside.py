"""What lies inside a mesh, as voxels: closed or open, one shell or many, whichever way its faces turn.

The surface is painted into a grid and the outside is flooded from the border; what the flood does not reach is body. Where it leaks in
through a hole, a cell counts as inside if the surface is seen from it along at least five of the six grid directions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import ndimage
from scipy.spatial import KDTree

from bunraku.errors import BadValue

_MOST_CELLS, _LONGEST = 700_000, 240  # of the grid's box, and along its longest side
_FEWEST_INSIDE, _MOST_INSIDE = 45_000, 120_000  # cells of the body: coarser misses limbs, finer takes long
_BORDER = 3  # empty cells around the body
_LEAK = 0.5  # of the volume that the six directions see: with less, the flood has come in
_CRUMB, _NEAR = 0.002, 0.06  # loose parts smaller than this share of the volume, or farther than this share of the size, are left out
EVERY_WAY = np.ones((3, 3, 3), dtype=bool)


@dataclass(frozen=True, kw_only=True, eq=False)
class Volume:
    """Cells of edge `cell`; the middle of cell (0, 0, 0) is at `origin`. One connected body."""

    inside: Bool[np.ndarray, "X Y Z"]
    origin: Float[np.ndarray, "3"]
    cell: float
    leaked: bool = False
    left_out: int = 0  # loose parts

    @cached_property
    def cells(self) -> Int[np.ndarray, "N 3"]:
        return np.argwhere(self.inside)

    @cached_property
    def points(self) -> Float[np.ndarray, "N 3"]:
        """The middles of the cells inside."""
        return self.origin + self.cell * self.cells

    @cached_property
    def depth(self) -> Float[np.ndarray, " N"]:
        """How far each cell inside is from the surface: the radius of the largest ball around it."""
        return np.asarray(ndimage.distance_transform_edt(self.inside))[self.inside] * self.cell - 0.5 * self.cell

    @cached_property
    def number(self) -> Int[np.ndarray, "X Y Z"]:
        """The row of `points` of each cell, −1 outside."""
        number = np.full(self.inside.shape, -1)
        number[self.inside] = np.arange(int(self.inside.sum()))
        return number

    @cached_property
    def tree(self) -> KDTree:
        return KDTree(self.points)


def solid(vertices: Float[np.ndarray, "V 3"], faces: Int[np.ndarray, "T 3"]) -> Volume:
    """The body as one connected volume. Parts that hardly touch are joined to the largest, far and tiny ones left out."""
    corner = vertices[faces]
    size = np.ptp(corner.reshape(-1, 3), axis=0) if len(corner) else np.zeros(3)
    if not size.max() > 0:
        raise BadValue(f"the mesh ({len(vertices)} vertices, {len(faces)} faces) has no surface to put bones into; give a body with faces.")
    size = np.maximum(size, 1e-3 * size.max())
    cell = max(float((size.prod() / _MOST_CELLS) ** (1 / 3)), float(size.max()) / _LONGEST)
    volume = _fill(corner, cell)
    count = len(volume.points)
    wanted = min(max(count, _FEWEST_INSIDE), _MOST_INSIDE)
    if count != wanted:  # a slim body in a large box, or one that fills it
        volume = _fill(corner, max(cell * max((count / wanted) ** (1 / 3), 0.5), float(size.max()) / _LONGEST))
    if len(volume.points) < 30 or min(np.ptp(volume.cells, axis=0)) < 2:
        raise BadValue(f"the mesh ({len(vertices)} vertices, {len(faces)} faces) has no volume to put bones into; give a body, not a sheet, a line or a point.")
    return volume


def _fill(corner: Float[np.ndarray, "T 3 3"], cell: float) -> Volume:
    low, high = corner.min((0, 1)), corner.max((0, 1))
    shape = np.ceil((high - low) / cell).astype(int) + 1 + 2 * _BORDER
    origin = (low + high) / 2 - cell * (shape - 1) / 2
    surface = np.zeros(shape, dtype=bool)
    surface[tuple(np.rint((_sprinkle(corner, 0.5 * cell) - origin) / cell).astype(int).T)] = True
    flooded = np.asarray(ndimage.binary_fill_holes(surface))
    seen = _directions_that_see(surface) >= 5
    core = int((seen & ~surface).sum())
    leaked = int((flooded & ~surface).sum()) < _LEAK * core and core > 0.2 * int(surface.sum())
    body = surface | np.asarray(ndimage.binary_opening(seen | surface, EVERY_WAY)) if leaked else flooded
    body, left_out = _connected(body)
    return Volume(inside=body, origin=origin, cell=cell, leaked=leaked, left_out=left_out)


def _sprinkle(corner: Float[np.ndarray, "T 3 3"], spacing: float) -> Float[np.ndarray, "N 3"]:
    """Points on every triangle, no farther apart than `spacing`: barycentric grids, triangles of like size together."""
    longest = np.linalg.norm(corner - np.roll(corner, 1, axis=1), axis=2).max(1)
    steps = np.maximum(np.ceil(longest / spacing), 1).astype(int)
    steps = 2 ** np.ceil(np.log2(steps)).astype(int)
    found = []
    for count in np.unique(steps):
        i, j = np.meshgrid(np.arange(count + 1), np.arange(count + 1), indexing="ij")
        keep = i + j <= count
        weight = np.stack([i[keep], j[keep], count - i[keep] - j[keep]], axis=-1) / count
        mine = corner[steps == count]
        for chunk in np.array_split(mine, max(len(mine) * len(weight) // 2_000_000, 1)):
            found.append(np.einsum("pk,tkc->tpc", weight, chunk).reshape(-1, 3))
    return np.concatenate(found)


def _directions_that_see(surface: Bool[np.ndarray, "X Y Z"]) -> Int[np.ndarray, "X Y Z"]:
    """In how many of the six directions along the grid each cell sees the surface."""
    seen = np.zeros(surface.shape, dtype=np.int8)
    for axis in range(3):
        seen += np.maximum.accumulate(surface, axis=axis)
        seen += np.flip(np.maximum.accumulate(np.flip(surface, axis), axis=axis), axis)
    return seen


def parts(body: Bool[np.ndarray, "X Y Z"]) -> tuple[Int[np.ndarray, "X Y Z"], int]:
    """The number of the part that each cell belongs to, from 1, and how many parts there are; 0 outside."""
    label = np.zeros(body.shape, dtype=np.int32)
    return label, int(np.asarray(ndimage.label(body, EVERY_WAY, output=label)))


def _connected(body: Bool[np.ndarray, "X Y Z"]) -> tuple[Bool[np.ndarray, "X Y Z"], int]:
    """The largest part and what lies near it, joined by bridges of cells; and how many parts were left out."""
    label, count = parts(body)
    if count < 2:
        return body, 0
    cells = np.argwhere(body)
    part = label[body]
    volume = np.bincount(part)
    near = _NEAR * float(np.ptp(cells, axis=0).max())
    kept, waiting = [int(volume.argmax())], [p for p in range(1, count + 1) if volume[p] > _CRUMB * volume.max() and p != volume.argmax()]
    result = label == kept[0]
    while waiting:
        tree = KDTree(np.argwhere(result))
        gaps = [tuple(map(np.asarray, tree.query(cells[part == p]))) for p in waiting]
        best = int(np.argmin([gap.min() for gap, _ in gaps]))
        gap, index = gaps[best]
        if gap.min() > near:
            break
        start, end = cells[part == waiting[best]][gap.argmin()], np.array(tree.data)[index[gap.argmin()]]
        bridge = np.rint(start + np.linspace(0, 1, int(2 * gap.min()) + 2)[:, None] * (end - start)).astype(int)
        result |= label == waiting.pop(best)
        result |= np.asarray(ndimage.binary_dilation(_painted(bridge, body.shape)))
    return result, len(waiting)


def _painted(cells: Int[np.ndarray, "N 3"], shape: tuple[int, ...]) -> Bool[np.ndarray, "X Y Z"]:
    painted = np.zeros(shape, dtype=bool)
    painted[tuple(cells.T)] = True
    return painted


def both_sides(volume: Volume, x: float) -> tuple[Volume, float]:
    """What the volume and its mirror image in the plane at `x` share (what one hand holds is gone), and how much of the volume that is."""
    mirrored = volume.points * (-1, 1, 1) + (2 * x, 0, 0)
    cells = np.rint((mirrored - volume.origin) / volume.cell).astype(int)
    valid = np.flatnonzero(((cells >= 0) & (cells < volume.inside.shape)).all(1))
    grown = np.asarray(ndimage.binary_dilation(volume.inside), dtype=bool)  # half a cell of offset must not eat thin limbs
    shared = np.zeros_like(volume.inside)
    mine = volume.cells[valid[grown[tuple(cells[valid].T)]]]
    shared[tuple(mine.T)] = True
    label, count = parts(shared)
    if count > 1:
        sizes = np.bincount(label.ravel())[1:]
        shared = label == 1 + int(sizes.argmax())
    return replace(volume, inside=shared), float(shared.sum() / volume.inside.sum())
