"""Test cases: what is asked of a model, and the true motion it was taken from. The same dataset, settings and seed give the same cases.

On disk a case is a timeline (`bunraku generate --timeline cases/text/0003.json` draws it), and `cases.json` lists them all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from bunraku.datasets.store import Dataset
from bunraku.errors import BadValue
from bunraku.files.disk import write_text
from bunraku.timeline import Prompt, Timeline, save_timeline
from bunraku.trials.behaviours import BEHAVIOURS
from bunraku.trials.families import FAMILIES
from bunraku.trials.settings import Suite, TrialSettings
from bunraku.trials.stretch import Stretch, Truth, captioned_stretches, placed, truth_of

INDEX = "cases.json"


@dataclass(frozen=True, kw_only=True)
class Moved:
    """How a perturbed case was turned [rad] and moved [m] from where models start."""

    yaw: float
    x: float
    z: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One timeline to draw."""

    name: str  # "text/0003", "fullbody/random/withtext/0001": its file below the report's folder `cases`
    suite: Suite
    family: str  # "text", one of FAMILIES, or one of BEHAVIOURS
    timeline: Timeline
    groups: tuple[str, ...]  # it is measured together with others: first the large group, then smaller ones
    stretch: Stretch | None = None  # None: there is no true motion in a dataset
    moved: Moved | None = None

    @property
    def text(self) -> str:
        return self.timeline.prompts[0].text

    @property
    def with_text(self) -> bool:
        return bool(self.text)

    @property
    def frames(self) -> int:
        return self.timeline.frames()


def make_cases(dataset: Dataset, settings: TrialSettings, longest: float) -> list[Case]:
    """All cases of the settings, for a model that draws at most `longest` seconds at once."""
    _require_split(dataset, settings)
    cases: list[Case] = []
    if settings.wants("text"):
        cases += _text_cases(dataset, settings, longest)
    if settings.families:
        cases += _constrained_cases(dataset, settings, longest)
    if settings.wants("behaviours"):
        cases += _behaviour_cases(settings)
    return cases


def case_truth(dataset: Dataset, case: Case) -> Truth:
    """The motion that a case was taken from, where the case has it."""
    assert case.stretch is not None
    truth = truth_of(dataset, case.stretch)
    return truth if case.moved is None else placed(truth, (case.moved.x, case.moved.z), case.moved.yaw)


def _require_split(dataset: Dataset, settings: TrialSettings) -> None:
    if (settings.wants("text") or settings.families) and not dataset.of_split(settings.split):
        counts = {split: len(dataset.of_split(split)) for split in ("train", "val", "test")}
        has = ", ".join(f"{split} {count}" for split, count in counts.items())
        raise BadValue(f"the dataset '{dataset.folder}' has no clips in the split '{settings.split}' ({has}); choose another with --split.")


def _text_cases(dataset: Dataset, settings: TrialSettings, longest: float) -> list[Case]:
    seconds = (settings.text_seconds[0], min(settings.text_seconds[1], longest))
    stretches = _enough(dataset, settings, captioned_stretches(dataset, settings.split, seconds, _rng(settings, "text")), seconds, 2)
    return [
        Case(
            name=f"text/{i:04d}",
            suite="text",
            family="text",
            timeline=_timeline(dataset, stretch, _seed(settings, "text", i)),
            groups=("text",),
            stretch=stretch,
        )
        for i, stretch in enumerate(stretches[: settings.text_cases])
    ]


def _constrained_cases(dataset: Dataset, settings: TrialSettings, longest: float) -> list[Case]:
    seconds = (settings.constraint_seconds[0], min(settings.constraint_seconds[1], longest))
    cases = []
    for family in settings.families:
        rng = _rng(settings, family)
        stretches = _enough(dataset, settings, captioned_stretches(dataset, settings.split, seconds, rng), seconds, 1)
        for i in range(settings.cases):
            stretch = stretches[i % len(stretches)]
            moved = _perturbation(settings, rng)
            timeline = _timeline(dataset, stretch, _seed(settings, family, i))
            whole = Case(name="", suite="constraints", family=family, timeline=timeline, groups=(), stretch=stretch, moved=moved)
            timeline = replace(timeline, constraints=tuple(FAMILIES[family](case_truth(dataset, whole), rng)))
            wordless = replace(timeline, prompts=tuple(replace(prompt, text="") for prompt in timeline.prompts))
            for kind, asked in (("withtext", timeline), ("notext", wordless)):
                groups = (f"constraints/{kind}", f"{family}/{kind}")
                cases.append(replace(whole, name=f"{family}/{kind}/{i:04d}", timeline=asked, groups=groups))
    return cases


def _behaviour_cases(settings: TrialSettings) -> list[Case]:
    cases = []
    for name, behaviour in BEHAVIOURS.items():
        for i in range(settings.seeds):
            prompt = Prompt(text=behaviour.prompt, seconds=settings.behaviour_seconds)
            timeline = Timeline(prompts=(prompt,), seed=_seed(settings, name, i))
            cases.append(Case(name=f"behaviours/{name}/{i:04d}", suite="behaviours", family=name, timeline=timeline, groups=(name,)))
    return cases


def _timeline(dataset: Dataset, stretch: Stretch, seed: int) -> Timeline:
    prompt = Prompt(text=stretch.text, seconds=stretch.frames / dataset.fps)
    return Timeline(prompts=(prompt,), fps=dataset.fps, seed=seed)


def _perturbation(settings: TrialSettings, rng: torch.Generator) -> Moved | None:
    chance, yaw, x, z = torch.rand(4, generator=rng, dtype=torch.float64).tolist()
    if chance >= settings.perturbed:
        return None
    return Moved(yaw=(2 * yaw - 1) * settings.turn, x=(2 * x - 1) * settings.shift, z=(2 * z - 1) * settings.shift)


def _enough(dataset: Dataset, settings: TrialSettings, stretches: list[Stretch], seconds: tuple[float, float], least: int) -> list[Stretch]:
    if len(stretches) < least:
        found = f"{len(stretches)} described stretches of {seconds[0]:g} to {seconds[1]:g} seconds"
        raise BadValue(f"the split '{settings.split}' of '{dataset.folder}' has {found}; at least {least} are needed. Choose another split or dataset.")
    return stretches


# --- chance ----------------------------------------------------------------------------------------------------------


def _seed(settings: TrialSettings, *about: object) -> int:
    """A number below 2³¹ that follows from the settings' seed and what it is for."""
    words = "/".join(map(str, (settings.seed, *about)))
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:4], "little") >> 1


def _rng(settings: TrialSettings, about: str) -> torch.Generator:
    return torch.Generator().manual_seed(_seed(settings, about))


# --- on disk ---------------------------------------------------------------------------------------------------------


def save_cases(cases: Sequence[Case], folder: Path, dataset: Dataset | None = None) -> None:
    """A timeline for each case below `folder`/cases, and the list of them, with the clips of the dataset they were made from."""
    rows = []
    for case in cases:
        path = case_path(folder, case)
        path.parent.mkdir(parents=True, exist_ok=True)
        save_timeline(case.timeline, path)
        source = None
        if case.stretch is not None and dataset is not None:
            source = {"clip": dataset.clips[case.stretch.clip].name, "range": [case.stretch.start, case.stretch.stop], "mirrored": case.stretch.mirrored}
        moved = None if case.moved is None else asdict(case.moved)
        rows.append({"name": case.name, "suite": case.suite, "family": case.family, "text": case.text, "truth": source, "moved": moved})
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    write_text(folder / INDEX, f"[\n{lines}\n]\n")


def case_path(folder: Path, case: Case) -> Path:
    return folder / "cases" / f"{case.name}.json"
