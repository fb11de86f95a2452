"""What was encoded once is kept on disk: one small safetensors file per encoder and text.

    <cache>/text/<encoder's name>/<first 32 digits of the text's SHA-256>.safetensors

A file that is damaged, or belongs to another text or encoder, counts as absent and is written anew.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import final

import torch

from bunraku.errors import BunrakuError
from bunraku.files.disk import write_atomically
from bunraku.generator.text.encoder import TextEmbedding, TextEncoder
from bunraku.generator.text.tensors import read_tensors

FOLDER_VARIABLE = "BUNRAKU_CACHE"


def cache_folder() -> Path:
    """Where Bunraku keeps what it can make again: $BUNRAKU_CACHE, or the platform's place for such things."""
    if chosen := os.environ.get(FOLDER_VARIABLE):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "bunraku" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "bunraku"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bunraku"


@final
class CachedEncoder(TextEncoder):
    """An encoder that is asked only for texts it has not encoded before, all of them at once."""

    def __init__(self, encoder: TextEncoder, folder: str | os.PathLike[str] | None = None) -> None:
        self._encoder = encoder
        self._root = Path(folder) if folder is not None else cache_folder() / "text"
        self._can_write = True

    @property
    def name(self) -> str:
        return self._encoder.name

    @property
    def width(self) -> int:
        return self._encoder.width

    def prepare(self, text: str) -> str:
        return self._encoder.prepare(text)

    def embed(self, texts: Sequence[str]) -> list[TextEmbedding]:
        found = {text: self._read(text) for text in texts}
        missing = [text for text, embedding in found.items() if embedding is None]
        for text, embedding in zip(missing, self._encoder.embed(missing) if missing else [], strict=True):
            found[text] = embedding
            self._write(text, embedding)
        return [embedding for embedding in found.values() if embedding is not None]

    def _path(self, text: str) -> Path:
        name = re.sub(r"[^\w.-]", "_", self.name)[:60]
        if name != self.name:  # a service may call itself anything: names that look alike must not share a folder
            name += "-" + hashlib.sha256(self.name.encode()).hexdigest()[:8]
        return self._root / name / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.safetensors"

    def _read(self, text: str) -> TextEmbedding | None:
        path = self._path(text)
        if not path.is_file():
            return None
        try:
            tensors, header = read_tensors(path)
            tokens, pooled = tensors["tokens"], tensors["pooled"]
        except (BunrakuError, KeyError):
            return None
        fits = pooled.shape == (self.width,) and tokens.ndim == 2 and tokens.shape[1] == self.width and pooled.dtype == tokens.dtype == torch.float32
        ours = header.get("text") == text and header.get("encoder") == self.name
        if not (fits and ours and bool(torch.isfinite(tokens).all()) and bool(torch.isfinite(pooled).all())):
            return None
        return TextEmbedding(tokens=tokens, pooled=pooled)

    def _write(self, text: str, embedding: TextEmbedding) -> None:
        from safetensors.torch import save_file

        if not self._can_write or not bool(torch.isfinite(embedding.pooled).all()):
            return
        path = self._path(text)
        tensors = {"tokens": embedding.tokens.contiguous(), "pooled": embedding.pooled.contiguous()}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, lambda temporary: save_file(tensors, temporary, metadata={"text": text, "encoder": self.name}))
        except (OSError, BunrakuError) as error:
            self._can_write = False
            where = f"texts cannot be kept in '{self._root}' ({error}) and will be encoded again next time"
            warnings.warn(f"{where}; set {FOLDER_VARIABLE} to a folder that can be written.", stacklevel=4)
