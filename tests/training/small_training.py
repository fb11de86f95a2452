"""A generator's training made small: settings and a task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from made_up import MadeUp

from bunraku.datasets.forms import sentence_forms
from bunraku.datasets.store import Dataset
from bunraku.generator.backbone import BackboneConfig
from bunraku.generator.denoiser import DenoiserConfig
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



def with_loop(settings: GeneratorSettings = SMALL, **changes: Any) -> GeneratorSettings:
    return replace(settings, loop=replace(settings.loop, **changes))


def forms(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return sentence_forms(text, paraphrases=0)


def task_of(dataset: Dataset, settings: GeneratorSettings = SMALL, ranks: Ranks | None = None, **options: Any) -> GeneratorTask:
    return GeneratorTask(settings, dataset, MadeUp(BACKBONE.text_width), ranks or Ranks(), forms=forms, **options)
