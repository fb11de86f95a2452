"""The plausibility report of one clip: named numbers with units, as a table, as JSON, and against limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_type_hints

from bunraku.evaluate import verdict
from bunraku.evaluate.balance import BalanceMetrics
from bunraku.evaluate.clip import ClipMetrics
from bunraku.evaluate.collisions import CollisionMetrics
from bunraku.evaluate.feet import FeetMetrics
from bunraku.evaluate.joints import JointMetrics
from bunraku.evaluate.loop import LoopMetrics
from bunraku.evaluate.metric import Metric, Value, metrics_of
from bunraku.evaluate.rhythm import RhythmMetrics
from bunraku.evaluate.smoothness import SmoothnessMetrics
from bunraku.evaluate.verdict import WORDS, Limit


@dataclass(frozen=True, kw_only=True)
class Report:
    """What `check` measured. Every metric is defined in `docs/metrics.md`; None where one does not apply."""

    skeleton: str
    contacts: str | None  # "stored" in the motion, "detected" from it, None without feet
    clip: ClipMetrics
    feet: FeetMetrics
    smoothness: SmoothnessMetrics
    joints: JointMetrics
    collisions: CollisionMetrics
    balance: BalanceMetrics
    rhythm: RhythmMetrics
    loop: LoopMetrics

    def __str__(self) -> str:
        """The report as a table, one metric a line."""
        lines = [f"{metric:<22}{value:>9} {unit:<8}{meaning}" for _, metric, value, unit, meaning in report_rows(self)]
        return "\n".join([f"{self.skeleton}, contacts {self.contacts or 'none'}", *lines])

    def metrics(self) -> dict[str, Metric]:
        """All metrics by name, in the order of the report."""
        return {m.name: m for group in GROUPS for m in metrics_of(getattr(self, group))}

    def __getitem__(self, name: str) -> Value:
        return self.metrics()[name].value

    def failures(self, limits: Iterable[Limit] | None = None) -> list[str]:
        """One sentence for each limit the clip breaks (`DEFAULT_LIMITS` if none are given); a metric that does not apply breaks none."""
        measured = self.metrics()
        broken = []
        for limit in DEFAULT_LIMITS if limits is None else limits:
            found = measured[limit.metric]
            if found.value is not None and limit.failed_by(found.value):
                shown = _shown(found.value) if float(_shown(found.value)) != limit.value else f"{found.value:.6g}"  # not "10, above 10"
                broken.append(f"{found.name} is {shown}{_unit(found)}, {WORDS[limit.comparison]} {limit.value:g}")
        return broken

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: numbers or None, never NaN."""
        measured = self.metrics()
        return {
            "skeleton": self.skeleton,
            "contacts": self.contacts,
            "metrics": {name: m.value for name, m in measured.items()},
            "units": {name: m.unit for name, m in measured.items()},
        }


GROUPS = get_type_hints(Report)
del GROUPS["skeleton"], GROUPS["contacts"]
METRIC_NAMES = tuple(m.name for group in GROUPS.values() for m in metrics_of(group))


def parse_limits(text: str) -> list[Limit]:
    """Limits on the metrics of a report: `parse_limits("skate>5,penetration_max>20")`."""
    return verdict.parse_limits(text, METRIC_NAMES)


# A clip that breaks one of these has a fault an animator would see. Four in five captured clips without glitches keep them all;
# how each was measured is in docs/metrics.md.
DEFAULT_LIMITS = tuple(
    parse_limits(
        "skate>10, contact_consistency<0.85, penetration_max>100, float_mean>100, "
        "pop_frames>0, hinge_excess_max>2, bend_frames>0, collision_depth_max>50"
    )
)


def report_rows(report: Report) -> list[tuple[str, str, str, str, str]]:
    """The report as rows of text: group, metric, value, unit, meaning; a metric that does not apply shows a dash."""
    return [(group, m.name, _shown(m.value), "" if m.unit == "1" else m.unit, m.meaning) for group in GROUPS for m in metrics_of(getattr(report, group))]


def _shown(value: Value) -> str:
    if value is None:
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def _unit(m: Metric) -> str:
    return "" if m.unit == "1" else f" {m.unit}"
