"""Retrievers that evaluate generators. `bunraku train tmr small …`."""

from __future__ import annotations

from bunraku.training.retriever_task import RetrieverSettings
from bunraku.training.settings import LoopSettings


def small() -> RetrieverSettings:
    """8.4 M weights, 16 MiB in half precision: the one that comes with the package."""
    return RetrieverSettings(loop=LoopSettings(steps=6000, batch=512, learning_rate=3e-4, warmup=300, cooldown=0.5, checkpoint_every=1000, weight_decay=0.01))


SIZES = {"small": small}
