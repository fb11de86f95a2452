"""What an evaluation found: groups of cases, and for each the same numbers of the truth, of chance, and of the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from bunraku.evaluate.metric import Metric, metric, metrics_of
from bunraku.trials.misses import MissMetrics
from bunraku.trials.quality import QualityMetrics
from bunraku.trials.settings import Suite, TrialSettings

TRUTH, CHANCE, RAW, CLEANED = "ground truth", "random clip", "model", "cleaned up"
COLUMNS = (TRUTH, CHANCE, RAW, CLEANED)


@dataclass(frozen=True, kw_only=True)
class TextMetrics:
    """How well motions fit their sentences, as the retriever sees it."""

    r1: float | None = metric("%", "sentences whose own motion is the nearest of all")
    r2: float | None = metric("%", "… among the 2 nearest")
    r3: float | None = metric("%", "… among the 3 nearest")
    r5: float | None = metric("%", "… among the 5 nearest")
    r10: float | None = metric("%", "… among the 10 nearest")
    median_rank: float | None = metric("1", "median place of the own motion")
    similarity: float | None = metric("1", "mean cosine of sentence and motion")
    fid: float | None = metric("×100", "Fréchet distance to the true motions")


@dataclass(frozen=True, kw_only=True)
class Column:
    """One set of motions, measured."""

    quality: QualityMetrics
    misses: MissMetrics = field(default_factory=MissMetrics)
    text: TextMetrics = field(default_factory=TextMetrics)

    def metrics(self) -> Iterator[Metric]:
        for group in (self.text, self.misses, self.quality):
            yield from metrics_of(group)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Some cases, and the columns that were measured of them."""

    name: str  # "text", "constraints/withtext", "root/path_2dpos/notext"
    overall: bool  # one of the large groups, shown in full
    suite: Suite
    cases: int
    columns: Mapping[str, Column]  # by COLUMNS; not all are there for all groups

    def rows(self) -> list[tuple[Metric, dict[str, float | int | None]]]:
        """Every metric that some column has, with its value in each."""
        table: dict[str, tuple[Metric, dict[str, float | int | None]]] = {}
        for name, column in self.columns.items():
            for m in column.metrics():
                table.setdefault(m.name, (m, {}))[1][name] = m.value
        return [(m, values) for m, values in table.values() if any(value is not None for value in values.values())]


@dataclass(frozen=True, kw_only=True)
class BehaviourScore:
    """How often a prompt is obeyed."""

    name: str
    prompt: str
    samples: int
    raw: float  # share
    cleaned: float
    said: int  # captured stretches that are said to do it
    said_passed: float | None  # share of them that the check passes
    others_passed: float | None  # share of all others that it passes


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """All of it."""

    model: str
    dataset: str
    credits: tuple[str, ...]
    retriever: str | None
    settings: TrialSettings
    sampling: str
    groups: tuple[Group, ...] = ()
    behaviours: tuple[BehaviourScore, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)

    def group(self, name: str) -> Group:
        return next(group for group in self.groups if group.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        groups = []
        for group in self.groups:
            columns = {name: {m.name: m.value for m in column.metrics() if m.value is not None} for name, column in group.columns.items()}
            groups.append({"name": group.name, "cases": group.cases, "columns": columns})
        units = {m.name: m.unit for part in (TextMetrics, MissMetrics, QualityMetrics) for m in metrics_of(part)}
        return {
            "model": self.model,
            "dataset": self.dataset,
            "credits": list(self.credits),
            "retriever": self.retriever,
            "settings": {**asdict(self.settings), "suites": list(self.settings.suites), "families": list(self.settings.families)},
            "sampling": self.sampling,
            "groups": groups,
            "behaviours": [asdict(score) for score in self.behaviours],
            "units": units,
            "notes": dict(self.notes),
        }
