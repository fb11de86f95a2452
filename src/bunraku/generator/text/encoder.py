"""What a text encoder is, and what it says of a batch of prompts: features per token, and one vector for the whole text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.errors import BadValue


@dataclass(frozen=True, kw_only=True, eq=False)
class TextEmbedding:
    """One text of n tokens: what encoders make, what files, services and the cache hold.

    An encoder that knows only the vector gives it as the one token: the released denoiser's text slots hold exactly that.
    """

    tokens: Float[Tensor, "n D"]
    pooled: Float[Tensor, "D"]


@dataclass(frozen=True, kw_only=True, eq=False)
class TextFeatures:
    """B prompts, padded to the longest one's S tokens; float32. An empty prompt has no token and a vector of zeros.

    S is 0 where every prompt is empty. What is padded is zero.
    """

    tokens: Float[Tensor, "B S D"]
    mask: Bool[Tensor, "B S"]  # True = present
    pooled: Float[Tensor, "B D"]

    def __len__(self) -> int:
        return self.pooled.shape[0]

    @property
    def width(self) -> int:
        return self.pooled.shape[-1]

    def to(self, *args: Any) -> TextFeatures:
        """The same features on another device or of another dtype, as `Tensor.to`; the mask stays bool."""
        pooled = self.pooled.to(*args)
        return TextFeatures(tokens=self.tokens.to(*args), mask=self.mask.to(pooled.device), pooled=pooled)


class TextEncoder(ABC):
    """Prompts to `TextFeatures`. Concrete encoders are final and say only how distinct texts that are not empty become numbers."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Which numbers these are: model, version, a hash of the weights. Two encoders of one name agree on every text."""

    @property
    @abstractmethod
    def width(self) -> int:
        """D, the length of every vector."""

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> list[TextEmbedding]:
        """Each of these texts, which are prepared, distinct and not empty; float32 on the CPU, without gradient."""

    def prepare(self, text: str) -> str:
        """The text as the encoder reads it: prompts that are prepared alike are one prompt, encoded once."""
        return text.strip()

    @final
    def encode(self, texts: Sequence[str]) -> TextFeatures:
        """One row per text, in the order given, on the CPU. A text that occurs twice is encoded once."""
        if isinstance(texts, str):
            raise BadValue(f"encode takes a list of texts; got the single text '{texts}': write encode([text]).")
        for text in texts:
            if any("\ud800" <= letter <= "\udfff" for letter in text):
                raise BadValue(f"the prompt {text!a} is not valid text; write it in UTF-8.")
        prepared = [self.prepare(text) for text in texts]
        distinct = [text for text in dict.fromkeys(prepared) if text]
        known = dict(zip(distinct, self.embed(distinct) if distinct else [], strict=True))
        for text, embedding in known.items():
            if not (torch.isfinite(embedding.pooled).all() and torch.isfinite(embedding.tokens).all()):
                raise BadValue(f"the text encoder '{self.name}' made numbers that are not finite of '{text}'; check its weights or its source.")
        return _padded([known.get(text) for text in prepared], self.width)


@final
class NoText(TextEncoder):
    """The encoder for models that are driven by constraints alone: every text is as if it were empty."""

    def __init__(self, width: int = 384) -> None:
        self._width = width

    @property
    def name(self) -> str:
        return "none"

    @property
    def width(self) -> int:
        return self._width

    def prepare(self, text: str) -> str:
        return ""

    def embed(self, texts: Sequence[str]) -> list[TextEmbedding]:
        raise AssertionError("no text is left to embed once every text is empty")


def _padded(rows: Sequence[TextEmbedding | None], width: int) -> TextFeatures:
    longest = max((len(row.tokens) for row in rows if row is not None), default=0)
    tokens = torch.zeros(len(rows), longest, width)
    mask = torch.zeros(len(rows), longest, dtype=torch.bool)
    pooled = torch.zeros(len(rows), width)
    for i, row in enumerate(rows):
        if row is not None:
            tokens[i, : len(row.tokens)] = row.tokens
            mask[i, : len(row.tokens)] = True
            pooled[i] = row.pooled
    return TextFeatures(tokens=tokens, mask=mask, pooled=pooled)
