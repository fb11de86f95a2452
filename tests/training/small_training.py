"""A generator's training made small: settings, an encoder of made-up numbers, a task."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from bunraku.datasets.forms import sentence_forms
from bunraku.datasets.store import Dataset
from bunraku.generator.backbone import BackboneConfig
from bunraku.generator.denoiser import DenoiserConfig
from bunraku.generator.text.encoder import TextEmbedding, TextEncoder
from bunraku.training.generator_task import GeneratorSettings, GeneratorTask
from bunraku.training.losses import LossWeights
from bunraku.training.ranks import Ranks
from bunraku.training.settings import LoopSettings

BACKBONE = BackboneConfig(width=32, feed_width=64, layers=2, heads=4, text_width=16, text_slots=8, norm="pre", qk_norm=True)
SMALL = GeneratorSettings(
    denoiser=DenoiserConfig(backbone=BACKBONE, path_smoothing=3.0, pose_smoothing=1.0),
    loop=LoopSettings(
        steps=4, batch=8, learning_rate=1e-3, warmup=1, precision="float32", log_every=1, checkpoint_every=2, ema_every=1, optimiser="adamw"
    ),
    losses=LossWeights(motion=1.0, skate=1.0),
    lengths=(20, 30),
)



class MadeUp(TextEncoder):
    """Two tokens a text, random numbers that its letters decide."""

    @property
    def name(self) -> str:
        return "made-up"

    @property
    def width(self) -> int:
        return BACKBONE.text_width

    def embed(self, texts: Sequence[str]) -> list[TextEmbedding]:
        rows = [torch.randn(2, self.width, generator=torch.Generator().manual_seed(zlib.crc32(text.encode()))) for text in texts]
        return [TextEmbedding(tokens=row, pooled=row.mean(0)) for row in rows]


def with_loop(settings: GeneratorSettings = SMALL, **changes: Any) -> GeneratorSettings:
    return replace(settings, loop=replace(settings.loop, **changes))


def forms(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return sentence_forms(text, paraphrases=0)


def task_of(dataset: Dataset, settings: GeneratorSettings = SMALL, ranks: Ranks | None = None, **options: Any) -> GeneratorTask:
    return GeneratorTask(settings, dataset, MadeUp(), ranks or Ranks(), forms=forms, **options)
