"""An evaluation from end to end: cases made, drawn, measured, reported.

    dataset ─► cases ─► takes (kept) ─┐
                 └────► true motion ──┼─► numbers ─► report.json, report.md, plots, contact sheets
    train split ─► random motion ─────┘
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from bunraku.datasets.store import Dataset
from bunraku.errors import BadValue, FileProblem, SkeletonMismatch
from bunraku.files.disk import require_writable
from bunraku.generator.generate import sampling_of
from bunraku.generator.ready import Generator
from bunraku.generator.sample import Sampling
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.timeline import Timeline, crop_constraints
from bunraku.trials.behaviours import BEHAVIOURS, Sanity, measure_checks, shows
from bunraku.trials.cases import Case, case_truth, make_cases, save_cases
from bunraku.trials.measure import Judge, Measured, column, embeddings, measure, part_of
from bunraku.trials.report import JSON
from bunraku.trials.results import CHANCE, CLEANED, COLUMNS, RAW, TRUTH, BehaviourScore, Evaluation, Group
from bunraku.trials.settings import TrialSettings
from bunraku.trials.stretch import random_stretches, truth_of
from bunraku.trials.takes import Drawn, Shelf, draw_missing, model_print

_DRAWN = 0.85  # share of the time that has passed by then, about
_CHANCE_SEED = 1_000_003

Progress = Callable[[float], None] | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Finished:
    """An evaluation, and motions to look at: (file name without suffix, words, motion)."""

    evaluation: Evaluation
    pictures: tuple[tuple[str, str, Motion], ...]


def evaluate(
    generator: Generator,
    dataset: Dataset,
    folder: Path,
    settings: TrialSettings,
    *,
    judge: Judge | None = None,
    sampling: Sampling | None = None,
    on_progress: Progress = None,
) -> Finished:
    """Draws all cases of the settings into `folder` (what lies there already is not drawn again) and measures them."""
    require_skeleton(generator, dataset.skeleton, dataset.fps)
    if judge is not None:
        judge.require(dataset.skeleton, dataset.fps)
    require_folder(folder)
    cases = make_cases(dataset, settings, generator.model.max_seconds)
    save_cases(cases, folder, dataset)
    measured = [case for case in cases if case.suite != "behaviours"]
    notes: dict[str, str] = {}
    bench = Bench(
        generator=generator,
        shelf=shelf_of(generator, folder, sampling),
        judge=judge,
        truth=lambda case: None if case.stretch is None else case_truth(dataset, case).motion,
        chance=_chance(dataset, settings, measured, notes),
        notes=notes,
    )
    draw_missing(generator, cases, bench.shelf, part_of(on_progress, 0.0, _DRAWN))
    groups = bench.groups(measured, part_of(on_progress, _DRAWN, 0.97))
    obeyed = [case for case in cases if case.suite == "behaviours"]
    behaviours = bench.behaviours(obeyed, measure_checks(dataset)) if obeyed else []
    evaluation = Evaluation(
        model=generator.model.name,
        dataset=f"{dataset.about.name}, split {settings.split}",
        credits=dataset.about.credits,
        retriever=None if judge is None else judge.retriever.name,
        settings=settings,
        sampling=sampling_words(bench.shelf.sampling),
        groups=tuple(groups),
        behaviours=tuple(behaviours),
        notes=bench.notes,
    )
    return Finished(evaluation=evaluation, pictures=bench.pictures(cases, settings.sheets))


def require_skeleton(generator: Generator, skeleton: Skeleton, fps: float) -> None:
    layout = generator.model.layout
    if layout.skeleton.joints != skeleton.joints or layout.fps != fps:
        model, data = f"'{layout.skeleton.name}' at {layout.fps:g} fps", f"'{skeleton.name}' at {fps:g} fps"
        raise SkeletonMismatch(f"the model '{generator.model.name}' moves {model}, the data holds {data}; name data of the model's skeleton.")


def require_folder(folder: Path) -> None:
    """Raises if a report cannot be written there; made if it does not exist."""
    try:
        (folder / "takes").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileProblem(f"the report folder '{folder}' cannot be used: {error.strerror}. Name another with -o.") from error
    require_writable(folder / JSON)


def shelf_of(generator: Generator, folder: Path, sampling: Sampling | None) -> Shelf:
    return Shelf(folder=folder / "takes", model=model_print(generator), sampling=sampling_of(Timeline()) if sampling is None else sampling)


def sampling_words(sampling: Sampling) -> str:
    guidance = sampling.guidance
    return f"{sampling.solver}, {sampling.steps} steps, guidance {guidance.kind} (text {guidance.text:g}, constraints {guidance.constraint:g})"


def _chance(dataset: Dataset, settings: TrialSettings, cases: Sequence[Case], notes: dict[str, str]) -> Callable[[int], Motion] | None:
    """Case number → captured motion of its length from the training data, whatever it shows."""
    rng = torch.Generator().manual_seed(settings.seed + _CHANCE_SEED)
    try:
        stretches = random_stretches(dataset, "train", [case.frames for case in cases], rng)
    except BadValue as error:
        notes[CHANCE] = f"not measured: {error}"
        return None
    return lambda number: truth_of(dataset, stretches[number]).motion


@dataclass(frozen=True, kw_only=True, eq=False)
class Bench:
    """Where takes are measured."""

    generator: Generator
    shelf: Shelf
    judge: Judge | None
    truth: Callable[[Case], Motion | None]
    chance: Callable[[int], Motion] | None  # by the number of the case
    notes: dict[str, str] = field(default_factory=dict)

    def take(self, case: Case) -> Drawn:
        found = self.shelf.find(case, self.generator.skeleton, self.generator.model.layout.fps)
        if found is None:
            raise FileProblem(f"the take '{self.shelf.path(case)}' has gone while it was needed; run the evaluation again.")
        return found

    def groups(self, cases: Sequence[Case], on_progress: Progress = None) -> list[Group]:
        """Every group that the cases name, the large ones first."""
        if self.judge is None and any(case.suite == "text" for case in cases):
            self.notes["retrieval"] = "R@k and FID are not measured: there is no retriever (bunraku train tmr, then --tmr FOLDER)"
        measured = []
        for number, case in enumerate(cases):
            measured.append(self._measure(number, case))
            if on_progress is not None:
                on_progress((number + 1) / len(cases))
        members: dict[str, list[int]] = {}
        for number, case in enumerate(cases):
            for name in case.groups:
                members.setdefault(name, []).append(number)
        groups = [self._group(name, [cases[i] for i in rows], [measured[i] for i in rows]) for name, rows in members.items()]
        return sorted(groups, key=lambda group: not group.overall)

    def _measure(self, number: int, case: Case) -> dict[str, Measured]:
        drawn, judge = self.take(case), self.judge if case.suite == "text" else None
        motions = {TRUTH: self.truth(case), CHANCE: None if self.chance is None else self.chance(number), RAW: drawn.raw, CLEANED: drawn.cleaned}
        asked = case.timeline.constraints
        # where no captured clip is as long as the case, what is asked after the end of the longest one is not asked of chance
        within = {kind: crop_constraints(asked, 0, len(motion)) if kind == CHANCE else asked for kind, motion in motions.items() if motion is not None}
        return {kind: measure(motion, within[kind], judge) for kind, motion in motions.items() if motion is not None}

    def _group(self, name: str, cases: Sequence[Case], measured: Sequence[Mapping[str, Measured]]) -> Group:
        """A column for every kind of motion that all of the cases have."""
        kinds = [kind for kind in COLUMNS if all(kind in row for row in measured)]
        rows = {kind: [row[kind] for row in measured] for kind in kinds}
        if self.judge is None or cases[0].suite != "text":
            columns = {kind: column(rows[kind]) for kind in kinds}
        else:
            texts, truth = [case.text for case in cases], embeddings(rows[TRUTH]) if TRUTH in rows else None
            columns = {kind: column(rows[kind], self.judge.text_metrics(texts, embeddings(rows[kind]), truth)) for kind in kinds}
        return Group(name=name, overall=name == cases[0].groups[0], suite=cases[0].suite, cases=len(cases), columns=columns)

    def behaviours(self, cases: Sequence[Case], sanity: Mapping[str, Sanity]) -> list[BehaviourScore]:
        """How often each behaviour is shown, beside how often captured motion shows it."""
        passed: dict[str, list[tuple[bool, bool]]] = {}
        for case in cases:
            drawn = self.take(case)
            passed.setdefault(case.family, []).append((shows(case.family, drawn.raw), shows(case.family, drawn.cleaned)))
        return [_score(name, rows, sanity[name]) for name, rows in passed.items()]

    def pictures(self, cases: Sequence[Case], count: int) -> tuple[tuple[str, str, Motion], ...]:
        """The first take of every behaviour and of as many sentences as there is room for."""
        first = {case.family: case for case in reversed(cases) if case.suite == "behaviours"}
        chosen = [*sorted(first.values(), key=lambda case: case.name), *(case for case in cases if case.suite == "text")][:count]
        return tuple((case.name.replace("/", "-").replace(" ", "-"), case.text, self.take(case).cleaned) for case in chosen)


def _score(name: str, rows: Sequence[tuple[bool, bool]], sanity: Sanity) -> BehaviourScore:
    raw, cleaned = (sum(row[kind] for row in rows) / len(rows) for kind in (0, 1))
    return BehaviourScore(
        name=name,
        prompt=BEHAVIOURS[name].prompt,
        samples=len(rows),
        raw=raw,
        cleaned=cleaned,
        said=sanity.said,
        said_passed=sanity.passed,
        others_passed=sanity.others_passed,
    )
