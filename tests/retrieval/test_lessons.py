"""Lessons: every stretch in its turn, crops within it, sentences and mirror images that belong to it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import bunraku
from bunraku.datasets.clip import Caption, ClipInfo
from bunraku.datasets.features import mirror_features
from bunraku.datasets.store import Dataset
from bunraku.generator.features import FeatureLayout, encode
from bunraku.generator.text.encoder import TextEmbedding, TextEncoder
from bunraku.kinematics.walk import walk
from bunraku.retrieval.lessons import LONGEST, Lessons
from bunraku.retrieval.view import motion_view


class Letters(TextEncoder):
    """A token a letter, whose first number is the letter's."""

    @property
    def name(self) -> str:
        return "letters"

    @property
    def width(self) -> int:
        return 3

    def embed(self, texts: Sequence[str]) -> list[TextEmbedding]:
        rows = [torch.tensor([[float(ord(letter)), 0.5, 1.0] for letter in text]) for text in texts]
        return [TextEmbedding(tokens=row, pooled=row.mean(0)) for row in rows]


LAYOUT = FeatureLayout(skeleton=bunraku.skeleton("soma30"), smooth=False)  # a view does not look at the smoothed root


@cache
def made() -> list[torch.Tensor]:
    return [encode(LAYOUT, walk(LAYOUT.skeleton, seconds=seconds, speed=speed)) for seconds, speed in ((2, 1.0), (3, 0.6), (11, 1.4), (1, 1.0))]


class Clips(Dataset):
    """Four walks with captions, as a dataset gives them, without the disk."""

    skeleton, fps, folder = bunraku.skeleton("soma30"), 30.0, Path("walks")

    def __init__(self) -> None:
        self.layout = LAYOUT
        self.made = made()
        captions = (
            (Caption(text="goes left", start=0, stop=60), Caption(text="walks left", start=0, stop=60), Caption(text="strides", start=10, stop=40)),
            (Caption(text="turns right", start=0, stop=90, mirrored=True),),
            (Caption(text="walks far", start=0, stop=330),),
            (Caption(text="blinks", start=0, stop=4),),  # too short to learn from
        )
        told = enumerate(zip(self.made, captions, strict=True))
        self.clips = tuple(ClipInfo(name=str(i), split="train", frames=len(rows), captions=said) for i, (rows, said) in told)

    def features(self, clip: int, frames: range | None = None) -> torch.Tensor:
        return self.made[clip]


def swapped(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    other = text.replace("left", "LEFT").replace("right", "left").replace("LEFT", "right")
    return (text,), (other,)


@pytest.fixture(scope="module")
def lessons() -> Lessons:
    return Lessons(Clips(), range(4), Letters(), forms=swapped)


def test_every_stretch_before_any_again(lessons: Lessons) -> None:
    assert len(lessons) == 4
    drawn = np.concatenate([lessons.draw(0, step, 6).stretch for step in range(6)])
    for turn in range(9):
        assert sorted(drawn[4 * turn : 4 * turn + 4]) == [0, 1, 2, 3]
    assert len({tuple(drawn[4 * turn : 4 * turn + 4]) for turn in range(9)}) > 3


def test_a_step_is_the_same_for_all(lessons: Lessons) -> None:
    whole, again = lessons.draw(3, 7, 8), lessons.draw(3, 7, 8)
    for name, value in vars(whole).items():
        assert (value == getattr(again, name)).all()
    part = lessons.pairs(whole.part(range(2, 5)))
    every = lessons.pairs(whole)
    frames = part.valid.shape[1]
    assert torch.equal(part.views, every.views[2:5, :frames])
    assert torch.equal(part.motions, every.motions[2:5])
    assert (lessons.draw(4, 7, 8).first != whole.first).any()


def test_crops_lie_within_their_stretch(lessons: Lessons) -> None:
    for step in range(20):
        draw = lessons.draw(0, step, 8)
        start, length = lessons.first[draw.stretch], lessons.frames[draw.stretch]
        assert (draw.first >= start).all()
        assert (draw.first + draw.frames <= start + length).all()
        assert (draw.frames <= LONGEST).all()
        assert (draw.frames >= np.minimum(0.79 * length, 0.79 * LONGEST)).all()


def test_views_and_sentences_belong_together(lessons: Lessons) -> None:
    views = [motion_view(LAYOUT, features) for features in made()]
    mirrored = [motion_view(LAYOUT, mirror_features(LAYOUT, features)) for features in made()]
    table = np.concatenate([[0], np.cumsum([len(view) for view in views])])
    sides = {0: ({"goes left", "walks left"}, {"goes right", "walks right"}), 1: ({"strides"}, {"strides"})}
    sides |= {2: ({"turns left"}, {"turns right"}), 3: ({"walks far"}, {"walks far"})}
    seen = set()
    for step in range(10):
        draw = lessons.draw(0, step, 8)
        pairs = lessons.pairs(draw)
        for row, (stretch, flip) in enumerate(zip(draw.stretch.tolist(), draw.mirrored.tolist(), strict=True)):
            text = lessons.texts[draw.text[row]]
            assert text in sides[stretch][flip]
            seen.add((stretch, flip, text))
            clip = int(np.searchsorted(table, draw.first[row], side="right")) - 1
            first, frames = draw.first[row] - table[clip], draw.frames[row]
            true = (mirrored if flip else views)[clip][first : first + frames]
            assert int(pairs.valid[row].sum()) == frames
            torch.testing.assert_close(pairs.views[row, :frames, :91], true[:, :91], atol=0.02, rtol=0.01)
            assert not pairs.views[row, frames:].any()
            letters = pairs.text.tokens[row, pairs.text.mask[row], 0]
            assert "".join(chr(round(float(letter))) for letter in letters) == text
            assert int(pairs.motions[row]) == 2 * stretch + flip
    assert len(seen) == 10


def test_the_spread_is_that_of_the_views_and_their_mirror_images(lessons: Lessons) -> None:
    views = torch.cat([motion_view(LAYOUT, features) for features in made()])
    torch.testing.assert_close(lessons.spread.std, views.std(0, unbiased=False), atol=2e-3, rtol=2e-3)
    assert abs(float(lessons.spread.mean[0])) < 1e-6  # as much to the left as to the right


def test_without_mirror_images_only_what_was_said_is_learnt() -> None:
    plain = Lessons(Clips(), range(3), Letters())
    draws = [plain.draw(0, step, 8) for step in range(6)]
    for draw in draws:
        assert (draw.mirrored == (draw.stretch == 2)).all()  # "turns right" is said of the mirror image
    with pytest.raises(bunraku.BunrakuError, match="has 0 described stretches"):
        Lessons(Clips(), [3], Letters())
