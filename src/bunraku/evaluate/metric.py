"""A metric is a field of a small frozen dataclass: its value there, its unit and meaning beside it.

None says that a metric does not apply (no feet, too few frames), never that it went wrong; no value is NaN or infinite.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

Value = float | int | None


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One named number of a report."""

    name: str
    value: Value
    unit: str  # "1" for shares, ratios and counts
    meaning: str


def metric(unit: str, meaning: str) -> Any:
    """A dataclass field that holds a metric, None until measured."""
    return field(default=None, metadata={"unit": unit, "meaning": meaning})


def metrics_of(group: Any) -> Iterator[Metric]:
    """The metrics of a group (class or instance) in the order they are declared; a class has no values yet."""
    for f in fields(group):
        value = None if isinstance(group, type) else getattr(group, f.name)
        yield Metric(name=f.name, value=value, unit=f.metadata["unit"], meaning=f.metadata["meaning"])
