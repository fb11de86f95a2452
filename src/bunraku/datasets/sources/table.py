"""Tables of captions in CSV, read with care."""

from __future__ import annotations

import csv
from pathlib import Path

from bunraku.errors import FormatProblem
from bunraku.files.disk import read_text


def read_table(path: Path, needed: tuple[str, ...]) -> list[dict[str, str]]:
    """The rows of a CSV whose first line names its columns; missing cells are empty."""
    rows = csv.DictReader(read_text(path).splitlines())
    names = [name.strip().lower() for name in rows.fieldnames or []]
    missing = [name for name in needed if name not in names]
    if missing:
        has = ", ".join(names) or "nothing"
        raise FormatProblem(f"'{path}' has no column '{missing[0]}' in its first line (it has: {has}); {', '.join(needed)} are needed.")
    rows.fieldnames = names
    return [{name: (row.get(name) or "").strip() for name in names} for row in rows]


def seconds(text: str, path: Path, line: int, otherwise: float) -> float:
    """A time in a cell, `otherwise` where it is empty."""
    if not text:
        return otherwise
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value < float("inf"):
        raise FormatProblem(f"'{path}', line {line}: '{text}' is no time; seconds from the beginning of the clip are needed.")
    return value
