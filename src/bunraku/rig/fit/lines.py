"""Centrelines of limbs, from where they begin to their tips, and of the trunk between them.

Slices of equal distance are cross-sections; their centroids make the line. Where a limb begins and which way the trunk is cut is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bunraku.rig.fit.branches import Landscape, slices
from bunraku.rig.fit.cost import Limb
from bunraku.rig.fit.embed import Embedding

Points = Float[np.ndarray, "K 3"]
ROOT = 0.1  # of a line's length: nearer to its beginning its points are not trusted
_WINDOW = 0.05  # of a limb's length: over this much on either side growth is measured
_BESIDE = 0.6, 1.2  # of a trunk's length: limbs beside it are no further back or ahead
_ARCH = 0.15  # of a trunk's radius
_EARLIER, _LATER = 0.3, 0.35  # of a limb's length: how far from its pass it may begin, outwards and inwards


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """A centreline by arc length, with the radius of the body around it."""

    points: Points
    radius: Float[np.ndarray, " K"]

    @property
    def passed(self) -> Float[np.ndarray, " K"]:
        return np.concatenate([[0.0], np.linalg.norm(np.diff(self.points, axis=0), axis=1).cumsum()])

    @property
    def length(self) -> float:
        return float(self.passed[-1])

    def at(self, share: float) -> Float[np.ndarray, "3"]:
        """The point at a share of the length. Beyond the ends, and near the beginning (where slices mix limb and body), the line goes on straight."""
        if share < ROOT or share > 1:
            near, far = (ROOT, 0.35) if share < ROOT else (1.0, 0.8)
            ahead = self.at(near) - self.at(far)
            return self.at(near) + ahead / max(float(np.linalg.norm(ahead)), 1e-12) * abs(share - near) * self.length
        return np.array([np.interp(share * self.length, self.passed, self.points[:, axis]) for axis in range(3)])


@dataclass(frozen=True, kw_only=True, eq=False)
class Trunk(Line):
    """The centreline of the trunk, with the shares by which joints are placed along it."""

    along: Float[np.ndarray, " K"]  # from 0; 1 where it ends, or beside the limbs that its template names

    def beside(self, share: float, up: float = 0.0) -> Float[np.ndarray, "3"]:
        """A point `up` radii above the centreline. Its slices are trusted from its beginning on; beyond its ends it goes on straight."""
        end = float(self.along[-1])
        place = np.array([np.interp(np.clip(share, 0, end), self.along, self.points[:, axis]) for axis in range(3)])
        if share > end:
            place = self.at(share / end)
        elif share < 0:
            place = place + (place - self.at(0.3)) * (-share / 0.3)
        return place + np.array([0.0, up * float(np.interp(share, self.along, self.radius)), 0.0])


def limb_lines(land: Landscape, limb: Limb) -> tuple[Line, ...]:
    """The centrelines of a limb, the left one first; one for a limb in the middle."""
    if not limb.kind.pair:
        branch = land.branch(limb.peaks[0], limb.level)
        return (_smoothed(_on_plane(branch.line, land), np.sqrt(branch.area / np.pi)),)
    return tuple(_from_tip(land, limb, peak) for peak in limb.peaks)


def _from_tip(land: Landscape, limb: Limb, peak: int) -> Line:
    """A paired limb, sliced from its tip inwards: it begins where its slices grow fastest, as they leave the limb and enter the body."""
    points, area, passed = land.inwards(peak)
    whole = land.peaks[peak].height - limb.level
    growth = np.log(_mean_of_three(area))
    step = max(round(_WINDOW * whole / (2 * land.volume.cell)), 1)
    steep = np.full(len(area), -np.inf)
    steep[step:-step] = growth[2 * step :] - growth[: -2 * step]
    near = (passed > (1 - _EARLIER) * whole) & (passed < (1 + _LATER) * whole)
    begin = int(np.where(near, steep, -np.inf).argmax()) if near.any() else int(np.abs(passed - whole).argmin())
    kept = slice(0, max(begin, 1) + 1)
    return _smoothed(np.concatenate([land.peaks[peak].tip[None], points[kept]])[::-1], np.sqrt(np.concatenate([area[:1], area[kept]])[::-1] / np.pi))


def _mean_of_three(values: Float[np.ndarray, " K"]) -> Float[np.ndarray, " K"]:
    padded = np.pad(values, 1, mode="edge")
    return (padded[:-2] + padded[1:-1] + padded[2:]) / 3


def _smoothed(points: Points, radius: Float[np.ndarray, " K"]) -> Line:
    """Each point the mean of itself and its neighbours, ends kept."""
    if len(points) > 4:
        inner = (points[:-2] + 2 * points[1:-1] + points[2:]) / 4
        points = np.concatenate([points[:1], inner, points[-1:]])
    if len(points) == 1:
        points, radius = np.repeat(points, 2, axis=0) + np.array([[0, 0, 0], [0, 1e-9, 0]]), np.repeat(radius, 2)
    return Line(points=points, radius=radius)


def _on_plane(points: Float[np.ndarray, "*batch 3"], land: Landscape) -> Float[np.ndarray, "*batch 3"]:
    return points * (0, 1, 1) + (land.x, 0, 0) if land.symmetric else points


def _anchor(land: Landscape, embedding: Embedding, names: tuple[str, ...], lines: Mapping[str, tuple[Line, ...]]) -> Float[np.ndarray, "3"]:
    """Where the first of these limbs that is there parts from the body; the body's middle without any."""
    name = next((name for name in names if name in embedding.limbs), None)
    if name is None:
        return land.volume.points[land.middle]
    limb = embedding.limbs[name]
    if not limb.kind.pair:
        return limb.start
    start = limb.start if limb.kind.stands else np.mean([line.at(0.0) for line in lines[name]], axis=0)  # legs part lower than they begin
    return start * (0, 1, 1) + (land.x, 0, 0)


def trunk_line(land: Landscape, embedding: Embedding, lines: Mapping[str, tuple[Line, ...]]) -> Trunk:
    """From between the limbs at which the trunk begins to those at which it ends, through the centroids of its cross-sections."""
    first, last = (_on_plane(_anchor(land, embedding, names, lines), land) for names in embedding.template.trunk)
    beside = lines.get(embedding.template.beside or "")
    axis = (last - first) * ((0, 0, 1) if beside else 1)  # legs part from a lying trunk at any height: its slices are upright
    length = float(np.linalg.norm(axis))
    axis = axis / max(length, 1e-12)
    core = np.ones(len(land.volume.points), dtype=bool)
    for limb in embedding.limbs.values():
        for peak in limb.peaks:
            core[land.branch(peak, limb.level).rows] = False
    points = land.volume.points[core]
    along = (points - first) @ axis
    between = (along >= -0.5 * land.volume.cell) & (along <= length + 0.5 * land.volume.cell)
    if int(between.sum()) < 8 or length < 4 * land.volume.cell:
        return _as_trunk(Line(points=np.stack([first, last]), radius=np.full(2, land.volume.cell)), axis, beside)
    line, area = slices(points[between], along[between], land.volume.cell, land.volume.depth[core][between] ** 2)  # packs and manes weigh little
    return _as_trunk(_smoothed(_on_plane(line, land), np.sqrt(area / np.pi)), axis, beside)


def _as_trunk(line: Line, axis: Float[np.ndarray, "3"], beside: tuple[Line, ...] | None) -> Trunk:
    """Shares by arc length; with limbs beside a lying trunk by level distance, 1 where these begin."""
    if not beside:
        return Trunk(points=line.points, radius=line.radius, along=line.passed / max(line.length, 1e-12))
    level = np.maximum.accumulate((line.points - line.points[0]) @ axis)
    one = (np.mean([limb.at(0.0) for limb in beside], axis=0) - line.points[0]) @ axis
    along = level / max(float(np.clip(one, *np.multiply(_BESIDE, level[-1]))), 1e-12)
    return Trunk(points=_without_pack(line.points, line.radius, along), radius=line.radius, along=along)


def _without_pack(points: Points, radius: Float[np.ndarray, " K"], along: Float[np.ndarray, " K"]) -> Points:
    """Between its limbs a lying trunk arches little; what lifts the centroids there is carried on the back."""
    straight = np.interp(along, (0, 1), np.interp((0, 1), along, points[:, 1]))
    highest = np.where(along < 1, straight + _ARCH * float(np.median(radius)), np.inf)
    return np.stack([points[:, 0], np.minimum(points[:, 1], highest), points[:, 2]], axis=-1)
