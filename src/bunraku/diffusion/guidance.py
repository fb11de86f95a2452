"""Classifier-free guidance: a weighted sum of guesses, each made with some of the conditions in force.

    none        D(text, constraints)
    joint       D(–) + w (D(text, constraints) − D(–))
    separated   D(–) + w_text (D(text) − D(–)) + w_constraint (D(constraints) − D(–))

Where a condition is absent anyway, branches that differ only in it are one branch with the sum of their weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Guidance:
    """How strongly a run follows what it is asked for. The defaults are the released ones."""

    kind: Literal["none", "joint", "separated"] = "separated"
    text: float = 2.0  # joint: the one weight
    constraint: float = 2.0


@dataclass(frozen=True, kw_only=True)
class Branch:
    """One evaluation of the denoiser: what it is told, and the weight of what it says."""

    text: bool
    constraints: bool
    weight: float


def branches(guidance: Guidance, *, has_text: bool, has_constraints: bool) -> tuple[Branch, ...]:
    """The evaluations that one step needs; their weights sum to 1."""
    if guidance.kind == "none":
        wanted = [(True, True, 1.0)]
    elif guidance.kind == "joint":
        wanted = [(False, False, 1 - guidance.text), (True, True, guidance.text)]
    else:
        wanted = [(False, False, 1 - guidance.text - guidance.constraint), (True, False, guidance.text), (False, True, guidance.constraint)]
    merged: dict[tuple[bool, bool], float] = {}
    for text, constraints, weight in wanted:
        key = (text and has_text, constraints and has_constraints)
        merged[key] = merged.get(key, 0.0) + weight
    kept = {key: weight for key, weight in merged.items() if weight != 0.0}
    return tuple(Branch(text=text, constraints=constraints, weight=weight) for (text, constraints), weight in kept.items())
