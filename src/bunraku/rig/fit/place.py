"""Where the joints of a template go in a body whose limbs are known: along centrelines, by shares of their length and by where they bend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from jaxtyping import Float

from bunraku.kinematics.skeleton import SIDES
from bunraku.rig.fit.branches import Landscape, slices
from bunraku.rig.fit.cost import Limb
from bunraku.rig.fit.embed import Embedding
from bunraku.rig.fit.templates import JointKind

Points = Float[np.ndarray, "K 3"]
_BENDING, _GRID = 0.25, 49  # weight of bones that leave the line · points of the line that are looked at
_ROOT = 0.1  # of a line's length: nearer to its beginning its points are not trusted
_WINDOW = 0.05  # of a limb's length: over this much on either side growth is measured
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
        if share < _ROOT or share > 1:
            near, far = (_ROOT, 0.35) if share < _ROOT else (1.0, 0.8)
            ahead = self.at(near) - self.at(far)
            return self.at(near) + ahead / max(float(np.linalg.norm(ahead)), 1e-12) * abs(share - near) * self.length
        return np.array([np.interp(share * self.length, self.passed, self.points[:, axis]) for axis in range(3)])

    def radius_at(self, share: float) -> float:
        return float(np.interp(share * self.length, self.passed, self.radius))


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


def trunk_line(land: Landscape, embedding: Embedding, lines: Mapping[str, tuple[Line, ...]]) -> Line:
    """From between the limbs at which the trunk begins to those at which it ends, through the centroids of its cross-sections."""
    first, last = (_on_plane(_anchor(land, embedding, names, lines), land) for names in embedding.template.trunk)
    axis = last - first
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
        return Line(points=np.stack([first, last]), radius=np.full(2, land.volume.cell))
    line, area = slices(points[between], along[between], land.volume.cell, land.volume.depth[core][between] ** 2)  # packs and manes weigh little
    line = _on_plane(line, land)
    return _smoothed(line, np.sqrt(area / np.pi))


def joint_places(land: Landscape, embedding: Embedding) -> dict[str, Float[np.ndarray, "3"]]:
    """Every joint of the template whose limb is there, by name; pairs as left_… and right_…."""
    lines = {name: limb_lines(land, limb) for name, limb in embedding.limbs.items()}
    trunk = trunk_line(land, embedding, lines)
    joints = embedding.template.joints
    found = {joint.name: _on_trunk(trunk, joint.at, joint.up) for joint in joints if joint.on == "trunk"}
    for name in embedding.limbs:
        kinds = [joint for joint in joints if joint.on == name]
        for line, side in zip(lines[name], SIDES, strict=False):
            for joint, place in zip(kinds, _along(line, trunk, kinds, embedding.facing), strict=True):
                found[joint.name.replace("{side}", side)] = place
    return found


def _along(line: Line, trunk: Line, kinds: list[JointKind], facing: int) -> list[Float[np.ndarray, "3"]]:
    """The joints of one limb, from the body outwards."""
    straight = [joint.between > 0 and not joint.give for joint in kinds]
    free = [joint for joint, lerped in zip(kinds, straight, strict=True) if not (lerped or joint.trunk or joint.body)]
    shares = {joint.name: share for joint, share in zip(free, _shares(line, free), strict=True)}
    places = []
    for joint in kinds:
        place = line.at(shares.get(joint.name, 0.0))
        if joint.trunk is not None:
            base = _on_trunk(trunk, joint.trunk[0])
            place = base + joint.trunk[1] * (place - base)
        if joint.body is not None:
            at, up, mix = joint.body
            base = _on_trunk(trunk, at, up)
            place = np.array([place[0], base[1], place[2] + mix * (base[2] - place[2])])
        places.append(place)
    for i in np.flatnonzero(straight):
        way = places[i + kinds[i].between] - places[i - 1]
        places[i] = places[i - 1] + kinds[i].at * way + (0.0, 0.0, facing * kinds[i].ahead * float(np.linalg.norm(way)))
    return places


def _on_trunk(trunk: Line, share: float, up: float = 0.0) -> Float[np.ndarray, "3"]:
    """A point of the trunk, `up` radii above its centreline. Its slices are trusted from its beginning on; beyond its ends it goes on straight."""
    inner = float(np.clip(share, 0, 1))
    place = np.array([np.interp(inner * trunk.length, trunk.passed, trunk.points[:, axis]) for axis in range(3)])
    if share > 1:
        place = trunk.at(share)
    elif share < 0:
        place = place + (place - trunk.at(0.3)) * (-share / 0.3)
    return place + np.array([0.0, up * trunk.radius_at(share), 0.0])


def _shares(line: Line, kinds: list[JointKind]) -> list[float]:
    """Where along a limb its joints are: the bones should follow the line, and joints be where they usually are."""
    radius = float(np.median(line.radius[len(line.radius) // 10 : max(len(line.radius) // 2, 1)])) / max(line.length, 1e-12)
    usual = [joint.at - joint.inside * radius for joint in kinds]
    free = [i for i, joint in enumerate(kinds) if joint.give > 0]
    if not free:
        return usual
    grid = np.linspace(0, 1, _GRID)
    points = np.array([line.at(share) for share in grid])
    best, least = usual, np.inf
    options = [_around(usual[i], kinds[i]) for i in free]
    for choice in product(*options):
        shares = list(usual)
        for i, share in zip(free, choice, strict=True):
            shares[i] = share
        if any(b - a < 0.04 for a, b in pairwise(shares)):
            continue
        cost = _BENDING * _apart(line, points, grid, shares)
        for i in free:
            joint = kinds[i]
            if joint.between and 0 < i < len(kinds) - 1:
                cost += (((shares[i] - shares[i - 1]) / (shares[i + 1] - shares[i - 1]) - joint.at) / joint.give) ** 2
            else:
                cost += ((shares[i] - usual[i]) / joint.give) ** 2
        if cost < least:
            best, least = shares, cost
    return best


def _around(usual: float, joint: JointKind) -> Float[np.ndarray, " N"]:
    return np.arange(0.12, 0.97, 0.03) if joint.between else np.clip(usual + joint.give * np.linspace(-2.5, 2.5, 16), 0.05, 0.98)


def _apart(line: Line, points: Float[np.ndarray, "N 3"], grid: Float[np.ndarray, " N"], shares: list[float]) -> float:
    """The mean squared distance of the line from the bones through its points at these shares, in units of a hundredth of its length."""
    knots = np.array([max(shares[0], 0.0), *shares[1:], 1.0])
    corner = np.array([np.interp(knots, grid, points[:, axis]) for axis in range(3)]).T
    chord = np.array([np.interp(grid, knots, corner[:, axis]) for axis in range(3)]).T
    return float(((chord - points) ** 2).sum(1).mean()) / (0.01 * line.length) ** 2
