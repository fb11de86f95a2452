"""Constraints that ask for two things at once: another place, turn, heading or contact of the same thing in the same frame."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.math.rotations import quat_distance
from bunraku.timeline.claims import ABOUT, Claim

SAME_PLACE = 1e-3  # [m]
SAME_TURN = math.radians(0.1)
_SAID = {"place": "different places of", "turn": "different turns of", "angle": "different angles of", "contacts": "opposites of"}


def conflicts(claims: Sequence[Claim]) -> list[str]:
    """A sentence for every two constraints and thing that disagree, at the frame where they do most."""
    groups: dict[tuple[str, str], list[Claim]] = {}
    for claim in claims:
        if claim.thing != ABOUT:
            groups.setdefault((claim.thing, claim.kind), []).append(claim)
    return [sentence for group in groups.values() if len(group) > 1 for sentence in _disagreements(group)]


def _disagreements(group: Sequence[Claim]) -> list[str]:
    """Each row is held against the first in the list that speaks of its frame: the one that would win."""
    frames, values = torch.cat([claim.frames for claim in group]), torch.cat([claim.values for claim in group])
    speaker = torch.cat([torch.full((len(claim.frames),), i) for i, claim in enumerate(group)])
    order = torch.argsort(frames, stable=True)
    starts = torch.cat([torch.ones(1, dtype=torch.bool), frames[order][1:] != frames[order][:-1]])
    first = order[starts.nonzero()[:, 0][starts.cumsum(0) - 1]]
    apart = difference(group[0].kind, values[first], values[order])
    limit = SAME_PLACE if group[0].kind == "place" else SAME_TURN
    wrong = ((apart > limit) & (speaker[first] != speaker[order])).nonzero()[:, 0]
    worst: dict[tuple[int, int], int] = {}
    for row in wrong.tolist():
        pair = (int(speaker[first[row]]), int(speaker[order[row]]))
        if pair not in worst or apart[row] > apart[worst[pair]]:
            worst[pair] = row
    return [_sentence(group[a], group[b], int(frames[order[row]]), float(apart[row])) for (a, b), row in worst.items()]


def difference(kind: str, a: Float[Tensor, "K N D"], b: Float[Tensor, "K N D"]) -> Float[Tensor, " K"]:
    """How far apart two rows are, [m] or [rad]; of several joints, the one that is furthest."""
    if kind == "turn":
        apart = quat_distance(a, b)
    elif kind == "angle":
        apart = wrapped(a - b).abs()[..., 0]
    else:
        apart = (a - b).norm(dim=-1)
    return apart.amax(dim=-1)


def wrapped(angle: Tensor) -> Tensor:
    """The same turn [rad] within −π … π."""
    return torch.remainder(angle + math.pi, 2 * math.pi) - math.pi


def _sentence(winner: Claim, loser: Claim, frame: int, apart: float) -> str:
    who = f"{winner.source} and {loser.source} ask for {_SAID[winner.kind]} {winner.thing} at frame {frame}"
    if winner.kind == "contacts":
        return f"{who}; remove one of them there."
    much = f"{apart:.3f} m apart" if winner.kind == "place" else f"{math.degrees(apart):.2f}° apart"
    return f"{who}, {much}; remove one of them there, or let them agree."
