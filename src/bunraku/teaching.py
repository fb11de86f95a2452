"""The doors to training: a recipe with its changes, a dataset, one or several processes. `bunraku.api` offers them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bunraku.datasets.forms import forms_of
from bunraku.datasets.store import Dataset, open_dataset
from bunraku.errors import BadValue
from bunraku.generator.models import find_model
from bunraku.generator.text.open import text_encoder
from bunraku.recipes import generator, tmr
from bunraku.recipes.ablations import ABLATIONS
from bunraku.training.generator_task import GeneratorSettings, GeneratorTask
from bunraku.training.loop import Progress, train
from bunraku.training.ranks import Ranks, Sharing, ranks
from bunraku.training.retriever_task import RetrieverSettings, RetrieverTask
from bunraku.training.settings import with_changes
from bunraku.training.task import Task

PathLike = str | os.PathLike[str]
RECIPES: Mapping[str, Mapping[str, Callable[[], GeneratorSettings | RetrieverSettings]]] = {"generator": generator.SIZES, "tmr": tmr.SIZES}


def train_model(
    settings: GeneratorSettings | RetrieverSettings,
    data: PathLike,
    folder: PathLike,
    *,
    resume: bool = False,
    minutes: float | None = None,
    begin_with: PathLike | None = None,
    device: str = "auto",
    sharing: Sharing = "ddp",
    on_progress: Callable[[Progress], None] | None = None,
) -> bool:
    """Trains a `recipe` on a dataset into a folder; True if it came to its end, False if its minutes were over before.

    `begin_with` is a model whose weights are taken over. Under torchrun every process calls this with the same arguments.
    """
    if minutes is not None and not minutes > 0:
        raise BadValue(f"a run of {minutes:g} minutes does nothing; give more than 0, or leave it out.")
    dataset = open_dataset(data)
    with ranks(device, sharing) as group:
        task = _task(settings, dataset, group, None if begin_with is None else find_model(begin_with))
        return train(task, Path(folder), group, resume=resume, minutes=minutes, on_progress=on_progress)


def recipe(kind: str, size: str, *, ablation: str | None = None, changes: Sequence[str] = ()) -> GeneratorSettings | RetrieverSettings:
    """The settings of that name: `recipe("generator", "small", changes=["batch=64"])`.

    `ablation` takes away what the paper took away under that name; `changes` are settings as 'field=value'.
    """
    if kind not in RECIPES:
        raise BadValue(f"there is no training of '{kind}'; choose {' or '.join(RECIPES)}.")
    if size not in RECIPES[kind]:
        raise BadValue(f"there is no {kind} of size '{size}'; choose {', '.join(RECIPES[kind])}.")
    settings = RECIPES[kind][size]()
    if ablation is not None:
        if not isinstance(settings, GeneratorSettings):
            raise BadValue(f"ablations are of generators; leave --ablation out for '{kind}'.")
        if ablation not in ABLATIONS:
            raise BadValue(f"there is no ablation '{ablation}'; choose {', '.join(ABLATIONS)}.")
        settings = ABLATIONS[ablation](settings)
    return with_changes(settings, changes)


def _task(settings: GeneratorSettings | RetrieverSettings, dataset: Dataset, group: Ranks, begin_with: Path | None) -> Task:
    # without the cache on disk: a dataset has tens of thousands of sentences, and encodes them in seconds
    encoder, forms = text_encoder(settings.text_encoder, device=group.device.type, cached=False), forms_of(dataset.folder)
    if isinstance(settings, RetrieverSettings):
        if begin_with is not None:
            raise BadValue("a retriever is trained from nothing; leave --begin-with out.")
        return RetrieverTask(settings, dataset, encoder, group, forms=forms)
    return GeneratorTask(settings, dataset, encoder, group, forms=forms, begin_with=begin_with)
