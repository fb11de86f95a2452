"""A model ready to draw: its denoiser on a device, and the text encoder it was trained with, opened at the first prompt."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import get_args

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.generator.checkpoint import Model, load_model
from bunraku.generator.models import find_model
from bunraku.generator.placing import Precision, place_denoiser
from bunraku.generator.text.encoder import TextEncoder
from bunraku.generator.text_slots import slot_rows
from bunraku.kinematics.skeleton import Skeleton

PRECISIONS = get_args(Precision)


class Generator:
    """What `generate` draws with. Opening one takes longer than drawing with it: keep it for many prompts."""

    def __init__(self, model: Model, *, text_encoder: str | None = None) -> None:
        self.model = model
        self.text_encoder = model.text_encoder if text_encoder is None else text_encoder

    @property
    def skeleton(self) -> Skeleton:
        """The skeleton that constraints are on."""
        return self.model.layout.skeleton

    @property
    def longest_run(self) -> int:
        """Frames in one run of the model."""
        return round(self.model.max_seconds * self.model.layout.fps)

    @cached_property
    def _encoder(self) -> TextEncoder:
        from bunraku.generator.text.open import text_encoder

        return text_encoder(self.text_encoder, width=self.model.denoiser.config.backbone.text_width)

    def text_rows(self, texts: Sequence[str]) -> tuple[dict[str, Float[Tensor, "S W"]], dict[str, str]]:
        """What the denoiser's text slots hold for each text; and, for texts that were not read to the end, a note that says so.

        Without any words no encoder is opened: constraints alone need none.
        """
        distinct = list(dict.fromkeys(texts))
        worded = [text for text in distinct if text.strip()]
        rows = {text: torch.zeros(0, self.model.denoiser.config.backbone.text_width) for text in distinct}
        if not worded:
            return rows, {}
        if self.text_encoder == "none":
            return rows, dict.fromkeys(worded, "the words were not read: the text encoder is 'none'")
        found, notes = slot_rows(self.model, self._encoder.encode(worded), worded)
        return rows | dict(zip(worded, found, strict=True)), {text: note for text, note in zip(worded, notes, strict=True) if note}


def open_generator(
    model: str | os.PathLike[str] | Model | None = None, *, text_encoder: str | None = None, device: str = "auto", precision: Precision = "auto"
) -> Generator:
    """A model by name or folder (None: the default one), on a device. `text_encoder` stands in for the one it was trained with."""
    if precision not in PRECISIONS:
        raise BadValue(f"there is no precision '{precision}'; choose {', '.join(PRECISIONS)}.")
    loaded = model if isinstance(model, Model) else load_model(find_model(model))
    place_denoiser(loaded.denoiser, device=device, precision=precision)
    return Generator(loaded, text_encoder=text_encoder)
