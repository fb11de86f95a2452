"""Which end of a body is which limb of a template: all plausible assignments are tried, the one that costs least is kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations, product

from bunraku.rig.fit.branches import Landscape
from bunraku.rig.fit.cost import End, Limb, Weighing
from bunraku.rig.fit.templates import LimbKind, Template

_MOST_PAIRS, _MOST_MIDDLES = 7, 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Embedding:
    template: Template
    limbs: Mapping[str, Limb]
    facing: int  # +1: the body looks along +z, −1: along −z
    cost: float
    reasons: tuple[tuple[str, float], ...]  # what it is made of


def embed(template: Template, land: Landscape, facing: int = 1) -> Embedding | None:
    """The best assignment, or None if the body does not have enough ends. `facing` −1 takes the body to look along −z."""
    weighing = Weighing(template, land, facing)
    best, least = None, math.inf
    for chosen in _choices(template, land, facing):
        limbs = weighing.limbs(chosen)
        if limbs is None:
            continue
        cost = weighing.cost(limbs, least)
        if cost < least:
            best, least = limbs, cost
    if best is None:
        return None
    return Embedding(template=template, limbs=best, facing=facing, cost=least, reasons=tuple(weighing.reasons(best)))


def _ends(land: Landscape, facing: int) -> tuple[list[End], list[End]]:
    """Candidates for pairs and for limbs in the middle. Two ears may be one head; without a mirror plane every end may be in the middle."""
    pairs, middles = [], []
    for i, peak in enumerate(land.peaks):
        if peak.twin == i or not land.symmetric:
            middles.append(End(i, None, True))
        if peak.twin != i and facing * (peak.tip[0] - land.peaks[peak.twin].tip[0]) > 0:
            pairs.append(End(i, peak.twin, False))
            if land.symmetric:
                middles.append(End(i, peak.twin, True))
    return pairs[:_MOST_PAIRS], middles[:_MOST_MIDDLES]


def _choices(template: Template, land: Landscape, facing: int) -> Iterator[dict[str, End]]:
    pairs, middles = _ends(land, facing)
    paired = [limb for limb in template.limbs if limb.pair]
    single = [limb for limb in template.limbs if not limb.pair]
    ordered = [chosen for chosen in _assignments(paired, pairs) if _in_order(paired, chosen, land, facing)]
    for some, others in product(ordered, list(_assignments(single, middles))):
        if template.some and set(template.some).isdisjoint(some.keys() | others.keys()):
            continue
        taken = {end.left for end in some.values()}
        if taken.isdisjoint(end.left for end in others.values()):
            yield {**some, **others}


def _in_order(kinds: list[LimbKind], chosen: Mapping[str, End], land: Landscape, facing: int) -> bool:
    """Whether limbs that go one behind the other do."""

    def ahead(name: str) -> float:
        return facing * float(land.peaks[chosen[name].left].tip[2])

    return all(ahead(kind.name) < ahead(kind.behind) for kind in kinds if kind.behind and kind.behind in chosen and kind.name in chosen)


def _assignments(kinds: list[LimbKind], ends: list[End]) -> Iterator[dict[str, End]]:
    """Every way to give kinds of limbs different ends; optional ones may go without."""
    optional = [kind.name for kind in kinds if not kind.needed]
    for leave in product((False, True), repeat=len(optional)):
        without = {name for name, out in zip(optional, leave, strict=True) if out}
        present = [kind.name for kind in kinds if kind.name not in without]
        for order in permutations(ends, len(present)):
            yield dict(zip(present, order, strict=True))
