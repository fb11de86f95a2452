"""A text encoder of random numbers, for tests in which words must be told apart and need not mean anything."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import torch

from bunraku.generator.text.encoder import TextEmbedding, TextEncoder


class MadeUp(TextEncoder):
    """Two tokens a text, random numbers that its letters decide."""

    def __init__(self, width: int = 16) -> None:
        self._width = width

    @property
    def name(self) -> str:
        return "made-up"

    @property
    def width(self) -> int:
        return self._width

    def embed(self, texts: Sequence[str]) -> list[TextEmbedding]:
        rows = [torch.randn(2, self.width, generator=torch.Generator().manual_seed(zlib.crc32(text.encode()))) for text in texts]
        return [TextEmbedding(tokens=row, pooled=row.mean(0)) for row in rows]
