"""Which end of a body is which limb of a template: all plausible assignments are tried, the one that fits best is kept.

The cost of an assignment adds squared deviations, each in units of what is usual: where limbs point, where they grow, how long they are,
whether legs stand on the ground; and what the template leaves unexplained: ends of the body that are no limb, limbs without an end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from jaxtyping import Float

from bunraku.rig.fit.branches import Landscape
from bunraku.rig.fit.templates import LimbKind, Template

_MOST_PAIRS, _MOST_MIDDLES = 7, 6
_UNEXPLAINED = 0.16  # of the longest way: an end this long that is no limb costs 1
_GROUND = 0.07  # of the height
_MEET = 0.5  # of their height: two ends whose pass is lower are ends of one way through the body
_TOUCH = 0.035  # of the height: an end as low as this stands on the ground
_STANDING = 4.0  # cost of a pair that stands on the ground and is no leg …
_LEG, _TOE = 0.04, 0.3  # … if it is this long, measured by the longest way and by the legs there are
_FOOT, _FOOT_GIVE, _FOOT_MOST = 0.2, 0.2, 3.4  # of a leg: how far its tip usually lies ahead of the shin, the spread, and the most that counts


@dataclass(frozen=True, kw_only=True, eq=False)
class Limb:
    """A limb of a template found in a body: one peak, a pair of them, or a pair taken for one limb in the middle."""

    kind: LimbKind
    peaks: tuple[int, ...]  # the left one first
    level: float  # of the pass at which it parts
    start: Float[np.ndarray, "3"]  # where it parts, both folded onto the left side
    tip: Float[np.ndarray, "3"]
    length: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Embedding:
    template: Template
    limbs: Mapping[str, Limb]
    facing: int  # +1: the body looks along +z, −1: along −z
    cost: float
    reasons: tuple[tuple[str, float], ...]  # what it is made of


@dataclass(frozen=True)
class _End:
    """A candidate for a limb: one peak in the middle, a pair of peaks, or a pair taken for one limb in the middle."""

    left: int
    right: int | None
    middle: bool

    @property
    def peaks(self) -> tuple[int, ...]:
        return (self.left,) if self.right is None else (self.left, self.right)


def embed(template: Template, land: Landscape, facing: int = 1) -> Embedding | None:
    """The best assignment, or None if the body does not have enough ends. `facing` −1 takes the body to look along −z."""
    pairs, middles = _ends(land, facing)
    best: Embedding | None = None
    for chosen in _choices(template, land, facing, pairs, middles):
        taken = [peak for end in chosen.values() for peak in end.peaks]
        if len(set(taken)) < len(taken):
            continue
        found = _weigh(template, land, chosen, facing, best.cost if best else np.inf)
        if found is not None and (best is None or found.cost < best.cost):
            best = found
    return best


def _ends(land: Landscape, facing: int) -> tuple[list[_End], list[_End]]:
    pairs, middles = [], []
    for i, peak in enumerate(land.peaks):
        if peak.twin == i or not land.symmetric:
            middles.append(_End(i, None, True))
        if peak.twin != i and facing * (peak.tip[0] - land.peaks[peak.twin].tip[0]) > 0:
            pairs.append(_End(i, peak.twin, False))
            if land.symmetric:
                middles.append(_End(i, peak.twin, True))
    return pairs[:_MOST_PAIRS], middles[: _MOST_MIDDLES + 2]


def _choices(template: Template, land: Landscape, facing: int, pairs: list[_End], middles: list[_End]) -> Iterator[dict[str, _End]]:
    paired = [limb for limb in template.limbs if limb.pair]
    single = [limb for limb in template.limbs if not limb.pair]
    ordered = [chosen for chosen in _assignments(paired, pairs) if _in_order(paired, chosen, land, facing)]
    for some, others in product(ordered, _assignments(single, middles)):
        if not template.some or not set(template.some).isdisjoint(some.keys() | others.keys()):
            yield {**some, **others}


def _in_order(kinds: list[LimbKind], chosen: dict[str, _End], land: Landscape, facing: int) -> bool:
    """Whether limbs that go one behind the other do."""

    def ahead(name: str) -> float:
        return facing * float(land.peaks[chosen[name].left].tip[2])

    return all(ahead(kind.name) < ahead(kind.behind) for kind in kinds if kind.behind in chosen and kind.name in chosen)


def _assignments(kinds: list[LimbKind], ends: list[_End]) -> Iterator[dict[str, _End]]:
    """Every way to give kinds of limbs different ends; optional ones may go without."""
    optional = [kind.name for kind in kinds if not kind.needed]
    for leave in product((False, True), repeat=len(optional)):
        without = {name for name, out in zip(optional, leave, strict=True) if out}
        present = [kind.name for kind in kinds if kind.name not in without]
        for order in permutations(range(len(ends)), len(present)):
            yield {name: ends[i] for name, i in zip(present, order, strict=True)}


def _weigh(template: Template, land: Landscape, chosen: dict[str, _End], facing: int, limit: float) -> Embedding | None:
    limbs: dict[str, Limb] = {}
    for name, end in chosen.items():
        limb = _limb(template.limb(name), land, end, [peak for other, e in chosen.items() if other != name for peak in e.peaks])
        if limb is None:
            return None
        limbs[name] = limb
    reasons = []
    for reason in _reasons(template, land, limbs, facing):
        reasons.append(reason)
        limit -= reason[1]
        if limit < 0:
            return None
    return Embedding(template=template, limbs=limbs, facing=facing, cost=sum(value for _, value in reasons), reasons=tuple(reasons))


def _limb(kind: LimbKind, land: Landscape, end: _End, others: list[int]) -> Limb | None:
    """The limb at an end when all `others` are limbs too; None if there is nothing left of it."""
    least = 2.5 * land.volume.cell
    level = max((float(land.passes[i, other]) for i in end.peaks for other in others), default=0.0)
    if end.right is not None:
        parted = float(land.passes[end.left, end.right])
        if end.middle and parted < level + least:
            return None  # the two are no one limb
        level = level if end.middle else max(level, parted)
    level += 0.01 * land.volume.cell  # past the rounding of the pass itself
    height = float(np.mean([land.peaks[i].height for i in end.peaks]))
    if height - level < least:
        return None
    fold = np.array([-1.0, 1.0, 1.0]), np.array([2 * land.x, 0.0, 0.0])
    starts = [land.peaks[i].at(level) for i in end.peaks]
    tips = [land.peaks[i].tip for i in end.peaks]
    if end.right is not None:
        starts[1], tips[1] = starts[1] * fold[0] + fold[1], tips[1] * fold[0] + fold[1]
    start, tip = np.mean(starts, axis=0), np.mean(tips, axis=0)
    if end.middle and land.symmetric:
        start[0] = tip[0] = land.x
    return Limb(kind=kind, peaks=end.peaks, level=level, start=start, tip=tip, length=height - level)


def _reasons(template: Template, land: Landscape, limbs: Mapping[str, Limb], facing: int) -> Iterator[tuple[str, float]]:
    points = land.volume.points
    low, height = float(points[:, 1].min()), float(np.ptp(points[:, 1]))
    mean = float(np.exp(np.mean([np.log(limb.length) for limb in limbs.values()]))) if limbs else 1.0
    turn = np.array([facing, 1.0, facing])
    used = {peak for limb in limbs.values() for peak in limb.peaks}
    for kind in template.limbs:
        if kind.name not in limbs:
            yield f"no {kind.name}", kind.absent
            continue
        limb = limbs[kind.name]
        if kind.direction is not None:
            yield f"{kind.name} points", (_angle((limb.tip - limb.start) * turn, kind.direction) / kind.spread) ** 2
        if kind.grows is not None and kind.grows[0] in limbs:
            from_there = (limb.start - limbs[kind.grows[0]].start) * turn * (0, 1, 1)
            yield f"{kind.name} grows", (_angle(from_there, kind.grows[1:]) / kind.grows_spread) ** 2
        if kind.stands:
            yield f"{kind.name} stands", ((limb.tip[1] - low) / height / _GROUND) ** 2
        if kind.toes:
            yield f"{kind.name} toes", min(((_toes(land, limb) * facing - _FOOT) / _FOOT_GIVE) ** 2, _FOOT_MOST)
        if kind.height is not None:
            yield f"{kind.name} height", (((limb.tip[1] - low) / height - kind.height[0]) / kind.height[1]) ** 2
        if kind.reach is not None:
            yield f"{kind.name} reach", float(np.log(limb.length / mean / kind.reach[0]) / kind.reach[1]) ** 2
    longest = float(land.distance.max())
    mean_leg = max((limb.length for limb in limbs.values() if limb.kind.stands), default=0.0)
    for i, peak in enumerate(land.peaks):
        if i not in used:
            rest = peak.height - max((float(land.passes[i, other]) for other in used), default=0.0)
            share = 0.5 if peak.twin != i else 1.0  # a pair counts once
            yield f"end {i} unexplained", share * (rest / longest / _UNEXPLAINED) ** 2
            if peak.twin != i and peak.tip[1] - low < _TOUCH * height and rest > max(_LEG * longest, _TOE * mean_leg):
                yield f"end {i} stands", _STANDING / 2
    yield "rare", template.prior
    if template.slender is not None:
        yield "slender", float(np.log(slenderness(land) / template.slender[0]) / template.slender[1]) ** 2


def _toes(land: Landscape, limb: Limb) -> float:
    """How far the tip lies ahead (+z) of the shin, as a share of the leg."""
    shin = [land.peaks[i].at(limb.level + 0.6 * limb.length) for i in limb.peaks]
    return float(limb.tip[2] - np.mean(shin, axis=0)[2]) / limb.length


def slenderness(land: Landscape) -> float:
    """The longest way through the body over its thickness, times how much longer than straight that way is, squared: winding counts double."""
    ends = [(i, j) for i in range(len(land.peaks)) for j in range(i) if land.passes[i, j] < _MEET * min(land.peaks[i].height, land.peaks[j].height)]
    ways = [(land.peaks[i].height + land.peaks[j].height, float(np.linalg.norm(land.peaks[i].tip - land.peaks[j].tip))) for i, j in ends]
    longest, straight = max(ways, default=(float(land.distance.max()), float(land.distance.max())))
    volume = len(land.volume.points) * land.volume.cell**3
    return longest / float(np.sqrt(volume / longest)) * (longest / max(straight, 0.2 * longest)) ** 2


def _angle(v: Float[np.ndarray, "3"], expected: tuple[float, ...]) -> float:
    a, b = v / max(float(np.linalg.norm(v)), 1e-12), np.array(expected) / np.linalg.norm(expected)
    return float(np.degrees(np.arccos(np.clip(a @ b, -1, 1))))
