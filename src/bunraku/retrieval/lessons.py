"""What a retriever learns from: every described stretch of a dataset as views and sentences, at hand on the device that trains.

A view takes 370 bytes a frame in half precision: ten hours are 400 MB. Views know neither place nor heading, so they are worked out
once; the mirror image is made of them as they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bunraku.datasets.clip import Caption
from bunraku.datasets.store import Dataset
from bunraku.errors import BadValue
from bunraku.generator.stats import Spread
from bunraku.generator.text.encoder import TextEncoder, TextFeatures
from bunraku.retrieval.contrast import Pairs
from bunraku.retrieval.sentences import opposite_codes
from bunraku.retrieval.view import mirror_view, motion_view

LONGEST = 300  # [frames] of one lesson; of a longer stretch a part is taken
SHORTEST = 8  # [frames]
TRIM = 0.1  # share of a stretch that may be left out at either end, so that no two lessons are the same
_TEXTS_AT_ONCE = 256

Forms = Callable[[str], tuple[Sequence[str], Sequence[str]]]  # a sentence to its forms: of the motion as it is, of its mirror image


def plain_forms(text: str) -> tuple[Sequence[str], Sequence[str]]:
    """The sentence alone; its mirror image is not known."""
    return (text,), ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Draw:
    """B lessons: which stretch, which frames of it, which sentence, mirrored or not."""

    stretch: Int[np.ndarray, " B"]
    first: Int[np.ndarray, " B"]  # row of the table of frames
    frames: Int[np.ndarray, " B"]
    text: Int[np.ndarray, " B"]
    mirrored: Bool[np.ndarray, " B"]

    def part(self, rows: range) -> Draw:
        own = slice(rows.start, rows.stop)
        return Draw(**{name: value[own] for name, value in vars(self).items()})


class Lessons:
    """All described stretches of some clips."""

    def __init__(
        self,
        dataset: Dataset,
        clips: Sequence[int],
        encoder: TextEncoder,
        *,
        forms: Forms = plain_forms,
        device: torch.device | str = "cpu",
        on_progress: Callable[[float], None] | None = None,
    ) -> None:
        self.skeleton, self.device = dataset.skeleton, torch.device(device)
        self._views, first_row, self.spread = _view_table(dataset, clips, self.device)
        numbers: dict[str, int] = {}
        stretches: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
        for clip in clips:
            for caption in dataset.clips[clip].captions:
                if caption.stop - caption.start >= SHORTEST:
                    _tell(stretches.setdefault((int(first_row[clip]) + caption.start, caption.stop - caption.start), ([], [])), caption, forms, numbers)
        told = [(place, sides) for place, sides in stretches.items() if sides[0] or sides[1]]
        if len(told) < 2:
            raise BadValue(f"'{dataset.folder}' has {len(told)} described stretches to learn from; at least 2 are needed.")
        self.first, self.frames = (np.array([place[i] for place, _ in told]) for i in (0, 1))
        self._texts = [sides for _, sides in told]
        self.texts = list(numbers)
        self._tokens, self._starts, self._lengths, self._pooled = _text_table(self.texts, encoder, self.device, on_progress)
        self._codes = opposite_codes(self.texts).to(self.device)

    def __len__(self) -> int:
        return len(self._texts)

    def draw(self, seed: int, step: int, batch: int) -> Draw:
        """The lessons of a step: every stretch once before any comes again, the same for whoever draws them."""
        rng = np.random.Generator(np.random.Philox(key=[seed % 2**64, step]))
        places = np.arange(step * batch, (step + 1) * batch)
        rounds = places // len(self)
        stretch = np.concatenate([_shuffled(len(self), seed, turn)[places[rounds == turn] % len(self)] for turn in np.unique(rounds).tolist()])
        dice = rng.random((5, batch))
        whole = np.minimum(self.frames[stretch], LONGEST)
        frames = np.maximum(np.round(whole * (1 - TRIM * (dice[0] + dice[1]) * (dice[2] < 0.5))).astype(int), np.minimum(SHORTEST, whole))
        first = self.first[stretch] + np.floor(rng.random(batch) * (self.frames[stretch] - frames + 1)).astype(int)
        text, mirrored = np.zeros(batch, dtype=int), np.zeros(batch, dtype=bool)
        for row, number in enumerate(stretch):
            plain, swapped = self._texts[number]
            mirrored[row] = bool(swapped) and (not plain or dice[3, row] < 0.5)
            choice = swapped if mirrored[row] else plain
            text[row] = choice[int(dice[4, row] * len(choice))]
        return Draw(stretch=stretch, first=first, frames=frames, text=text, mirrored=mirrored)

    def pairs(self, draw: Draw) -> Pairs:
        """The batch of a draw."""
        views, valid = _gathered(self._views, torch.from_numpy(draw.first), torch.from_numpy(draw.frames))
        views = views.float()
        mirrored = torch.from_numpy(draw.mirrored).to(self.device)
        views = torch.where(mirrored[:, None, None], mirror_view(self.skeleton, views), views)
        text = torch.from_numpy(draw.text)
        codes = self._codes[text.to(self.device)]
        # a stretch and its mirror image are two motions: sentences that fit both are alike and left out by that
        motions = torch.from_numpy(2 * draw.stretch + draw.mirrored).to(self.device)
        return Pairs(views=views, valid=valid, text=self.text_features(text), codes=codes, motions=motions)

    def text_features(self, numbers: Int[Tensor, " B"]) -> TextFeatures:
        """Of sentences by their number in `texts`."""
        tokens, mask = _gathered(self._tokens, self._starts[numbers], self._lengths[numbers])
        return TextFeatures(tokens=tokens.float(), mask=mask, pooled=self._pooled[numbers.to(self.device)])


def _tell(sides: tuple[list[int], list[int]], caption: Caption, forms: Forms, numbers: dict[str, int]) -> None:
    plain, swapped = forms(caption.text)
    for side, texts in zip(sides, (swapped, plain) if caption.mirrored else (plain, swapped), strict=True):
        side += [numbers.setdefault(text, len(numbers)) for text in texts]


def _shuffled(count: int, seed: int, turn: int) -> Int[np.ndarray, " N"]:
    return np.random.Generator(np.random.Philox(key=[(seed + 1) % 2**64, int(turn)])).permutation(count)


def _view_table(dataset: Dataset, clips: Sequence[int], device: torch.device) -> tuple[Float[Tensor, "R V"], Int[np.ndarray, " C"], Spread]:
    """The views of whole clips one after the other in half precision, the first row of each clip, and their spread."""
    first, parts, rows = np.full(len(dataset.clips), -1), [], 0
    for clip in clips:
        view = motion_view(dataset.layout, dataset.features(clip))
        first[clip], rows = rows, rows + len(view)
        parts.append(view.half())
    views = torch.cat(parts) if parts else torch.zeros(0, 1)
    mean = views.mean(0, dtype=torch.float64)
    variance = sum(((part.double() - mean) ** 2).sum(0) for part in parts) / max(rows, 1)
    mean = (mean + mirror_view(dataset.skeleton, mean[None])[0]) / 2  # mirrored lessons are as many
    spread = Spread(mean=mean.float(), std=torch.as_tensor(variance).sqrt().float())
    return views.to(device), first, spread


def _text_table(
    texts: Sequence[str], encoder: TextEncoder, device: torch.device, on_progress: Callable[[float], None] | None
) -> tuple[Float[Tensor, "T W"], Int[Tensor, " N"], Int[Tensor, " N"], Float[Tensor, "N W"]]:
    """All tokens one after the other in half precision, where each sentence's begin and how many they are, and the pooled vectors."""
    tokens, pooled, lengths = [], [], []
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        found = encoder.encode(list(texts[first : first + _TEXTS_AT_ONCE]))
        tokens.append(found.tokens[found.mask].half())
        pooled.append(found.pooled)
        lengths.append(found.mask.sum(dim=1))
        if on_progress is not None:
            on_progress(min(first + _TEXTS_AT_ONCE, len(texts)) / len(texts))
    counts = torch.cat(lengths)
    return torch.cat(tokens).to(device), counts.cumsum(0) - counts, counts, torch.cat(pooled).to(device)


def _gathered(table: Float[Tensor, "R W"], first: Int[Tensor, " B"], lengths: Int[Tensor, " B"]) -> tuple[Float[Tensor, "B L W"], Bool[Tensor, "B L"]]:
    """Runs of rows, padded with zeros to the longest."""
    at = torch.arange(int(lengths.max()) if len(lengths) else 0)
    valid = (at < lengths[:, None]).to(table.device)
    index = (first[:, None] + torch.minimum(at, (lengths[:, None] - 1).clamp_min(0))).to(table.device)
    return table[index] * valid[..., None], valid
