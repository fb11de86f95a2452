"""The retriever's training: it learns to tell three walks apart, goes on bit for bit, and what it writes can be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made_up import MadeUp
from small_training import BACKBONE, forms

from bunraku.datasets.store import Dataset
from bunraku.errors import BadValue
from bunraku.retrieval.checkpoint import load_retriever
from bunraku.retrieval.model import RetrieverConfig, embed_motions
from bunraku.training.loop import train
from bunraku.training.ranks import Ranks
from bunraku.training.retriever_task import RetrieverSettings, RetrieverTask
from bunraku.training.run_folder import RunFolder, read_log
from bunraku.training.settings import LoopSettings

CONFIG = RetrieverConfig(width=32, feed_width=64, heads=4, motion_layers=1, text_layers=1, text_width=BACKBONE.text_width, latent=16, dropout=0.0)
LOOP = LoopSettings(
    steps=4, batch=6, learning_rate=3e-3, warmup=1, precision="float32", log_every=1, checkpoint_every=2, ema_every=1, ema_decay=0.5, optimiser="adamw"
)
SETTINGS = RetrieverSettings(retriever=CONFIG, loop=LOOP)


def task_of(walks: Dataset, settings: RetrieverSettings = SETTINGS) -> RetrieverTask:
    return RetrieverTask(settings, walks, MadeUp(), Ranks(), forms=forms)


def test_it_learns_and_what_it_writes_can_be_read(walks: Dataset, tmp_path: Path) -> None:
    train(task_of(walks, replace(SETTINGS, loop=replace(LOOP, steps=60, batch=12, log_every=10, checkpoint_every=60))), tmp_path, Ranks())
    losses = [row["loss"] for row in read_log(tmp_path)]
    assert losses[-1] < 0.7 * losses[0]
    retriever = load_retriever(tmp_path / "model")
    vectors = embed_motions(retriever, [walks.features(clip) for clip in walks.of_split("train")])
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(3), atol=1e-4, rtol=0)


def test_two_steps_and_two_more_are_four(walks: Dataset, tmp_path: Path) -> None:
    train(task_of(walks), tmp_path / "straight", Ranks())
    with pytest.raises(KeyboardInterrupt):
        train(task_of(walks), tmp_path / "broken", Ranks(), on_progress=lambda now: _stop(now.step))
    train(task_of(walks), tmp_path / "broken", Ranks(), resume=True)
    ours, theirs = (RunFolder(tmp_path / name).newest() for name in ("broken", "straight"))
    assert ours is not None
    assert theirs is not None
    assert ours["step"] == theirs["step"] == 4
    assert all(torch.equal(ours["net"][name], theirs["net"][name]) for name in theirs["net"])


def _stop(step: int) -> None:
    if step == 3:
        raise KeyboardInterrupt


def test_an_unknown_split_is_refused(walks: Dataset) -> None:
    with pytest.raises(BadValue, match="there is no split 'exam'; choose train, val or test"):
        task_of(walks, replace(SETTINGS, splits=("exam",)))
