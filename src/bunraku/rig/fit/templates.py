"""Templates: what kinds of bodies there are, as data in `templates/NAME.json`.

A template names the limbs that a body of its kind has, where each points and where it grows, and the joints as shares of the way along a limb
(0 where it parts from the body, 1 at its tip) or along the trunk (0 between the hind limbs, 1 where the
head begins, or beside the front legs of bodies that lie).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from bunraku.errors import BadValue


@dataclass(frozen=True, kw_only=True)
class LimbKind:
    """A limb, or a pair of them. Directions are (aside, up, ahead) for the left one; angles in degrees."""

    name: str
    pair: bool
    needed: bool = True
    direction: tuple[float, float, float] | None = None  # from where it parts to its tip
    spread: float = 40.0  # how far off that may be
    grows: tuple[str, float, float, float] | None = None  # from where another limb parts, in which direction this one parts
    grows_spread: float = 35.0
    stands: bool = False  # its tip is on the ground
    toes: bool = False  # its tip lies ahead of the rest
    height: tuple[float, float] | None = None  # of its tip as a share of the body's: usual, spread
    reach: tuple[float, float] | None = None  # length in units of all limbs' mean length: usual, spread (of its logarithm)
    behind: str | None = None  # its tip lies behind that limb's
    absent: float = 1.0  # cost of doing without


@dataclass(frozen=True, kw_only=True)
class JointKind:
    """`at` runs along the limb or the trunk; pairs carry `{side}` in their names. Joints of a limb are listed from the body outwards."""

    name: str
    parent: str | None
    on: str  # a limb, or "trunk"
    at: float
    give: float = 0.0  # how far from there the joint may move to follow the limb's bends
    between: int = 0  # `at` is a share of the way from the joint before to the one that many after
    inside: float = 0.0  # so many radii of the limb further into the body
    up: float = 0.0  # on the trunk: so many of its radii above its centreline
    ahead: float = 0.0  # `between` without `give`: a straight share of the way, moved ahead by this share of it
    # beside the trunk, as far aside as the limb: (where on it, radii above its centreline, 0 as far ahead as the limb … 1 as the trunk there)
    body: tuple[float, float, float] | None = None
    trunk: tuple[float, float] | None = None  # (where on the trunk, share of the way from there to the limb)
    lift: float | None = None  # on a leg, instead of `at`: where it is so high above the ground, as a share of the trunk's height
    nose: float | None = None  # on a head: where it is so far behind its foremost point, by the same measure; those before it follow
    role: str | None = None


@dataclass(frozen=True, kw_only=True)
class Template:
    name: str
    title: str
    limbs: tuple[LimbKind, ...]
    joints: tuple[JointKind, ...]
    trunk: tuple[tuple[str, ...], tuple[str, ...]]  # the limbs at which the trunk begins and ends: the first of each that is there
    beside: str | None = None  # of bodies that lie: the limbs beside which shares of the trunk are 1; without, they are 1 at its end
    some: tuple[str, ...] = ()  # limbs of which at least one must be there
    prior: float = 0.0  # cost of being rarer than others
    slender: tuple[float, float] | None = None  # usual slenderness of the body, and its spread (of the logarithm)

    def limb(self, name: str) -> LimbKind:
        return next(limb for limb in self.limbs if limb.name == name)


@cache
def templates() -> Mapping[str, Template]:
    """All templates by name."""
    folder = resources.files("bunraku.rig.fit").joinpath("templates")
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".json")), key=lambda entry: entry.name)
    found = [_read(json.loads(entry.read_text(encoding="utf-8"))) for entry in files]
    return {template.name: template for template in found}


def template_named(name: str) -> Template:
    known = templates()
    if name not in known:
        raise BadValue(f"there is no template '{name}'; choose one of {', '.join(known)}, or give none and the best is found.")
    return known[name]


def _read(data: dict) -> Template:
    limbs = tuple(LimbKind(**_with_tuples(limb)) for limb in data["limbs"])
    slender = data.get("slender")
    return Template(
        name=data["name"],
        title=data["title"],
        limbs=limbs,
        joints=tuple(JointKind(**_with_tuples(joint)) for joint in data["joints"]),
        trunk=(tuple(data["trunk"][0]), tuple(data["trunk"][1])),
        beside=data.get("beside"),
        some=tuple(data.get("some", ())),
        prior=data.get("prior", 0.0),
        slender=tuple(slender) if slender else None,
    )


def _with_tuples(data: dict) -> dict:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
