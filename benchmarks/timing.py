"""What the benchmarks share: both sides timed by turns, a row of the table, and a section of docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

REPORT = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"


@dataclass(frozen=True, kw_only=True)
class Row:
    task: str
    alternative: str
    seconds: float
    seconds_alternative: float

    def cells(self) -> tuple[str, str, str]:
        return self.task, self.alternative, f"{self.seconds_alternative / self.seconds:.1f} ×"

    def line(self) -> str:
        return f"{self.task}: {_duration(self.seconds)}; {self.alternative}: {_duration(self.seconds_alternative)}"


@dataclass(frozen=True)
class Timed:
    seconds: float
    result: Any


def best_of(runs: int, ours: Callable[[], Any], theirs: Callable[[], Any], *, runs_alternative: int | None = None) -> tuple[Timed, Timed]:
    """Both by turns; the quickest run of each."""
    timed: tuple[list[Timed], list[Timed]] = ([], [])
    for run in range(runs):
        for function, times, wanted in ((ours, timed[0], runs), (theirs, timed[1], runs_alternative or runs)):
            if run < wanted:
                start = time.perf_counter()
                result = function()
                times.append(Timed(time.perf_counter() - start, result))
    return min(timed[0], key=lambda t: t.seconds), min(timed[1], key=lambda t: t.seconds)


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e3:.2f} ms"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, ["---"] * len(header), *rows)) + "\n"


def ratios(rows: Sequence[Row]) -> str:
    return table(("task", "alternative", "ours is faster by"), [row.cells() for row in rows])


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {torch.__version__}"


def write_section(path: Path, title: str, text: str) -> None:
    """Replaces the section `## title` of a Markdown file, or adds it; the other sections stay."""
    page = path.read_text() if path.exists() else "# Benchmarks\n"
    section = f"## {title}\n\n{text}"
    old = re.compile(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    page = old.sub(lambda _: f"{section}\n", page) if old.search(page) else f"{page.rstrip()}\n\n{section}"
    path.parent.mkdir(exist_ok=True)
    path.write_text(page.rstrip() + "\n")
