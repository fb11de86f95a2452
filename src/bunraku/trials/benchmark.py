"""NVIDIA's released test cases (`nvidia/Kimodo-Motion-Gen-Benchmark`): read as they lie, drawn and measured like our own.

    testsuite/{content,repetition}/text2motion/{overview,timeline_single,timeline_multi}/0000/meta.json
    testsuite/{content,repetition}/{constraints_withtext,constraints_notext}/{end-effectors,fullbody,mixture,root}/LEAF/0000/
        meta.json            the prompt, how long it lasts, the seed
        seed_motion.json     which frames of which BVH of BONES-SEED it was taken from
        seed_constraints.json  at which frames what is constrained, without the values
        constraints.json     the constraints          ┐ made from BONES-SEED's motions by NVIDIA's create_benchmark.py:
        gt_motion.npz        the motion itself        ┘ not in the download

Without those two, text alone can be drawn and judged by retrieval; constrained cases are refused, and FID is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bunraku.errors import BadValue, FileProblem
from bunraku.files import formats
from bunraku.generator.ready import Generator
from bunraku.generator.sample import Sampling
from bunraku.generator.surroundings import on_body
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.timeline import load_timeline
from bunraku.trials.cases import Case, save_cases
from bunraku.trials.families import FAMILIES
from bunraku.trials.measure import Judge, part_of
from bunraku.trials.results import Evaluation
from bunraku.trials.run import Bench, Finished, require_folder, require_skeleton, sampling_words, shelf_of
from bunraku.trials.settings import TrialSettings
from bunraku.trials.takes import draw_missing

META, CONSTRAINTS, SEED_CONSTRAINTS, TRUTH_FILE = "meta.json", "constraints.json", "seed_constraints.json", "gt_motion.npz"
FPS = 30.0
TEXT, WITH_TEXT, WITHOUT = "text2motion", "constraints_withtext", "constraints_notext"
_BUILT = "they are made from BONES-SEED's motions, which are not in the download: run NVIDIA's benchmark/create_benchmark.py on the folder first"
_DRAWN = 0.85


def evaluate_benchmark(
    generator: Generator,
    benchmark: Path,
    folder: Path,
    settings: TrialSettings,
    *,
    judge: Judge | None = None,
    sampling: Sampling | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Finished:
    """The released cases below a folder (the whole suite, or any part of it), at most `settings.cases` of each constrained leaf and
    `settings.text_cases` of each other."""
    require_skeleton(generator, skeleton("soma30"), FPS)
    if judge is not None:
        judge.require(generator.skeleton, FPS)
    require_folder(folder)
    found = find_cases(benchmark, generator.skeleton, settings)
    cases = [case for case, _ in found]
    sources = {case.name: source for case, source in found}
    save_cases(cases, folder)
    truths = sum((source / TRUTH_FILE).is_file() for source in sources.values())
    notes = {} if truths == len(cases) else {"ground truth": f"{len(cases) - truths} of {len(cases)} cases have no {TRUTH_FILE}: {_BUILT}"}
    bench = Bench(
        generator=generator,
        shelf=shelf_of(generator, folder, sampling),
        judge=judge,
        truth=lambda case: _truth(sources[case.name], generator.skeleton),
        chance=None,
        notes=notes,
    )
    draw_missing(generator, cases, bench.shelf, part_of(on_progress, 0.0, _DRAWN))
    evaluation = Evaluation(
        model=generator.model.name,
        dataset=f"NVIDIA's Kimodo-Motion-Gen-Benchmark ({len(cases)} cases)",
        credits=("Test cases: NVIDIA, CC-BY-4.0 (huggingface.co/datasets/nvidia/Kimodo-Motion-Gen-Benchmark).",),
        retriever=None if judge is None else judge.retriever.name,
        settings=settings,
        sampling=sampling_words(bench.shelf.sampling),
        groups=tuple(bench.groups(cases, part_of(on_progress, _DRAWN, 1.0))),
        notes=bench.notes,
    )
    return Finished(evaluation=evaluation, pictures=bench.pictures(cases, settings.sheets))


def find_cases(benchmark: Path, body: Skeleton, settings: TrialSettings) -> list[tuple[Case, Path]]:
    """The chosen cases below a folder, in the order of their names, each with the folder it lies in."""
    if not benchmark.is_dir():
        raise FileProblem(f"there is no folder '{benchmark}'; download nvidia/Kimodo-Motion-Gen-Benchmark and name its folder 'testsuite'.")
    counts: dict[tuple[str, ...], int] = {}
    cases = []
    for meta in sorted(benchmark.resolve().rglob(META)):
        leaf = _leaf(meta.parent.parent)
        if not leaf or not _wanted(leaf, settings):
            continue
        most = settings.text_cases if TEXT in leaf else settings.cases
        counts[leaf] = counts.get(leaf, 0) + 1
        if most is None or counts[leaf] <= most:
            cases.append((_case(meta.parent, leaf, body), meta.parent))
    if not cases:
        raise BadValue(f"'{benchmark}' holds no released test cases of the kinds asked for; its leaves are folders with {META}, such as {TEXT}/overview/0000.")
    return cases


def _leaf(folder: Path) -> tuple[str, ...]:
    """The names from the split down to the leaf: ("content", "constraints_withtext", "root", "path_2dpos")."""
    parts = folder.parts
    kinds = [i for i, part in enumerate(parts) if part in (TEXT, WITH_TEXT, WITHOUT)]
    return parts[max(kinds[-1] - 1, 0) :] if kinds else ()


def _wanted(leaf: tuple[str, ...], settings: TrialSettings) -> bool:
    if TEXT in leaf:
        return settings.wants("text")
    family = "/".join(leaf[-2:])
    return family in settings.families or (family not in FAMILIES and "constraints" in settings.suites)


def _case(folder: Path, leaf: tuple[str, ...], body: Skeleton) -> Case:
    constrained = TEXT not in leaf
    if constrained and not (folder / CONSTRAINTS).is_file():
        has = f"only {SEED_CONSTRAINTS}, which says where but not what" if (folder / SEED_CONSTRAINTS).is_file() else "none"
        raise FileProblem(f"the released case '{folder}' has no {CONSTRAINTS} ({has}); {_BUILT}. Text alone needs none: --suite text.")
    name = "/".join(leaf)
    groups = (name,) if not constrained else ("/".join(leaf[:2]), name)
    return Case(
        name=f"{name}/{folder.name}",
        suite="constraints" if constrained else "text",
        family="/".join(leaf[-2:]) if constrained else "text",
        timeline=replace(load_timeline(folder, body), samples=None),
        groups=groups,
    )


def _truth(folder: Path, body: Skeleton) -> Motion | None:
    path = folder / TRUTH_FILE
    return on_body(formats.load_motion(path), body) if path.is_file() else None
