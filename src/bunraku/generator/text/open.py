"""From what a user writes to a text encoder: `minilm`, `llm2vec`, `none`, a file of embeddings, a model's folder, or a URL."""

from __future__ import annotations

from pathlib import Path

from bunraku.errors import BadValue
from bunraku.generator.text.cache import CachedEncoder
from bunraku.generator.text.encoder import NoText, TextEncoder
from bunraku.generator.text.precomputed import SUFFIXES, Precomputed

CHOICES = (
    "minilm, llm2vec, llm2vec-float32, llm2vec-8bit, llm2vec-4bit, none, a folder with all-MiniLM-L6-v2's files, "
    "a .npz or .safetensors of embeddings, or an http(s) address"
)


def text_encoder(name: str, *, device: str | None = None, width: int = 384, cached: bool = True) -> TextEncoder:
    """The encoder of this name. `device` is where it runs (default: MiniLM on the CPU, LLM2Vec on the GPU if there is one);
    `width` is the length of the zeros of `none`; `cached` keeps what it encodes on disk."""
    encoder = _open(name, device, width)
    return CachedEncoder(encoder) if cached and not isinstance(encoder, NoText | Precomputed) else encoder


def _open(name: str, device: str | None, width: int) -> TextEncoder:
    if name == "none":
        return NoText(width)
    if name.startswith(("http://", "https://")):
        from bunraku.generator.text.service import TextService

        return TextService(name)
    if name.startswith("llm2vec"):
        from bunraku.generator.text.llm2vec import VARIANTS, Llm2Vec

        if name in VARIANTS:
            return Llm2Vec(device=device, **VARIANTS[name])
    if name == "minilm" or (name and Path(name).is_dir()):
        from bunraku.generator.text.minilm import MiniLm

        return MiniLm(None if name == "minilm" else name, device=device or "cpu")
    if Path(name).suffix in SUFFIXES:
        return Precomputed(name)
    raise BadValue(f"there is no text encoder '{name}'; choose {CHOICES}.")
