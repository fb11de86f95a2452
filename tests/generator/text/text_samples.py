"""What the tests of text encoders share: an encoder made of nothing, and LLM2Vec's files with a tiny random Llama in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import final

import torch
from safetensors.torch import save_file

from bunraku.generator.text.encoder import TextEmbedding, TextEncoder

WORDS = ["a", "person", "walks", "runs", "slowly", "left", "right", "then", "waves", ".", "A"]
LLAMA_TOKENS = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]


@final
class CountingEncoder(TextEncoder):
    """Numbers drawn by the text's hash, one token a word. It remembers what it was asked."""

    def __init__(self, width: int = 6, name: str = "counting-1") -> None:
        self.asked: list[list[str]] = []
        self._width, self._name = width, name

    @property
    def name(self) -> str:
        return self._name

    @property
    def width(self) -> int:
        return self._width

    def embed(self, texts: Sequence[str]) -> list[TextEmbedding]:
        self.asked.append(list(texts))
        made = []
        for text in texts:
            seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])
            tokens = torch.randn(len(text.split()), self._width, generator=torch.Generator().manual_seed(seed))
            made.append(TextEmbedding(tokens=tokens, pooled=tokens.mean(0)))
        return made


def write_tiny_llama(folder: Path) -> None:
    """`folder/base`, `folder/mntp` and `folder/supervised`: what LLM2Vec consists of, from the same classes, with random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False
    )
    LlamaForCausalLM(config).save_pretrained(folder / "base")
    write_tokenizer(folder / "mntp" / "tokenizer.json")
    write_adapter(folder / "mntp", base=str(folder / "base"))
    write_adapter(folder / "supervised", base=str(folder / "base"), prefix="base_model.model.model.")


def write_tokenizer(path: Path) -> None:
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors

    vocabulary = {token: i for i, token in enumerate([*LLAMA_TOKENS, *WORDS, "user", "<unk>"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in LLAMA_TOKENS])
    tokenizer.post_processor = processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", 0)])
    path.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path))


def write_adapter(folder: Path, *, base: str, prefix: str = "base_model.model.", rank: int = 4, alpha: int = 8, **settings: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    config = {"peft_type": "LORA", "base_model_name_or_path": base, "r": rank, "lora_alpha": alpha, "bias": "none", "lora_dropout": 0.05}
    config["target_modules"] = ["q_proj", "v_proj", "down_proj"]
    (folder / "adapter_config.json").write_text(json.dumps(config | settings))
    sizes = {"self_attn.q_proj": (32, 32), "self_attn.v_proj": (16, 32), "mlp.down_proj": (32, 48)}
    tensors = {}
    for layer in range(2):
        for name, (out, into) in sizes.items():
            stem = f"{prefix}layers.{layer}.{name}"
            tensors |= {f"{stem}.lora_A.weight": 0.3 * torch.randn(rank, into), f"{stem}.lora_B.weight": 0.3 * torch.randn(out, rank)}
    save_file(tensors, folder / "adapter_model.safetensors")
