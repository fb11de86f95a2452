"""What is drawn in a step: which stretch of which clip, which sentence about it, as it is or in the mirror.

All stretches of a step have one length, so that nothing is padded. A step draws a length, then captioned windows that are long enough.
Which ones follows from the numbers of the run and the step alone, whoever draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bunraku.datasets.clip import Split
from bunraku.datasets.store import Dataset
from bunraku.datasets.windows import caption_windows, sampling_weights
from bunraku.errors import BadValue
from bunraku.training.task import mixed

SILENT = 0.3  # weight of a clip of which nothing is said; described ones have 1 on average
LENGTHS = (20, 30, 45, 60, 80, 100, 125, 150, 180, 210, 240, 300)  # [frames]


Forms = Callable[[str], tuple[Sequence[str], Sequence[str]]]  # a sentence to its forms: of the motion as it is, of its mirror image


@dataclass(frozen=True, kw_only=True)
class Described:
    """A stretch of a clip and all that is said of it."""

    clip: int
    start: int  # [frames] of the clip
    stop: int
    weight: float  # how often it is drawn
    told: tuple[tuple[Sequence[str], Sequence[str]], ...]  # each sentence in its forms; none: motion without words


@dataclass(frozen=True, kw_only=True, eq=False)
class Draw:
    """B stretches of one length."""

    frames: int
    clip: np.ndarray  # (B) int
    first: np.ndarray  # (B) int, frame of the clip
    text: np.ndarray  # (B) int, number of the sentence; −1: none
    mirrored: np.ndarray  # (B) bool
    yaw: np.ndarray  # (B) [rad] by which it is turned


def described(dataset: Dataset, split: Split, forms: Forms) -> list[Described]:
    """The captioned windows of a split, rare actions weighing more; clips of which nothing is said come whole."""
    windows = caption_windows(dataset, split)
    found = []
    for window, weight in zip(windows, sampling_weights(dataset, windows).tolist(), strict=True):
        told = [forms(caption.text) for caption in window.captions]
        if window.mirrored:
            told = [(mirrored, plain) for plain, mirrored in told]
        found.append(Described(clip=window.clip, start=window.start, stop=window.stop, weight=weight, told=tuple(told)))
    silent = [clip for clip in dataset.of_split(split) if not dataset.clips[clip].captions]
    return found + [Described(clip=clip, start=0, stop=dataset.clips[clip].frames, weight=SILENT, told=()) for clip in silent]


class WindowSampler:
    """Draws windows, step by step. Numbers of sentences count through `texts`."""

    def __init__(
        self, windows: Sequence[Described], *, seed: int, batch: int, lengths: Sequence[int] = LENGTHS, shorter: float = 0.3, mirror: bool = True
    ) -> None:
        """`shorter`: how often a stretch is drawn that is shorter than its window must be, against one that fills it best."""
        self.seed, self.batch, self.mirror = seed, batch, mirror
        spans = np.array([window.stop - window.start for window in windows])
        usable = [length for length in sorted(lengths) if (spans >= length).any()]
        if not usable:
            raise BadValue(f"no captioned window is as long as {min(lengths)} frames; give longer clips, or a shorter length to train on.")
        self.lengths = usable
        self.clip = np.array([window.clip for window in windows])
        self.start, self.stop = np.array([window.start for window in windows]), np.array([window.stop for window in windows])
        weight = np.array([window.weight for window in windows], dtype=np.float64)
        best = np.searchsorted(usable, spans, side="right") - 1  # the length that fills a window best; −1: too short for any
        self._sums = []
        for number, length in enumerate(usable):
            shares = np.where(best == number, weight, np.where(spans >= length, shorter * weight / max(len(usable) - 1, 1), 0.0))
            self._sums.append(np.cumsum(shares))
        self._lengths = np.cumsum([sums[-1] for sums in self._sums])
        self.texts, self._forms = _numbered(windows)

    def draw(self, step: int) -> Draw:
        """The whole batch of a step."""
        rng = np.random.Generator(np.random.Philox(key=mixed(self.seed, step)))
        number = int(np.searchsorted(self._lengths, rng.random() * self._lengths[-1], side="right"))
        frames, sums = self.lengths[number], self._sums[number]
        dice = rng.random((6, self.batch))
        window = np.searchsorted(sums, dice[0] * sums[-1], side="right")
        room = self.stop[window] - self.start[window] - frames
        mirrored = (dice[2] < 0.5) & self.mirror
        return Draw(
            frames=frames,
            clip=self.clip[window],
            first=self.start[window] + np.floor(dice[1] * (room + 1)).astype(int),
            text=self._forms.pick(window, mirrored, dice[3], dice[4]),
            mirrored=mirrored,
            yaw=dice[5] * 2 * np.pi,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Forms:
    """Sentences of windows as numbers: window → sentences → forms."""

    first_told: np.ndarray  # (W + 1)
    first_form: np.ndarray  # (2, T + 1): as it is, in the mirror
    text: np.ndarray  # all forms one after the other

    def pick(self, window: np.ndarray, mirrored: np.ndarray, which: np.ndarray, form: np.ndarray) -> np.ndarray:
        """One form of one sentence of each window. The sentence itself and all its paraphrases together are equally likely."""
        count = self.first_told[window + 1] - self.first_told[window]
        told = self.first_told[window] + np.minimum((which * count).astype(int), np.maximum(count - 1, 0))
        told = np.minimum(told, self.first_form.shape[1] - 2)
        side = mirrored.astype(int)
        first, last = self.first_form[side, told], self.first_form[side, told + 1]
        others = last - first - 1
        taken = np.where((form < 0.5) | (others < 1), 0, 1 + np.minimum(((2 * form - 1) * others).astype(int), np.maximum(others - 1, 0)))
        return np.where(count > 0, self.text[np.minimum(first + taken, len(self.text) - 1)], -1)


def _numbered(windows: Sequence[Described]) -> tuple[list[str], _Forms]:
    numbers: dict[str, int] = {}
    told = [each for window in windows for each in window.told]
    text, ends = list[int](), []
    for side in (0, 1):
        row = [len(text)]
        for each in told:
            text += [numbers.setdefault(sentence, len(numbers)) for sentence in each[side]]
            row.append(len(text))
        ends.append(row)
    counts = [len(window.told) for window in windows]
    forms = _Forms(first_told=np.cumsum([0, *counts]), first_form=np.array(ends if told else [[0, 0], [0, 0]]), text=np.array(text or [-1]))
    return list(numbers), forms
