"""A dataset of a few made-up walks with sentences, converted as any other."""

from __future__ import annotations

import math
from pathlib import Path

import torch

import bunraku
from bunraku.datasets.build import build
from bunraku.datasets.clip import About, Split
from bunraku.datasets.source import Heard, Recording
from bunraku.datasets.store import Dataset
from bunraku.kinematics.edit import place
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.walk import walk

SENTENCES = ("A person walks forward.", "A man strides to the left.", "Someone walks with the right hand up.")
SPLITS: tuple[Split, ...] = ("train", "train", "train", "val", "test")


class Walks:
    """A source of five walks: three to train on."""

    about = About(name="walks", licence="CC0-1.0", credits=("Made from formulas.",))

    def recordings(self) -> list[Recording]:
        return [
            Recording(name=f"walk{number}", split=split, captions=(Heard(text=SENTENCES[number % 3], source="made"),), about_frames=60)
            for number, split in enumerate(SPLITS)
        ]

    def unusable(self) -> list[tuple[str, str]]:
        return []

    def load(self, recording: Recording) -> Motion:
        number = int(recording.name.removeprefix("walk"))
        return place(walk(bunraku.skeleton("soma30"), seconds=1.5 + 0.5 * number), (0.3 * number, 1.0), math.pi * number / 3)


def small_dataset(folder: Path) -> Dataset:
    torch.set_num_threads(1)
    return build(Walks(), folder, workers=1)
