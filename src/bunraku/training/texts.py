"""The sentences of a dataset as a network reads them: rows for its text slots, encoded once before training and kept on the device."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.generator.checkpoint import Model
from bunraku.generator.text.encoder import TextEncoder
from bunraku.generator.text_slots import slot_rows
from bunraku.training.moving import moved

AT_ONCE = 256  # sentences given to the encoder


class TextTable:
    """One table of rows a sentence; the last one, all zeros, is that of no text."""

    def __init__(
        self,
        model: Model,
        encoder: TextEncoder,
        texts: Sequence[str],
        device: torch.device,
        on_progress: Callable[[float], None] | None = None,
    ) -> None:
        rows: list[Tensor] = []
        cut = 0
        for first in range(0, len(texts), AT_ONCE):
            some = list(texts[first : first + AT_ONCE])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of each long sentence; they are counted instead
                found, notes = slot_rows(model, encoder.encode(some), some)
            rows += [row.half() for row in found]
            cut += sum(note is not None for note in notes)
            if on_progress is not None:
                on_progress((first + len(some)) / len(texts))
        self.cut = cut  # how many sentences have more tokens than the network has slots
        self.slots = max((len(row) for row in rows), default=1)
        table = torch.zeros(len(rows) + 1, max(self.slots, 1), model.denoiser.config.backbone.text_width, dtype=torch.float16)
        for number, row in enumerate(rows):
            table[number, : len(row)] = row
        self._table = table.to(device)

    def rows(self, numbers: np.ndarray) -> Float[Tensor, "B S W"]:
        """The rows of those sentences; −1 is no text."""
        at = moved(np.where(numbers < 0, len(self._table) - 1, numbers), self._table.device)
        return self._table[at].float()
