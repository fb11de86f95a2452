"""Low-rank adapters (LoRA, arXiv 2106.09685): what fine-tuning adds to a linear layer, `W + (alpha / r) · B A`.

Adapters of several stages stack into one pair of thin matrices per layer: `[s₁B₁ s₂B₂] [A₁; A₂]`. They are added to the weights once, in
float32, or, where the weights are quantised and cannot be added to, run beside the layer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from bunraku.errors import FormatProblem
from bunraku.files.disk import read_text
from bunraku.generator.text.tensors import read_tensors

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PLAIN: dict[str, tuple[object, ...]] = {  # what we do not read must be off
    "peft_type": ("LORA",),
    "bias": ("none",),
    "use_dora": (False, None),
    "fan_in_fan_out": (False, None),
    "modules_to_save": (None, []),
    "rank_pattern": ({}, None),
    "alpha_pattern": ({}, None),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class LowRank:
    """What is added to one layer's weight: `up @ down`. The scale is in `up`."""

    down: Float[Tensor, "r I"]
    up: Float[Tensor, "O r"]


def adapter_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        config = json.loads(read_text(path))
        config |= {"lora_alpha": float(config["lora_alpha"]), "r": int(config["r"])}
    except (ValueError, KeyError, TypeError) as error:
        raise FormatProblem(f"'{path}' does not describe a LoRA adapter ({error}); download the adapter again.") from error
    for key, allowed in _PLAIN.items():
        if key in config and config[key] not in allowed:
            raise FormatProblem(f"'{path}' sets {key} to {config[key]!r}; only plain LoRA ({key}: {allowed[0]!r}) is read.")
    return config


def read_adapter(folder: Path) -> dict[str, LowRank]:
    """Layer name (without `model.` in front) → what the adapter in this folder adds to it."""
    config = adapter_config(folder)
    rank = config["r"]
    scale = config["lora_alpha"] / (math.sqrt(rank) if config.get("use_rslora") else rank)
    tensors, _ = read_tensors(folder / WEIGHTS)
    layers: dict[str, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        layer, _, part = name.removeprefix("base_model.model.").removeprefix("model.").rpartition(".lora_")
        if part not in ("A.weight", "B.weight"):
            raise FormatProblem(f"'{folder / WEIGHTS}' has a tensor '{name}' that is no part of plain LoRA; nothing else is read.")
        layers.setdefault(layer, {})[part[0]] = value.float()
    for layer, parts in layers.items():
        if set(parts) != {"A", "B"} or parts["A"].shape[0] != rank or parts["B"].shape[-1] != rank:
            raise FormatProblem(f"'{folder / WEIGHTS}': '{layer}' needs lora_A and lora_B of rank {rank}; download the adapter again.")
    return {layer: LowRank(down=parts["A"], up=scale * parts["B"]) for layer, parts in layers.items()}


def stacked(adapters: Iterable[Mapping[str, LowRank]]) -> dict[str, LowRank]:
    """Several adapters as one."""
    total: dict[str, LowRank] = {}
    for adapter in adapters:
        for layer, new in adapter.items():
            old = total.get(layer)
            total[layer] = new if old is None else LowRank(down=torch.cat([old.down, new.down]), up=torch.cat([old.up, new.up], dim=1))
    return total


@torch.no_grad()
def merge(model: nn.Module, adapter: Mapping[str, LowRank]) -> None:
    """Adds the adapter to the model's weights, in float32 and rounded once to the weights' own type."""
    for layer, added in adapter.items():
        weight = _linear(model, layer, added).weight
        delta = added.up.to(weight.device) @ added.down.to(weight.device)
        weight.copy_((weight.float() + delta).to(weight.dtype))


def run_beside(model: nn.Module, adapter: Mapping[str, LowRank]) -> None:
    """Lets the adapter's own product be added to each layer's output; the weights stay as they are."""
    for layer, added in adapter.items():
        _linear(model, layer, added).register_forward_hook(_beside(added))


def _beside(added: LowRank) -> Any:
    pair = (added.down, added.up)

    def hook(_layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        nonlocal pair
        x = inputs[0]
        pair = (pair[0].to(x), pair[1].to(x))  # moved once; afterwards a no-op
        return output + F.linear(F.linear(x, pair[0]), pair[1])

    return hook


def _linear(model: nn.Module, layer: str, added: LowRank) -> nn.Linear:
    try:
        found = model.get_submodule(layer)
    except AttributeError:
        found = None
    wanted = (added.up.shape[0], added.down.shape[1])
    if not isinstance(found, nn.Linear) or (found.out_features, found.in_features) != wanted:
        given = f"a layer '{layer}' of {wanted[0]} × {wanted[1]}"
        raise FormatProblem(f"the adapter changes {given}, which this base model does not have; name the base model that it was trained on.")
    return found
