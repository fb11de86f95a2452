"""What tests of evaluation share: a dataset of walks, a model that can draw one thing, a judge whose numbers are made up."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import torch

import bunraku
from bunraku.datasets.build import build
from bunraku.datasets.clip import About, Split
from bunraku.datasets.source import Heard, Recording
from bunraku.datasets.store import Dataset
from bunraku.generator.checkpoint import Model
from bunraku.generator.denoiser import Condition, Denoiser, DenoiserConfig
from bunraku.generator.features import FeatureLayout, canonical_features, encode
from bunraku.generator.ready import Generator, open_generator
from bunraku.kinematics.edit import place
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.walk import walk
from bunraku.retrieval.lessons import Lessons
from bunraku.retrieval.model import Retriever, RetrieverConfig
from bunraku.trials.measure import Judge
from tests.generator.tiny import SMALL, denoiser_of, layout_of, stats_of, walking
from tests.training.made_up import MadeUp

SENTENCES = ("A person walks forward.", "A man strides to the left.", "Someone strolls with the right hand up.", "A woman marches.", "He ambles along.")
SPLITS: tuple[Split, ...] = ("train", "train", "test", "test", "test")
CONFIG = RetrieverConfig(width=16, feed_width=32, heads=2, motion_layers=1, text_layers=1, text_width=8, latent=12, dropout=0.0)


class Walks:
    """A source of five walks of 3.2 to 4 seconds: two to train on, three held out."""

    about = About(name="walks", licence="CC0-1.0", credits=("Made from formulas.",))

    def recordings(self) -> list[Recording]:
        return [
            Recording(name=f"walk{number}", split=split, captions=(Heard(text=SENTENCES[number], source="made"),), about_frames=60)
            for number, split in enumerate(SPLITS)
        ]

    def unusable(self) -> list[tuple[str, str]]:
        return []

    def load(self, recording: Recording) -> Motion:
        number = int(recording.name.removeprefix("walk"))
        return place(walk(bunraku.skeleton("soma30"), seconds=3.2 + 0.2 * number, speed=0.8 + 0.2 * number), (0.3 * number, 1.0), math.pi * number / 3)


class LongWalker(Denoiser):
    """Whatever it is asked, it draws a walk along +Z, of up to four seconds: clean motion, deaf to words and constraints."""

    def forward(self, x: torch.Tensor, level: torch.Tensor, condition: Condition) -> torch.Tensor:
        spread = self.stats.features
        return ((_walk()[: x.shape[1]] - spread.mean) / spread.scale).expand_as(x)


@cache
def _walk() -> torch.Tensor:
    layout = layout_of("soma30")
    return canonical_features(layout, encode(layout, walking(layout, seconds=4.0)))


def walker() -> LongWalker:
    layout = layout_of("soma30")
    torch.manual_seed(1)  # a take belongs to the weights it was drawn with
    return LongWalker(DenoiserConfig(backbone=SMALL), layout, stats_of(layout)).eval().requires_grad_(False)


def walks_in(folder: Path) -> Dataset:
    return build(Walks(), folder, workers=1)


def generator_of(denoiser: Denoiser | None = None, name: str = "soma30") -> Generator:
    """A small random model that reads no words, or the denoiser given."""
    return open_generator(Model(name="tiny", denoiser=denoiser or denoiser_of(name), text_encoder="none", max_seconds=10.0), device="cpu")


def retriever_of(dataset: Dataset, seed: int = 0) -> Retriever:
    lessons = Lessons(dataset, dataset.of_split("train"), MadeUp(CONFIG.text_width))
    torch.manual_seed(seed)
    layout = FeatureLayout(skeleton=dataset.skeleton, fps=dataset.fps)
    return Retriever(CONFIG, layout, lessons.spread, text_encoder="made-up").eval().requires_grad_(False)


def judge_of(dataset: Dataset) -> Judge:
    return Judge(retriever_of(dataset), MadeUp(CONFIG.text_width))
