"""Limits on metrics and whether a report keeps them: `skate>5,penetration_max>20` says what fails a clip."""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from bunraku.errors import BadValue

COMPARISONS: dict[str, Callable[[float, float], bool]] = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
WORDS = {">": "above", ">=": "at least", "<": "below", "<=": "at most"}


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A clip fails where `metric comparison value` holds."""

    metric: str
    comparison: str  # one of COMPARISONS
    value: float  # in the metric's unit

    def __str__(self) -> str:
        return f"{self.metric}{self.comparison}{self.value:g}"

    def failed_by(self, value: float) -> bool:
        return COMPARISONS[self.comparison](value, self.value)


def parse_limits(text: str, known: Collection[str]) -> list[Limit]:
    """Reads limits separated by commas; `known` are the names a limit may use."""
    limits = [_parse_limit(part.strip(), known) for part in text.split(",") if part.strip()]
    if not limits:
        raise BadValue(f"no limit in '{text}'; write METRIC>NUMBER, such as skate>5, several with commas between.")
    return limits


def _parse_limit(text: str, known: Collection[str]) -> Limit:
    match = re.fullmatch(r"([a-z_0-9]+)\s*(>=|<=|>|<)\s*(\S+)", text)
    value = _number(match[3]) if match else None
    if match is None or value is None:
        raise BadValue(f"'{text}' is not a limit; write METRIC>NUMBER or METRIC<NUMBER, such as skate>5.")
    if match[1] not in known:
        near = difflib.get_close_matches(match[1], known, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise BadValue(f"there is no metric '{match[1]}'; {hint}The metrics are {', '.join(known)}.")
    return Limit(metric=match[1], comparison=match[2], value=value)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
