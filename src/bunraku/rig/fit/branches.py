"""The limbs of a volume: where its far ends are, and how they come together towards its middle.

Distances are measured inside the body from its middle. Think of the body as a landscape of these distances: every limb is a peak, and two
limbs part at the pass between them. Peaks that rise little above their pass (fingers, ears) belong to the higher one. The centreline of a
limb runs through the centroids of its slices of equal distance, which are also its cross-sections.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra, minimum_spanning_tree

from bunraku.rig.fit.inside import Volume, parts

_ENDS = 9  # far ends from which the middle is found
_SHORTEST = 0.05  # of the body's longest way: lower peaks are no limbs
_MOST = 24  # peaks
_MEET = 0.5  # of their height: two ends whose pass is lower are ends of one way through the body


@dataclass(frozen=True, kw_only=True, eq=False)
class Peak:
    """A far end of the body. Ends that are each other's mirror image are twins; an end in the middle is its own twin."""

    cell: int
    tip: Float[np.ndarray, "3"]
    height: float  # its distance from the middle
    twin: int
    way: Float[np.ndarray, "K 3"]  # the shortest way to it from the middle
    passed: Float[np.ndarray, " K"]  # the distances along it

    def at(self, distance: float) -> Float[np.ndarray, "3"]:
        """The point of the way at a distance from the middle."""
        return np.array([np.interp(distance, self.passed, self.way[:, axis]) for axis in range(3)])


@dataclass(frozen=True, kw_only=True, eq=False)
class Branch:
    """A limb from the pass at which it parts from the others, out to its tip."""

    line: Float[np.ndarray, "K 3"]  # centreline
    area: Float[np.ndarray, " K"]  # of the cross-sections
    rows: Int[np.ndarray, " N"]  # the cells it is made of


@dataclass(frozen=True, kw_only=True, eq=False)
class Landscape:
    """Distances inside a body from its middle, the far ends, and the passes between them."""

    volume: Volume
    middle: int  # the cell
    x: float  # the mirror plane
    symmetric: bool  # whether the body is its own mirror image
    distance: Float[np.ndarray, " N"]
    peaks: tuple[Peak, ...]  # the most prominent first
    passes: Float[np.ndarray, "P P"]  # how high the pass between two peaks lies
    graph: csr_array

    def inwards(self, peak: int) -> tuple[Float[np.ndarray, "K 3"], Float[np.ndarray, " K"], Float[np.ndarray, " K"]]:
        """From a tip to the middle and beyond: centroids and areas of the slices of equal distance from the tip, and those distances."""
        away = dijkstra(self.graph, directed=False, indices=self.peaks[peak].cell, limit=1.05 * self.peaks[peak].height)
        near = np.flatnonzero(np.isfinite(away))
        line, area = slices(self.volume.points[near], away[near], self.volume.cell)
        return line, area, (np.arange(len(line)) + 0.5) * 2 * self.volume.cell

    def branch(self, peak: int, level: float) -> Branch:
        """What hangs together with a peak above a level."""
        rows = _component(self.volume, self.distance > level, self.peaks[peak].cell)
        line, area = slices(self.volume.points[rows], self.distance[rows], self.volume.cell)
        return Branch(line=line, area=area, rows=rows)


def neighbours(volume: Volume) -> csr_array:
    """Cells that touch, with the distance between their middles (26 neighbours, upper half)."""
    number, count = volume.number, len(volume.points)
    rows, columns, lengths = [], [], []
    for step in [(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if (x, y, z) > (0, 0, 0)]:
        a = number[tuple(slice(max(-s, 0), n - max(s, 0)) for s, n in zip(step, number.shape, strict=True))]
        b = number[tuple(slice(max(s, 0), n - max(-s, 0)) for s, n in zip(step, number.shape, strict=True))]
        both = (a >= 0) & (b >= 0)
        rows.append(a[both])
        columns.append(b[both])
        lengths.append(np.full(int(both.sum()), volume.cell * float(np.linalg.norm(step))))
    return csr_array((np.concatenate(lengths), (np.concatenate(rows), np.concatenate(columns))), shape=(count, count))


def survey(volume: Volume, x: float, symmetric: bool) -> Landscape:
    """The landscape of a body with its mirror plane at `x`."""
    graph = neighbours(volume)
    middle = _middle(volume, graph, x if symmetric else None)
    distance, before = dijkstra(graph, directed=False, indices=middle, return_predecessors=True)
    cells, passes = _peaks(graph, distance, _SHORTEST * float(distance.max()))
    cells, passes = cells[:_MOST], passes[:_MOST, :_MOST]
    tips = volume.points[cells]
    twins = _twins(tips, distance[cells], x)
    peaks = []
    for cell, tip, twin in zip(cells.tolist(), tips, twins, strict=True):
        way = [cell]
        while before[way[-1]] >= 0:
            way.append(int(before[way[-1]]))
        way = way[::-1]
        peaks.append(Peak(cell=cell, tip=tip, height=float(distance[cell]), twin=twin, way=volume.points[way], passed=distance[way]))
    return Landscape(volume=volume, middle=middle, x=x, symmetric=symmetric, distance=distance, peaks=tuple(peaks), passes=passes, graph=graph)


def _twins(tips: Float[np.ndarray, "P 3"], heights: Float[np.ndarray, " P"], x: float) -> list[int]:
    """Each end's mirror image among the ends: the nearest, if both agree; else the end itself, alone."""
    gap = np.linalg.norm(tips[:, None] * (-1, 1, 1) + (2 * x, 0, 0) - tips[None], axis=-1) + np.abs(heights[:, None] - heights[None])
    best = gap.argmin(1)
    return [int(b) if best[b] == i else i for i, b in enumerate(best)]


def _middle(volume: Volume, graph: csr_array, x: float | None) -> int:
    """The cell, on the mirror plane if there is one, with the shortest ways, in sum, to the far ends of the body."""
    start = int(volume.depth.argmax())
    nearest = dijkstra(graph, directed=False, indices=start)
    total = np.zeros(len(volume.points))
    for _ in range(_ENDS):
        ways = dijkstra(graph, directed=False, indices=int(nearest.argmax()))
        total += ways
        nearest = np.minimum(nearest, ways)
    total = total - 2 * volume.depth  # among equals the innermost
    if x is not None:
        total = np.where(np.abs(volume.points[:, 0] - x) <= 0.75 * volume.cell, total, np.inf)
    return int(total.argmin())


def _peaks(graph: csr_array, height: Float[np.ndarray, " N"], least: float) -> tuple[Int[np.ndarray, " P"], Float[np.ndarray, "P P"]]:
    """Peaks that rise at least `least` above the pass to a higher one, the most prominent first, and the pass between any two of them.

    The passes are edges of the spanning tree with the highest ways, joined from the top down.
    """
    coo = graph.tocoo()
    top = float(height.max()) + 1.0
    low = np.minimum(height[coo.row], height[coo.col])
    tree = minimum_spanning_tree(csr_array((top - low, (coo.row, coo.col)), shape=graph.shape)).tocoo()
    order = np.argsort(tree.data, kind="stable")
    above, peak, heights = list(range(len(height))), list(range(len(height))), height.tolist()
    merges: list[tuple[int, int, float]] = []  # (lower peak, higher peak, pass)

    def root(i: int) -> int:
        while above[i] != i:
            above[i] = above[above[i]]
            i = above[i]
        return i

    for a, b, level in zip(tree.row[order].tolist(), tree.col[order].tolist(), (top - tree.data[order]).tolist(), strict=True):
        i, j = root(a), root(b)
        if heights[peak[i]] < heights[peak[j]]:
            i, j = j, i
        above[j] = i
        if heights[peak[j]] - level >= least:
            merges.append((peak[j], peak[i], level))
    merges.sort(key=lambda merge: merge[2] - heights[merge[0]])
    cells = [peak[root(0)]] + [lower for lower, _, _ in merges]
    return np.array(cells), _bottlenecks(cells, merges)


def _bottlenecks(cells: list[int], merges: list[tuple[int, int, float]]) -> Float[np.ndarray, "P P"]:
    """The highest pass on any way between two peaks."""
    passes = np.full((len(cells), len(cells)), -np.inf)
    np.fill_diagonal(passes, np.inf)
    place = {cell: i for i, cell in enumerate(cells)}
    for lower, higher, level in merges:
        i, j = place[lower], place[higher]
        passes[i, j] = passes[j, i] = level
    for k in range(len(cells)):
        passes = np.maximum(passes, np.minimum(passes[:, k, None], passes[None, k, :]))
    return passes


def _component(volume: Volume, chosen: Bool[np.ndarray, " N"], cell: int) -> Int[np.ndarray, " M"]:
    grid = np.zeros(volume.inside.shape, dtype=bool)
    grid[tuple(volume.cells[chosen].T)] = True
    label, _ = parts(grid)
    mine = label[tuple(volume.cells.T)]
    return np.flatnonzero(mine == label[tuple(volume.cells[cell])])


def slices(
    points: Float[np.ndarray, "N 3"], along: Float[np.ndarray, " N"], cell: float, weights: Float[np.ndarray, " N"] | None = None
) -> tuple[Float[np.ndarray, "K 3"], Float[np.ndarray, " K"]]:
    """Centroids and areas of slices two cells thick."""
    band = ((along - along.min()) / (2 * cell)).astype(int)
    count = np.bincount(band)
    keep = count > 0
    weights = np.ones(len(points)) if weights is None else weights + 1e-3 * cell**2
    total = np.bincount(band, weights)[keep]
    line = np.stack([np.bincount(band, weights * points[:, axis])[keep] / total for axis in range(3)], axis=-1)
    return line, count[keep] * cell**2 / 2


def slenderness(land: Landscape) -> float:
    """The longest way through the body over its thickness, times how much longer than straight that way is, squared: winding counts double."""
    peaks = land.peaks
    ends = [(a, b) for i, a in enumerate(peaks) for j, b in enumerate(peaks[:i]) if land.passes[i, j] < _MEET * min(a.height, b.height)]
    ways = [(a.height + b.height, float(np.linalg.norm(a.tip - b.tip))) for a, b in ends]
    longest, straight = max(ways, default=(float(land.distance.max()), float(land.distance.max())))
    volume = len(land.volume.points) * land.volume.cell**3
    return longest / float(np.sqrt(volume / longest)) * (longest / max(straight, 0.2 * longest)) ** 2
