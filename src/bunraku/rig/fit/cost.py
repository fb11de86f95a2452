"""What it costs to take these ends of a body for those limbs of a template.

A cost adds squared deviations, each in units of what is usual: where limbs point, where they grow, how long they are, whether legs stand on
the ground; and what the template leaves unexplained: ends of the body that are no limb, limbs without an end. Thousands of assignments are
weighed for one body, so what depends on one limb alone is kept, and vectors are plain numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bunraku.rig.fit.branches import Landscape, slenderness
from bunraku.rig.fit.templates import LimbKind, Template

_UNEXPLAINED = 0.16  # of the longest way: an end this long that is no limb costs 1
_GROUND = 0.07  # of the height: how far above the ground a foot's tip usually is
_TOUCH = 0.035  # of the height: an end as low as this stands on the ground
_STANDING = 4.0  # cost of a pair that stands on the ground and is no leg …
_LEG, _TOE = 0.04, 0.3  # … if it is this long, measured by the longest way and by the legs there are
_STUB, _SLIM = 8.0, 1.1  # legs are longer than so many radii of the body at its thickest; a block's corners are not
_FOOT, _FOOT_GIVE, _FOOT_MOST = 0.2, 0.2, 3.4  # of a leg: how far its tip usually lies ahead of the shin, the spread, and the most that counts


@dataclass(frozen=True)
class End:
    """A candidate for a limb: one peak in the middle, a pair of peaks, or a pair taken for one limb in the middle."""

    left: int
    right: int | None
    middle: bool

    @property
    def peaks(self) -> tuple[int, ...]:
        return (self.left,) if self.right is None else (self.left, self.right)


@dataclass(frozen=True, kw_only=True, eq=False)
class Limb:
    """A limb of a template found in a body; pairs are folded onto the left side."""

    kind: LimbKind
    peaks: tuple[int, ...]  # the left one first
    level: float  # of the pass at which it parts
    start: Float[np.ndarray, "3"]  # where it parts
    tip: Float[np.ndarray, "3"]
    length: float
    reasons: tuple[tuple[str, float], ...]  # costs that depend on nothing else


class Weighing:
    """One template beside one body."""

    def __init__(self, template: Template, land: Landscape, facing: int) -> None:
        self.template, self.land, self.facing = template, land, facing
        heights = land.volume.points[:, 1]
        self.low, self.height, self.longest = float(heights.min()), float(np.ptp(heights)), float(land.distance.max())
        self.thick = float(land.volume.depth.max())
        self.passes = land.passes.tolist()
        self.least = 2.5 * land.volume.cell  # shorter limbs are none
        self.always = [("rare", template.prior)]
        if template.slender is not None:
            self.always.append(("slender", (math.log(slenderness(land) / template.slender[0]) / template.slender[1]) ** 2))
        self._kept: dict[tuple[str, End, float], Limb] = {}

    def limbs(self, chosen: Mapping[str, End]) -> dict[str, Limb] | None:
        """The limbs at these ends, each up to where it meets the next; None if one of them has no length left."""
        limbs = {}
        for name, end in chosen.items():
            others = [peak for other, e in chosen.items() if other != name for peak in e.peaks]
            level = self._level(end, others)
            if level is None:
                return None
            key = (name, end, level)
            if key not in self._kept:
                self._kept[key] = self._limb(self.template.limb(name), end, level)
            limbs[name] = self._kept[key]
        return limbs

    def cost(self, limbs: Mapping[str, Limb], limit: float) -> float:
        """The sum of all reasons, or infinity as soon as it is above the limit."""
        cost = 0.0
        for _, value in self.reasons(limbs):
            cost += value
            if cost >= limit:
                return math.inf
        return cost

    def reasons(self, limbs: Mapping[str, Limb]) -> Iterator[tuple[str, float]]:
        yield from self.always
        for kind in self.template.limbs:
            if kind.name in limbs:
                yield from limbs[kind.name].reasons
            else:
                yield f"no {kind.name}", kind.absent
        yield from self._together(limbs)
        yield from self._unexplained(limbs)

    def _level(self, end: End, others: list[int]) -> float | None:
        """How high the pass lies at which an end parts from all others that are limbs; None if there is nothing left above it."""
        level = max((self.passes[i][other] for i in end.peaks for other in others), default=0.0)
        if end.right is not None:
            parted = self.passes[end.left][end.right]
            if end.middle and parted < level + self.least:
                return None  # the two are no one limb
            level = level if end.middle else max(level, parted)
        level += 0.01 * self.land.volume.cell  # past the rounding of the pass itself
        return level if self._far(end) - level >= self.least else None

    def _far(self, end: End) -> float:
        return sum(self.land.peaks[i].height for i in end.peaks) / len(end.peaks)

    def _limb(self, kind: LimbKind, end: End, level: float) -> Limb:
        land = self.land
        starts, tips = [land.peaks[i].at(level) for i in end.peaks], [land.peaks[i].tip for i in end.peaks]
        if end.right is not None:
            starts[1], tips[1] = (point * (-1, 1, 1) + (2 * land.x, 0, 0) for point in (starts[1], tips[1]))
        start, tip = np.mean(starts, axis=0), np.mean(tips, axis=0)
        if end.middle and land.symmetric:
            start[0] = tip[0] = land.x
        bare = Limb(kind=kind, peaks=end.peaks, level=level, start=start, tip=tip, length=self._far(end) - level, reasons=())
        return Limb(**{**bare.__dict__, "reasons": tuple(self._alone(bare))})

    def _alone(self, limb: Limb) -> Iterator[tuple[str, float]]:
        """What a limb costs whatever the others are."""
        kind, above = limb.kind, float(limb.tip[1] - self.low) / self.height
        if kind.direction is not None:
            yield f"{kind.name} points", (self._angle(limb.start, limb.tip, kind.direction) / kind.spread) ** 2
        if kind.stands:
            yield f"{kind.name} stands", (above / _GROUND) ** 2
            yield f"{kind.name} is a stub", _STUB * max(_SLIM - limb.length / self.thick, 0.0) ** 2
        if kind.toes:
            shin = np.mean([self.land.peaks[i].at(limb.level + 0.6 * limb.length) for i in limb.peaks], axis=0)
            ahead = self.facing * float(limb.tip[2] - shin[2]) / limb.length
            yield f"{kind.name} toes", min(((ahead - _FOOT) / _FOOT_GIVE) ** 2, _FOOT_MOST)
        if kind.height is not None:
            yield f"{kind.name} height", ((above - kind.height[0]) / kind.height[1]) ** 2

    def _together(self, limbs: Mapping[str, Limb]) -> Iterator[tuple[str, float]]:
        """Where limbs grow and how long they are, beside each other."""
        mean = math.exp(sum(math.log(limb.length) for limb in limbs.values()) / max(len(limbs), 1))
        for kind in self.template.limbs:
            limb = limbs.get(kind.name)
            if limb is None:
                continue
            if kind.reach is not None:
                yield f"{kind.name} reach", (math.log(limb.length / mean / kind.reach[0]) / kind.reach[1]) ** 2
            if kind.grows is not None and kind.grows[0] in limbs:
                yield f"{kind.name} grows", (self._angle(limbs[kind.grows[0]].start, limb.start, kind.grows[1:], level_x=False) / kind.grows_spread) ** 2

    def _unexplained(self, limbs: Mapping[str, Limb]) -> Iterator[tuple[str, float]]:
        used = [peak for limb in limbs.values() for peak in limb.peaks]
        leg = max((limb.length for limb in limbs.values() if limb.kind.stands), default=0.0)
        for i, peak in enumerate(self.land.peaks):
            if i in used:
                continue
            row = self.passes[i]
            rest = peak.height - max((row[other] for other in used), default=0.0)
            share = 0.5 if peak.twin != i else 1.0  # a pair counts once
            yield f"end {i} unexplained", share * (rest / self.longest / _UNEXPLAINED) ** 2
            if peak.twin != i and peak.tip[1] - self.low < _TOUCH * self.height and rest > max(_LEG * self.longest, _TOE * leg):
                yield f"end {i} stands", _STANDING / 2

    def _angle(self, start: Float[np.ndarray, "3"], end: Float[np.ndarray, "3"], expected: tuple[float, ...], level_x: bool = True) -> float:
        """Between the way from start to end and what is expected of a body that looks along +z [degrees]."""
        (ax, ay, az), (bx, by, bz), (ex, ey, ez) = start.tolist(), end.tolist(), expected
        vx, vy, vz = self.facing * (bx - ax) if level_x else 0.0, by - ay, self.facing * (bz - az)
        length = math.sqrt((vx * vx + vy * vy + vz * vz) * (ex * ex + ey * ey + ez * ez))
        return math.degrees(math.acos(max(-1.0, min(1.0, (vx * ex + vy * ey + vz * ez) / max(length, 1e-30)))))
