"""Sentences as video models read them: T5's features, worked out once, after which the encoder (5 billion weights) is let go.

Every model pads to a length of its own, and treats the padding differently:

    CogVideoX   padding is encoded like words and attended to
    Wan         features of the padding are set to zero
    LTX         a mask says what to attend to
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.priors.parts import PartsFolder
from bunraku.priors.prior import require_text

Padding = Literal["words", "zeros", "mask"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Words:
    """An empty sentence and the one that was asked for, in that order."""

    features: Float[Tensor, "2 S W"]
    mask: Bool[Tensor, "2 S"]  # which tokens are words


def encode_words(
    parts: PartsFolder, text: str, *, most: int, padding: Padding, kind: Any, dtype: torch.dtype, device: torch.device, negative: str = ""
) -> Words:
    """Loads tokenizer and encoder, reads the text, and lets them go. `kind` is the encoder's class in transformers."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(parts.folder / "tokenizer")
    tokens = tokenizer([negative, require_text(text)], padding="max_length", max_length=most, truncation=False, return_tensors="np")
    long = max(len(row) for row in tokens["input_ids"])
    if long > most:
        words = tokenizer(text)["input_ids"]
        raise BadValue(f"the text has {len(words)} tokens, and this model reads {most}; say it in fewer words.")
    ids, mask = torch.as_tensor(tokens["input_ids"], device=device), torch.as_tensor(tokens["attention_mask"], device=device)
    encoder = tied(parts.load("text_encoder", kind, dtype, device))
    with torch.no_grad():
        features = encoder(ids, mask if padding == "zeros" else None).last_hidden_state
    here = mask.bool()
    if padding == "zeros":
        features = features * here[..., None]
    return Words(features=features.to(dtype), mask=here)


def tied(encoder: Any) -> Any:
    """An encoder whose table of tokens is the one that was in the file: some versions of transformers leave UMT5's empty."""
    shared, used = getattr(encoder, "shared", None), getattr(getattr(encoder, "encoder", None), "embed_tokens", None)
    if shared is not None and used is not None and used.weight is not shared.weight and not bool(used.weight.any()):
        encoder.encoder.embed_tokens = shared
    return encoder
