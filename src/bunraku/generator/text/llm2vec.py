"""LLM2Vec on Llama-3-8B, the encoder of the released models: a language model whose tokens see each other both ways (arXiv 2404.05961).

A prompt becomes, as in the release (whose `!@#$%^&*()` only marks where an instruction ends and the text begins; ours is empty):

    <|begin_of_text|> <|start_header_id|>user<|end_header_id|>⏎⏎ A person walks. <|eot_id|>
    └──────────────── read, not pooled ───────────────────────┘ └── pooled: mean ────────┘

Two adapters are stacked on Meta-Llama-3-8B-Instruct: `-mntp` (which taught it to look ahead) and `-mntp-supervised`.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bunraku.errors import BadValue, FileProblem, FormatProblem
from bunraku.files.disk import read_text
from bunraku.files.hub import model_folder
from bunraku.generator.text.encoder import TextEmbedding, TextEncoder
from bunraku.generator.text.lora import CONFIG, WEIGHTS, adapter_config, merge, read_adapter, run_beside, stacked
from bunraku.generator.text.minilm import load_tokenizer
from bunraku.generator.text.sanitize import sanitize_text
from bunraku.generator.text.tensors import fingerprint

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ADAPTERS = ("McGill-NLP/LLM2Vec-Meta-Llama-3-8B-Instruct-mntp", "McGill-NLP/LLM2Vec-Meta-Llama-3-8B-Instruct-mntp-supervised")
HEADER, END = "<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"
FOLDER_VARIABLE = "TEXT_ENCODERS_DIR"  # as in the release: a folder that holds the models under their hub names
VARIANTS: dict[str, dict[str, Any]] = {  # how it can be named, and made
    "llm2vec": {},
    "llm2vec-float32": {"dtype": torch.float32},
    "llm2vec-8bit": {"bits": 8},
    "llm2vec-4bit": {"bits": 4},
}
_LONGEST_TEXT, _COUNTED = 400, 512  # [tokens]: longer texts lose words at the end, counted up to 512, as LLM2Vec does
_BASE_FILES = ("config.json", "*.safetensors")
_OR_ELSE = f"put the model into a folder and name it, or set {FOLDER_VARIABLE} to the folder that holds 'McGill-NLP/…' and 'meta-llama/…'."


@final
class Llm2Vec(TextEncoder):
    """Llama with LLM2Vec's adapters; 16 GB in bfloat16, 9 in 8-bit, 5 in 4-bit. Weights are read at the first text.

    `base` is the language model (default: the one the first adapter names), `adapters` are stacked in order; each is a hub id or a
    folder. The v1 checkpoints saw bfloat16 embeddings, v1.1 float32 ones. `batch` is how many texts pass at once: 1, as the release
    does, gives the same bits whatever else is encoded; more is faster, and in bfloat16 differs in the last digits.
    """

    def __init__(
        self,
        *,
        base: str | os.PathLike[str] | None = None,
        adapters: Sequence[str | os.PathLike[str]] = ADAPTERS,
        device: str | None = None,
        dtype: torch.dtype = torch.bfloat16,
        bits: Literal[4, 8] | None = None,
        batch: int = 1,
    ) -> None:
        if bits not in (None, 4, 8) or dtype not in (torch.bfloat16, torch.float32, torch.float16) or batch < 1 or not adapters:
            raise BadValue(f"LLM2Vec runs in bits 4, 8 or None, in a float dtype, with batch ≥ 1 and an adapter; got {bits}, {dtype}, {batch}, {adapters}.")
        _require("transformers", "LLM2Vec runs on", "pip install 'bunraku[llm2vec]'")
        if bits is not None:
            _require("bitsandbytes", f"{bits}-bit weights need", "pip install bitsandbytes accelerate")
        self._adapters = [model_folder(_place(each), (CONFIG, WEIGHTS), welcome=("tokenizer.json",), or_else=_OR_ELSE) for each in adapters]
        named = base if base is not None else adapter_config(self._adapters[0]).get("base_model_name_or_path")
        if not named:
            raise FileProblem(f"'{self._adapters[0] / CONFIG}' does not name its base model; give base='meta-llama/Meta-Llama-3-8B-Instruct' or a folder.")
        self._base = model_folder(_place(named), _BASE_FILES, welcome=("tokenizer.json",), or_else=_OR_ELSE)
        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._dtype, self._bits, self._batch = dtype, bits, batch

    @cached_property
    def name(self) -> str:
        files = [each / part for each in self._adapters for part in (CONFIG, WEIGHTS)]
        files += [self._base / "config.json", *sorted(self._base.glob("*.safetensors")), self._tokenizer_file]
        digest = hashlib.sha256("".join(map(fingerprint, files)).encode()).hexdigest()
        return f"llm2vec-{digest[:12]}-{f'{self._bits}bit' if self._bits else str(self._dtype).removeprefix('torch.')}"

    @cached_property
    def width(self) -> int:
        path = self._base / "config.json"
        try:
            config = json.loads(read_text(path))
            kind, width = config["model_type"], int(config["hidden_size"])
        except (ValueError, KeyError, TypeError) as error:
            raise FormatProblem(f"'{path}' does not describe a language model ({error}); download it again.") from error
        if kind != "llama":
            raise FormatProblem(f"'{path}' describes a '{kind}' model; LLM2Vec's adapters here belong to a 'llama' model.")
        return width

    def prepare(self, text: str) -> str:
        return sanitize_text(text)

    def embed(self, texts: Sequence[str]) -> list[TextEmbedding]:
        prompts = [self._prompt(text) for text in texts]
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i][0]))  # texts of similar length together: little is padded
        made: dict[int, TextEmbedding] = {}
        for start in range(0, len(order), self._batch):
            chosen = order[start : start + self._batch]
            rows = read_both_ways(self._model, [prompts[i][0] for i in chosen])
            for i, row in zip(chosen, rows, strict=True):
                tokens = row[-prompts[i][1] :].float().cpu()
                made[i] = TextEmbedding(tokens=tokens, pooled=row[-prompts[i][1] :].mean(0).float().cpu())  # mean in the model's type, as released
        return [made[i] for i in range(len(prompts))]

    def _prompt(self, text: str) -> tuple[list[int], int]:
        """Token ids of the whole prompt, and how many at the end are the text's own."""
        text = self._shortened(text)
        ids = self._tokenizer.encode(HEADER + text + END).ids
        return ids, len(self._tokenizer.encode(text + END, add_special_tokens=False).ids)

    def _shortened(self, text: str) -> str:
        words = text.split(" ")
        while words and (count := min(_COUNTED, len(self._tokenizer.encode(" ".join(words), add_special_tokens=False).ids))) > _LONGEST_TEXT:
            words = words[: int(len(words) * _LONGEST_TEXT / count)]
        if not words:
            raise BadValue(f"the prompt '{text[:40]}…' is one word of more than {_LONGEST_TEXT} tokens; write it in words.")
        short = " ".join(words)
        if short != text:
            warnings.warn(f"a prompt of more than {_LONGEST_TEXT} tokens is read only up to '…{short[-40:]}'.", stacklevel=5)
        return short

    @property
    def _tokenizer_file(self) -> Path:
        """LLM2Vec reads the tokenizer of its first adapter; one that brings none uses the base model's."""
        own = self._adapters[0] / "tokenizer.json"
        if not own.is_file() and not self._adapters[0].samefile(self._base):
            own = self._base / "tokenizer.json"
        return own

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        tokenizer = load_tokenizer(self._tokenizer_file)
        missing = [token for token in ("<|start_header_id|>", "<|end_header_id|>", END) if tokenizer.token_to_id(token) is None]
        if missing:
            raise FormatProblem(f"'{self._tokenizer_file}' does not know {', '.join(missing)}; it is not the tokenizer of Llama-3-Instruct.")
        return tokenizer

    @cached_property
    def _model(self) -> Any:
        from transformers import LlamaModel

        _ = self.width  # refuses a model that is no Llama
        loaded: Any
        options: dict[str, Any] = {"dtype": self._dtype, "attn_implementation": "sdpa"}
        if self._bits is not None:
            options |= {"quantization_config": _quantization(self._bits, self._dtype), "device_map": {"": self._device}}
        try:
            with _quiet():
                loaded = LlamaModel.from_pretrained(self._base, local_files_only=True, output_loading_info=True, **options)
        except Exception as error:  # transformers passes on what its many parts raise
            raise FormatProblem(f"the language model in '{self._base}' cannot be loaded: {str(error).splitlines()[0]}") from error
        model, report = loaded
        if missing := sorted(report["missing_keys"]):
            raise FormatProblem(f"the weights in '{self._base}' lack '{missing[0]}' and {len(missing) - 1} others; download the model again.")
        adapter = stacked(map(read_adapter, self._adapters))
        (merge if self._bits is None else run_beside)(model, adapter)
        return (model.to(self._device) if self._bits is None else model).eval()


@torch.no_grad()
def read_both_ways(model: Any, rows: Sequence[Sequence[int]]) -> list[Float[Tensor, "n D"]]:
    """The last hidden state of every token, each having seen all others of its text and no padding.

    The padding stands *behind*, so that positions count from the text's first token as they do for a text alone. (LLM2Vec pads in
    front; for one text at a time that is the same.)
    """
    device, dtype = model.device, model.dtype
    longest = max(map(len, rows))
    ids: Int[Tensor, "B S"] = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], device=device)
    present = torch.arange(longest, device=device) < torch.tensor([len(row) for row in rows], device=device)[:, None]
    positions = torch.arange(longest, device=device).expand_as(ids)
    out = model(input_ids=ids, attention_mask=both_ways(present, dtype), position_ids=positions, use_cache=False)
    return [out.last_hidden_state[i, : len(row)] for i, row in enumerate(rows)]


def both_ways(present: Bool[Tensor, "B S"], dtype: torch.dtype) -> Float[Tensor, "B 1 S S"]:
    """What is added to attention scores: 0 towards every token that is present, before or behind, and the least number towards padding.

    Llama's own masks are causal, and how they are made changes from one version of transformers to the next (patches of one version
    turn causal again in silence under another). A mask of four dimensions is the one thing that all versions pass on untouched.
    """
    mask = torch.zeros(present.shape, dtype=dtype, device=present.device).masked_fill(~present, torch.finfo(dtype).min)
    return mask[:, None, None, :].expand(-1, 1, present.shape[1], -1)


@contextmanager
def _quiet() -> Iterator[None]:
    """Holds back transformers' bars and its report that lm_head, which no encoder needs, is not used."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _quantization(bits: int, dtype: torch.dtype) -> Any:
    from transformers import BitsAndBytesConfig

    if bits == 8:
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=dtype)


def _require(package: str, who: str, remedy: str) -> None:
    if find_spec(package) is None:
        raise FileProblem(f"{who} the package '{package}', which is not installed; run: {remedy}.")


def _place(model: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The model inside $TEXT_ENCODERS_DIR, where it is there."""
    root = os.environ.get(FOLDER_VARIABLE)
    return Path(root, model) if root and Path(root, model).is_dir() else model
