"""Embeddings made elsewhere and kept in a file: for machines that cannot run the encoder.

`.npz` or `.safetensors`, N texts of width D:

    texts    N texts                (safetensors: the header's "texts", a JSON list)
    pooled   (N D)                  one vector a text
    tokens   (sum of counts, D)     optional: the texts' tokens, one text after the other
    counts   (N)                    optional: how many tokens each text has
    encoder  the encoder's name     optional                 (safetensors: in the header)

Without tokens the vector stands as the one token. `write_embeddings` makes such a file with any encoder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bunraku.errors import BadValue, FileProblem, FormatProblem
from bunraku.files.archive import Archive, write_archive
from bunraku.files.disk import write_atomically
from bunraku.generator.text.encoder import TextEmbedding, TextEncoder
from bunraku.generator.text.sanitize import sanitize_text
from bunraku.generator.text.tensors import file_hash, read_tensors

SUFFIXES = (".npz", ".safetensors")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Table:
    texts: list[str]
    pooled: Float[Tensor, "N D"]
    tokens: Float[Tensor, "T D"]
    counts: Int[Tensor, "N"]
    encoder: str | None


@final
class Precomputed(TextEncoder):
    """The embeddings in a file. A prompt is found as it is written, or as it is after tidying: "Walk" finds "walk."."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        table = _read(self._path)
        self._encoder, self._width = table.encoder or f"file-{file_hash(self._path)[:12]}", table.pooled.shape[1]
        parts = table.tokens.split(table.counts.tolist())
        self._rows = {text.strip(): TextEmbedding(tokens=parts[i], pooled=table.pooled[i]) for i, text in enumerate(table.texts)}
        self._tidied = {sanitize_text(text): text for text in self._rows}

    @property
    def name(self) -> str:
        return self._encoder

    @property
    def width(self) -> int:
        return self._width

    def prepare(self, text: str) -> str:
        text = text.strip()
        return text if text in self._rows else self._tidied.get(sanitize_text(text), text)

    def embed(self, texts: Sequence[str]) -> list[TextEmbedding]:
        missing = [text for text in texts if text not in self._rows]
        if missing:
            listed = ", ".join(f"'{text}'" for text in missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            raise BadValue(f"'{self._path}' holds {len(self._rows)} embeddings, but none of {listed}; add them with the encoder '{self.name}'.")
        return [self._rows[text] for text in texts]


def write_embeddings(path: str | os.PathLike[str], encoder: TextEncoder, texts: Sequence[str]) -> None:
    """Encodes the texts and writes them as a file for `Precomputed`, `.npz` or `.safetensors`."""
    path = Path(path)
    _require_suffix(path)
    texts = list(dict.fromkeys(text.strip() for text in texts if text.strip()))
    if not texts:
        raise BadValue(f"there is no text to embed for '{path}'; give at least one that is not empty.")
    features = encoder.encode(texts)
    arrays = {"pooled": features.pooled.numpy(), "tokens": features.tokens[features.mask].numpy(), "counts": features.mask.sum(1).numpy()}
    if path.suffix == ".npz":
        write_archive(path, {"texts": np.array(texts), "encoder": np.array(encoder.name), **arrays})
        return
    from safetensors.numpy import save_file

    header = {"texts": json.dumps(texts), "encoder": encoder.name}
    write_atomically(path, lambda temporary: save_file(arrays, temporary, metadata=header))


def _require_suffix(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise FileProblem(f"'{path}' is no file of embeddings; they end in {' or '.join(SUFFIXES)}.")


def _read(path: Path) -> _Table:
    _require_suffix(path)
    if path.suffix == ".npz":
        archive = Archive(path)
        texts = [str(text) for text in np.atleast_1d(archive.array("texts"))]
        tensors = {name: torch.from_numpy(archive.numbers(name)) for name in ("pooled", "tokens", "counts") if name == "pooled" or name in archive}
        encoder = archive.text("encoder") if "encoder" in archive else None
    else:
        tensors, header = read_tensors(path)
        try:
            texts = [str(text) for text in json.loads(header["texts"])]
        except (KeyError, ValueError, TypeError) as error:
            raise FormatProblem(f"the header of '{path}' has no JSON list 'texts' ({error}); write the file with write_embeddings.") from error
        encoder = header.get("encoder")
    if "pooled" not in tensors:
        raise FormatProblem(f"'{path}' has no array 'pooled' (it has: {', '.join(tensors) or 'nothing'}); write the file with write_embeddings.")
    pooled = tensors["pooled"].float()
    if pooled.ndim != 2 or len(pooled) != len(texts) or pooled.shape[1] == 0:
        raise FormatProblem(f"'{path}': 'pooled' has the shape {tuple(pooled.shape)}; one row for each of {len(texts)} texts is needed.")
    tokens, counts = tensors.get("tokens"), tensors.get("counts")
    if tokens is None or counts is None:
        tokens, counts = pooled, torch.ones(len(texts))
    counts, tokens = counts.long(), tokens.float()
    if counts.shape != (len(texts),) or counts.min() < 0 or tokens.shape != (int(counts.sum()), pooled.shape[1]):
        raise FormatProblem(f"'{path}': 'tokens' has the shape {tuple(tokens.shape)}, but 'counts' of {len(texts)} texts add up to {int(counts.sum())}.")
    return _Table(texts=texts, pooled=pooled, tokens=tokens, counts=counts, encoder=encoder)
