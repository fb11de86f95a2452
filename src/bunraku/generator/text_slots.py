"""From what a text encoder says of a prompt to the rows that fill the denoiser's text slots."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.generator.checkpoint import Model
from bunraku.generator.text.encoder import TextFeatures

POOLED = "llm2vec"  # released models were trained with its one vector a prompt, and zeros in the other slots


def slot_rows(model: Model, features: TextFeatures, texts: Sequence[str]) -> tuple[list[Float[Tensor, "S W"]], list[str | None]]:
    """One table of rows for each prompt, and for each a note where not all of its tokens found a slot.

    What a model was trained on decides, not where the features come from: the vector of the whole text, or its tokens.
    """
    backbone = model.denoiser.config.backbone
    if features.width != backbone.text_width:
        given = f"the text encoder gives {features.width} numbers a token, but the model '{model.name}' reads {backbone.text_width}"
        raise BadValue(f"{given} (it was trained with '{model.text_encoder}'). Leave --text-encoder out, or name one of that width.")
    if model.text_encoder.startswith(POOLED):
        return [vector[None] * bool(present.any()) for vector, present in zip(features.pooled, features.mask, strict=True)], [None] * len(features)
    rows = [tokens[present] for tokens, present in zip(features.tokens, features.mask, strict=True)]
    slots = backbone.text_slots
    notes: list[str | None] = [None if len(row) <= slots else _cut(text, len(row), slots) for row, text in zip(rows, texts, strict=True)]
    for note in dict.fromkeys(note for note in notes if note is not None):
        warnings.warn(note, stacklevel=2)
    return [row[:slots] for row in rows], notes


def _cut(text: str, tokens: int, slots: int) -> str:
    line = " ".join(text.split())
    head = line if len(line) <= 40 else f"{line[:40]}…"
    return f"the prompt '{head}' has {tokens} tokens and the model {slots} text slots: the end is not read. Say it more briefly, or as several prompts."
