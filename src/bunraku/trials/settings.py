"""What an evaluation does: which suites and families, how many cases of each, from which seed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

from bunraku.datasets.clip import SPLITS, Split
from bunraku.errors import BadValue
from bunraku.trials.families import FAMILIES

Suite = Literal["text", "constraints", "behaviours"]
SUITES: tuple[Suite, ...] = get_args(Suite)


@dataclass(frozen=True, kw_only=True)
class TrialSettings:
    """The defaults are quick: with a model that draws a clip in a second, a quarter of an hour."""

    suites: tuple[str, ...] = SUITES  # suites, and families of constraints by name ("root/path_2dpos", or "root" for all of them)
    split: Split = "test"
    text_cases: int | None = 128  # None: every described stretch of the split
    cases: int = 4  # of each family of constraints, each once with text and once without
    seeds: int = 16  # of each behaviour
    seed: int = 0  # everything that is drawn by chance follows from it
    perturbed: float = 0.25  # share of the constrained cases that are turned and moved
    turn: float = math.radians(45)  # [rad] by at most so much
    shift: float = 0.5  # [m]
    text_seconds: tuple[float, float] = (1.0, 10.0)
    constraint_seconds: tuple[float, float] = (3.0, 9.0)
    behaviour_seconds: float = 5.0
    sheets: int = 16  # contact sheets of text cases in the report
    families: tuple[str, ...] = field(init=False, default=())  # of constraints; worked out from `suites`

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise BadValue(f"there is no split '{self.split}'; choose {', '.join(SPLITS)}.")
        for name, least in (("cases", 1), ("seeds", 1), ("text_cases", 2), ("sheets", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise BadValue(f"{name} is {value}; at least {least} is needed.")
        object.__setattr__(self, "families", _families(self.suites))

    def wants(self, suite: Suite) -> bool:
        return suite in self.suites or (suite == "constraints" and bool(self.families))


def _families(suites: tuple[str, ...]) -> tuple[str, ...]:
    """The families that names of suites, of families or of groups of families stand for, in the order of `FAMILIES`."""
    if not suites:
        raise BadValue(f"there is nothing to evaluate; name some of {', '.join(SUITES)}, or families of constraints.")
    chosen: set[str] = set()
    for name in suites:
        found = {family for family in FAMILIES if family == name or family.startswith(f"{name}/") or name == "constraints"}
        if not found and name not in SUITES:
            raise BadValue(f"there is no suite or family '{name}'; choose {', '.join(SUITES)}, or of the constraints {', '.join(FAMILIES)}.")
        chosen |= found
    return tuple(family for family in FAMILIES if family in chosen)
