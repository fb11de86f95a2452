"""The door to evaluation: a model and data in, a report folder out. `bunraku.api` offers it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bunraku.datasets.store import open_dataset
from bunraku.errors import BadValue
from bunraku.generating import load_model
from bunraku.generator.generate import sampling_of
from bunraku.generator.ready import Generator
from bunraku.generator.text.open import text_encoder
from bunraku.retrieval.checkpoint import SHIPPED, load_retriever
from bunraku.timeline import Timeline
from bunraku.trials.measure import Judge, part_of
from bunraku.trials.report import write_report
from bunraku.trials.results import Evaluation
from bunraku.trials.run import evaluate
from bunraku.trials.settings import TrialSettings

PathLike = str | os.PathLike[str]
_EVALUATED = 0.9  # share of the time that has passed before pictures are drawn, about


def evaluate_model(
    model: Generator | PathLike,
    report: PathLike,
    *,
    data: PathLike | None = None,
    benchmark: PathLike | None = None,
    tmr: PathLike | None = None,
    steps: int | None = None,
    opening: Mapping[str, Any] | None = None,
    on_progress: Callable[[float], None] | None = None,
    **settings: Any,
) -> Evaluation:
    """Draws test cases made from a dataset (or NVIDIA's released ones), measures them, and writes report.md, report.json, plots and pictures.

    `settings` are the fields of `TrialSettings`; `opening` the options of `load_model`; `tmr` a retriever's folder (default: the one
    that comes with the package, if any). Called again with the same arguments it goes on where it was.
    """
    if (data is None) == (benchmark is None):
        raise BadValue("an evaluation needs either a dataset (data) or a folder of released test cases (benchmark); name one of them.")
    chosen = TrialSettings(**settings)
    folder = Path(report)
    judge = open_judge(tmr)
    sampling = sampling_of(Timeline(), steps=steps)
    dataset = None if data is None else open_dataset(data)
    generator = model if isinstance(model, Generator) else load_model(model, **dict(opening or {}))
    working = part_of(on_progress, 0.0, _EVALUATED)
    if dataset is None:
        from bunraku.trials.benchmark import evaluate_benchmark

        assert benchmark is not None
        finished = evaluate_benchmark(generator, Path(benchmark), folder, chosen, judge=judge, sampling=sampling, on_progress=working)
    else:
        finished = evaluate(generator, dataset, folder, chosen, judge=judge, sampling=sampling, on_progress=working)
    write_report(finished.evaluation, folder, finished.pictures, part_of(on_progress, _EVALUATED, 1.0))
    return finished.evaluation


def open_judge(tmr: PathLike | None) -> Judge | None:
    """The retriever with its text encoder; None, with a warning, where none is named and none comes with the package."""
    if tmr is None and not SHIPPED.is_dir():
        warnings.warn("no retriever comes with this version of bunraku: R@k and FID are left out. Train one and name it with --tmr.", stacklevel=2)
        return None
    retriever = load_retriever(tmr)
    return Judge(retriever, text_encoder(retriever.text_encoder, width=retriever.config.text_width))
