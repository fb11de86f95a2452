"""BERT's encoder in plain torch: token ids to features. It spares the import of transformers, which takes three times as long as all else.

`x` is B texts of S tokens of D features. One layer, as in the paper (arXiv 1810.04805), normalised *after* each sum:

    x = norm(x + attention(x));   x = norm(x + dense(gelu(dense(x))))
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bunraku.errors import FormatProblem
from bunraku.files.disk import read_text
from bunraku.generator.text.tensors import read_tensors


@dataclass(frozen=True, kw_only=True, eq=False)
class Bert:
    """The weights under their released names, and the three numbers that no tensor tells."""

    weights: Mapping[str, Tensor]
    layers: int
    heads: int
    epsilon: float  # in every normalisation

    @property
    def width(self) -> int:
        return self.weights["embeddings.word_embeddings.weight"].shape[1]

    @property
    def longest(self) -> int:
        """The most tokens a text can have: positions are learned, one by one."""
        return self.weights["embeddings.position_embeddings.weight"].shape[0]

    @property
    def device(self) -> torch.device:
        return self.weights["embeddings.word_embeddings.weight"].device

    def to(self, device: str | torch.device) -> Bert:
        return Bert(weights={k: v.to(device) for k, v in self.weights.items()}, layers=self.layers, heads=self.heads, epsilon=self.epsilon)

    @torch.no_grad()
    def __call__(self, ids: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        """Features of every token; what stands where the mask is False is of no meaning."""
        w = self.weights
        x = w["embeddings.word_embeddings.weight"][ids]
        x = x + w["embeddings.token_type_embeddings.weight"][0]  # one text, never a pair
        x = x + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = self._norm("embeddings.LayerNorm", x)
        for i in range(self.layers):
            layer = f"encoder.layer.{i}"
            x = self._norm(f"{layer}.attention.output.LayerNorm", x + self._attention(f"{layer}.attention", x, mask))
            inner = F.gelu(self._linear(f"{layer}.intermediate.dense", x))
            x = self._norm(f"{layer}.output.LayerNorm", x + self._linear(f"{layer}.output.dense", inner))
        return x

    def _attention(self, name: str, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        query, key, value = (self._linear(f"{name}.self.{part}", x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in ("query", "key", "value"))
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None, :])
        return self._linear(f"{name}.output.dense", mixed.transpose(1, 2).flatten(-2))

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return F.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, name: str, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], self.epsilon)


def load_bert(folder: Path) -> Bert:
    """The model in `config.json` and `model.safetensors` of a folder, as Hugging Face lays them out."""
    path = folder / "config.json"
    try:
        config = json.loads(read_text(path))
        kind, activation = config["model_type"], config["hidden_act"]
        layers, heads, epsilon = int(config["num_hidden_layers"]), int(config["num_attention_heads"]), float(config["layer_norm_eps"])
        width, inner = int(config["hidden_size"]), int(config["intermediate_size"])
    except (ValueError, KeyError, TypeError) as error:
        raise FormatProblem(f"'{path}' does not describe a BERT model ({error}); name a folder such as that of all-MiniLM-L6-v2.") from error
    if kind != "bert" or activation != "gelu":
        raise FormatProblem(f"'{path}' describes a '{kind}' model with '{activation}'; a 'bert' model with 'gelu' is needed, such as all-MiniLM-L6-v2.")
    weights, _ = read_tensors(folder / "model.safetensors")
    weights = {name.removeprefix("bert."): value.float() for name, value in weights.items() if not name.endswith("position_ids")}
    for name, shape in _shapes(layers, width, inner).items():
        if name not in weights:
            raise FormatProblem(f"'{folder / 'model.safetensors'}' has no tensor '{name}' ({len(weights)} are there); copy or download it again.")
        given = tuple(weights[name].shape)
        if len(given) != len(shape) or any(wanted not in (None, size) for wanted, size in zip(shape, given, strict=True)):
            raise FormatProblem(f"'{folder / 'model.safetensors'}': '{name}' has the shape {given}, which does not fit {path.name} beside it.")
    return Bert(weights=weights, layers=layers, heads=heads, epsilon=epsilon)


def _shapes(layers: int, width: int, inner: int) -> dict[str, tuple[int | None, ...]]:
    """Every tensor that is used, and its shape; None is any size."""
    shapes: dict[str, tuple[int | None, ...]] = {f"embeddings.{kind}_embeddings.weight": (None, width) for kind in ("word", "position", "token_type")}
    dense = {f"attention.self.{part}": (width, width) for part in ("query", "key", "value")}
    dense |= {"attention.output.dense": (width, width), "intermediate.dense": (inner, width), "output.dense": (width, inner)}
    norms = ["embeddings.LayerNorm"]
    for i in range(layers):
        norms += [f"encoder.layer.{i}.attention.output.LayerNorm", f"encoder.layer.{i}.output.LayerNorm"]
        for name, (rows, columns) in dense.items():
            shapes |= {f"encoder.layer.{i}.{name}.weight": (rows, columns), f"encoder.layer.{i}.{name}.bias": (rows,)}
    return shapes | {f"{name}.{part}": (width,) for name in norms for part in ("weight", "bias")}
