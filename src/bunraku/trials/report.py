"""The report of an evaluation: report.json, report.md with plots, contact sheets, and the same tables for a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from bunraku.evaluate.metric import metrics_of
from bunraku.files.disk import write_text
from bunraku.files.image import save_picture
from bunraku.kinematics.motion import Motion
from bunraku.trials.misses import MissMetrics
from bunraku.trials.plots import bars, curves
from bunraku.trials.precision import KS
from bunraku.trials.results import CLEANED, COLUMNS, RAW, TRUTH, BehaviourScore, Evaluation, Group

JSON, MARKDOWN = "report.json", "report.md"
Table = tuple[str, list[str], list[list[str]]]  # title, heads, rows
_WORDS = ("metric", "unit", "meaning", "family", "prompt")  # columns of words; the others hold numbers
_SHEET = {"frames": 8, "size": (150, 180)}


def write_report(
    evaluation: Evaluation, folder: Path, pictures: Sequence[tuple[str, str, Motion]] = (), on_progress: Callable[[float], None] | None = None
) -> None:
    """Writes everything; `pictures` are (file name without suffix, words, motion)."""
    write_text(folder / JSON, json.dumps(evaluation.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    plots = _plots(evaluation)
    for name, svg in plots.items():
        write_text(folder / f"{name}.svg", svg)
    sheets = folder / "sheets"
    if pictures:
        sheets.mkdir(exist_ok=True)
    for number, (name, _, motion) in enumerate(pictures):
        save_picture(motion, sheets / f"{name}.png", **_SHEET)  # type: ignore[arg-type]
        if on_progress is not None:
            on_progress((number + 1) / len(pictures))
    write_text(folder / MARKDOWN, markdown(evaluation, list(plots), [(f"sheets/{name}.png", words) for name, words, _ in pictures]))


# --- tables ----------------------------------------------------------------------------------------------------------


def tables(evaluation: Evaluation) -> list[Table]:
    """What a terminal and the Markdown show alike."""
    found = [_group_table(group) for group in evaluation.groups if group.overall]
    families = [group for group in evaluation.groups if not group.overall]
    if families:
        found.append(_family_table(families))
    if evaluation.behaviours:
        found.append(_behaviour_table(evaluation.behaviours))
    return found


def _group_table(group: Group) -> Table:
    kinds = [kind for kind in COLUMNS if kind in group.columns]
    rows = [[m.name, *(shown(values.get(kind)) for kind in kinds), "" if m.unit == "1" else m.unit, m.meaning] for m, values in group.rows()]
    return f"{group.name} ({group.cases} cases)", ["metric", *kinds, "unit", "meaning"], rows


def _family_table(groups: Sequence[Group]) -> Table:
    """One row for each family and what it asks for: the truth, and the model with text and without, as drawn and after clean-up."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    kinds: list[str] = []
    for group in groups:
        family, kind = family_of(group.name)
        for m in metrics_of(MissMetrics):
            raw = _miss(group, RAW, m.name)
            if raw is None or m.name in ("pelvis_p95", "root_within"):
                continue
            cells = rows.setdefault((family, f"{m.name} [{m.unit}]" if m.unit != "1" else m.name), {})
            cells[kind] = f"{shown(raw)} → {shown(_miss(group, CLEANED, m.name))}"
            cells[TRUTH] = shown(_miss(group, TRUTH, m.name) if TRUTH in group.columns else None)
            kinds += [] if kind in kinds else [kind]
    heads = ["family", "metric", TRUTH, *kinds]
    cells = [[family, name, *(row.get(head, "") for head in heads[2:])] for (family, name), row in rows.items()]
    return "constraints, family by family: as drawn → cleaned up", heads, cells


def family_of(group: str) -> tuple[str, str]:
    """`root/path_2dpos/withtext`, `content/constraints_notext/root/path_2dpos`: which family, and with text or without."""
    parts = group.split("/")
    kind = next((part for part in parts if part.endswith(("withtext", "notext"))), "")
    return "/".join(part for part in parts if part != kind), "without text" if kind.endswith("notext") else "with text"


def _miss(group: Group, column: str, name: str) -> float | None:
    return getattr(group.columns[column].misses, name)


def _behaviour_table(scores: Sequence[BehaviourScore]) -> Table:
    heads = ["prompt", "samples", RAW, CLEANED, "captured, said to", "captured, others"]
    rows = [
        [s.prompt, str(s.samples), _share(s.raw), _share(s.cleaned), f"{_share(s.said_passed)} of {s.said}", _share(s.others_passed)] for s in scores
    ]
    return "does it do what the words say? share of samples that pass the check", heads, rows


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def shown(value: float | int | None) -> str:
    if value is None:
        return "–"
    if 0 < abs(value) < 0.0005:
        return "<0.001"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def print_tables(evaluation: Evaluation) -> None:
    """The tables on a terminal."""
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console()
    for title, heads, rows in tables(evaluation):
        kept = [place for place, head in enumerate(heads) if head != "meaning"]  # the Markdown has them; a terminal is narrow
        table = RichTable(title=title, title_justify="left", box=None, pad_edge=False)
        for place in kept:
            table.add_column(heads[place], justify="left" if heads[place] in _WORDS else "right", overflow="fold")
        for row in rows:
            table.add_row(*(row[place] for place in kept))
        console.print(table)
        console.print()
    for topic, note in evaluation.notes.items():
        console.print(f"note: {topic}: {note}", highlight=False)


# --- Markdown --------------------------------------------------------------------------------------------------------


def markdown(evaluation: Evaluation, plots: Sequence[str] = (), sheets: Sequence[tuple[str, str]] = ()) -> str:
    settings = evaluation.settings
    lines = [
        f"# How good is {evaluation.model}?",
        "",
        f"On {evaluation.dataset}, seed {settings.seed}, drawn with {evaluation.sampling}.",
        f"Sentences and motions are compared by {evaluation.retriever}." if evaluation.retriever else "",
        "`ground truth`: the held-out motion itself. `random clip`: captured motion of the same length, whatever it shows.",
        "`model`: as drawn. `cleaned up`: with constraints met and feet held.",
        "",
    ]
    lines += [line for name in plots for line in (f"![{name}]({name}.svg)", "")]
    for title, heads, rows in tables(evaluation):
        lines += [f"## {title[0].upper()}{title[1:]}", "", _row(heads), _row(["---" if head in _WORDS else "---:" for head in heads])]
        lines += [*(_row(row) for row in rows), ""]
    if sheets:
        lines += ["## What it looks like", ""]
        lines += [line for path, words in sheets for line in (f"**{words}**", "", f"![{words}]({path})", "")]
    if evaluation.notes:
        lines += ["## Notes", "", *(f"- {topic}: {note}" for topic, note in evaluation.notes.items()), ""]
    return "\n".join([*lines, *evaluation.credits]).rstrip() + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# --- plots -----------------------------------------------------------------------------------------------------------


def _plots(evaluation: Evaluation) -> dict[str, str]:
    found = {}
    for group in evaluation.groups:
        if group.suite == "text" and group.columns[RAW].text.r1 is not None:
            rows = {kind: [getattr(column.text, f"r{k}") for k in KS] for kind, column in group.columns.items()}
            found[f"retrieval-{group.name.replace('/', '-')}"] = curves(
                f"{group.name}: sentences that find their motion among {group.cases}", " %", [f"R@{k}" for k in KS], rows, 100.0
            )
    misses = _miss_rows(evaluation)
    if misses:
        found["constraints"] = bars("How far from the constraints, as drawn", "cm", misses)
    if evaluation.groups:
        skate = {group.name: {kind: column.quality.skate for kind, column in group.columns.items()} for group in evaluation.groups if group.overall}
        found["skate"] = bars("Speed of feet in contact", "cm/s", skate)
    if evaluation.behaviours:
        shares = {s.name: {RAW: 100 * s.raw, "captured": None if s.said_passed is None else 100 * s.said_passed} for s in evaluation.behaviours}
        found["behaviours"] = bars("Samples that do what the words say", "%", shares, 100.0)
    return found


def _miss_rows(evaluation: Evaluation) -> dict[str, dict[str, float | None]]:
    rows: dict[str, dict[str, float | None]] = {}
    for name, words in (("fullbody", "whole body"), ("effector", "hands and feet"), ("root", "2D root"), ("pelvis_p95", "hips on the ground, 95 %")):
        series: dict[str, float | None] = {}
        for group in evaluation.groups:
            if group.overall and group.suite == "constraints":
                series[group.name] = _miss(group, RAW, name)
                series[TRUTH] = _miss(group, TRUTH, name) if TRUTH in group.columns else None
        if any(value is not None for value in series.values()):
            rows[words] = series
    return rows
