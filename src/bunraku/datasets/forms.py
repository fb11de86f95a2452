"""A sentence in all its forms: as it was written, in other words, and each of them as the mirror image would be told."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from bunraku.datasets.paraphrase import paraphrase, paraphrases_path, read_paraphrases
from bunraku.datasets.sides import mirrored_text

PARAPHRASES = 3

Sides = tuple[tuple[str, ...], tuple[str, ...]]  # forms that fit the motion, and those that fit its mirror image


def sentence_forms(text: str, paraphrases: int = PARAPHRASES, known: Mapping[str, tuple[str, ...]] | None = None) -> Sides:
    """The sentence, paraphrases that are known, and then some by rule. A sentence has the same forms always."""
    generator = torch.Generator().manual_seed(zlib.crc32(text.encode()))
    told = (known or {}).get(text.strip(), ())
    forms = tuple(dict.fromkeys([text, *told, *(paraphrase(text, generator) for _ in range(paraphrases))]))
    return forms, tuple(mirrored_text(form) for form in forms)


def forms_of(dataset: Path) -> Callable[[str], Sides]:
    """The forms of a dataset's sentences, with the paraphrases that a language model has written for them, if one was asked."""
    known = read_paraphrases(paraphrases_path(dataset))
    return lambda text: sentence_forms(text, known=known)
