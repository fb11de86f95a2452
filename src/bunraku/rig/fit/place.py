"""Where the joints of a template go in a body whose limbs are known: along centrelines, by shares of their length and by where they bend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from jaxtyping import Float

from bunraku.kinematics.skeleton import SIDES
from bunraku.rig.fit.branches import Landscape
from bunraku.rig.fit.embed import Embedding
from bunraku.rig.fit.lines import ROOT, Line, Trunk, limb_lines, trunk_line
from bunraku.rig.fit.templates import JointKind

_BENDING, _GRID = 0.25, 49  # weight of bones that leave the line · points of the line that are looked at
_FINE = 201  # points of a line among which one at a given height is looked for


def joint_places(land: Landscape, embedding: Embedding) -> dict[str, Float[np.ndarray, "3"]]:
    """Every joint of the template whose limb is there, by name; pairs as left_… and right_…."""
    lines = {name: limb_lines(land, limb) for name, limb in embedding.limbs.items()}
    trunk = trunk_line(land, embedding, lines)
    joints = embedding.template.joints
    found = {joint.name: trunk.beside(joint.at, joint.up) for joint in joints if joint.on == "trunk"}
    for name in embedding.limbs:
        kinds = [joint for joint in joints if joint.on == name]
        stature = _Stature.of(land, embedding, trunk, name)
        for line, side in zip(lines[name], SIDES, strict=False):
            shares = _measured(line, kinds, stature)
            for joint, place in zip(kinds, _along(line, trunk, kinds, shares, embedding.facing), strict=True):
                found[joint.name.replace("{side}", side)] = place
    return found


@dataclass(frozen=True, kw_only=True)
class _Stature:
    """What joints are measured by that have their place in the world, whatever of the limb hangs free."""

    ground: float
    height: float  # of the trunk's centreline above it
    facing: int
    nose: float  # how far ahead this limb reaches

    @staticmethod
    def of(land: Landscape, embedding: Embedding, trunk: Trunk, name: str) -> _Stature:
        limb, facing, points = embedding.limbs[name], embedding.facing, land.volume.points
        ground = float(points[:, 1].min()) - land.volume.cell / 2
        nose = max(float((facing * points[land.branch(peak, limb.level).rows, 2]).max()) for peak in limb.peaks)
        return _Stature(ground=ground, height=float(trunk.points[trunk.along <= 1, 1].mean()) - ground, facing=facing, nose=nose)


def _measured(line: Line, kinds: list[JointKind], stature: _Stature) -> dict[str, float]:
    """Shares of the joints along a limb: those that are measured from the ground or the nose, and the others."""
    shares = _by_shares(line, kinds)
    grid = np.linspace(0.0, 1.0, _FINE)
    points = np.array([line.at(share) for share in grid])
    names = list(shares)
    for joint in kinds:
        if joint.lift is not None:
            low = points[:, 1] <= stature.ground + joint.lift * stature.height
            shares[joint.name] = float(grid[low.argmax()]) if low.any() else 1.0
            for after in names[names.index(joint.name) + 1 :]:
                shares[after] = max(shares[after], (shares[joint.name] + 1) / 2)
        if joint.nose is not None:
            ahead = stature.facing * points[:, 2]
            behind = np.flatnonzero((ahead <= stature.nose - joint.nose * stature.height) & (grid <= grid[ahead.argmax()]))
            share = max(float(grid[behind[-1]]) if len(behind) else 0.0, ROOT)
            for before in names[: names.index(joint.name)]:
                shares[before] *= share / shares[joint.name]
            shares[joint.name] = share
    return shares


def _straight(joint: JointKind) -> bool:
    return joint.between > 0 and not joint.give


def _by_shares(line: Line, kinds: list[JointKind]) -> dict[str, float]:
    free = [joint for joint in kinds if not (_straight(joint) or joint.trunk or joint.body)]
    return {joint.name: share for joint, share in zip(free, _shares(line, free), strict=True)}


def _along(line: Line, trunk: Trunk, kinds: list[JointKind], shares: Mapping[str, float], facing: int) -> list[Float[np.ndarray, "3"]]:
    """The joints of one limb, from the body outwards."""
    places = []
    for joint in kinds:
        place = line.at(shares.get(joint.name, 0.0))
        if joint.trunk is not None:
            base = trunk.beside(joint.trunk[0])
            place = base + joint.trunk[1] * (place - base)
        if joint.body is not None:
            at, up, mix = joint.body
            base = trunk.beside(at, up)
            place = np.array([place[0], base[1], place[2] + mix * (base[2] - place[2])])
        places.append(place)
    for i in np.flatnonzero([_straight(joint) for joint in kinds]):
        way = places[i + kinds[i].between] - places[i - 1]
        places[i] = places[i - 1] + kinds[i].at * way + (0.0, 0.0, facing * kinds[i].ahead * float(np.linalg.norm(way)))
    return places


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
