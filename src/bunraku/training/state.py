"""All that is needed to go on with a run: weights, their running mean, the optimiser's memory, the number of the step.

Written whole from any number of ranks, so that a run may go on with another number of them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from bunraku.errors import FormatProblem
from bunraku.training.ema import Ema, fill
from bunraku.training.ranks import whole

FORMAT = 1


def state_of(step: int, net: nn.Module, optimiser: torch.optim.Optimizer, ema: Ema) -> dict[str, Any]:
    """Every rank must call this: what is spread over them is gathered."""
    names = [name for name, _ in net.named_parameters()]
    memory = {name: _memory(optimiser.state.get(p, {})) for name, p in net.named_parameters()}
    return {
        "format": FORMAT,
        "step": step,
        "net": {name: whole(p).cpu() for name, p in net.named_parameters()},
        "ema": {name: value.cpu() for name, value in ema.weights().items()},
        "ema_updates": ema.updates,
        "optimiser": {name: memory[name] for name in names},
    }


def _memory(kept: dict[str, Any]) -> dict[str, Any]:
    return {key: whole(value).cpu() if isinstance(value, torch.Tensor) else value for key, value in kept.items() if key != "param_init"}


@torch.no_grad()
def load_state(state: dict[str, Any], net: nn.Module, optimiser: torch.optim.Optimizer, ema: Ema) -> int:
    """Puts a state back; returns the number of steps taken."""
    if state.get("format") != FORMAT:
        raise FormatProblem(f"this checkpoint is of format {state.get('format')}; this version of bunraku reads {FORMAT}. Update bunraku.")
    for name, p in net.named_parameters():
        if name not in state["net"] or state["net"][name].shape != p.shape:
            raise FormatProblem(f"this checkpoint has no weights '{name}' of shape {list(p.shape)}; it belongs to another network.")
        fill(p.data, state["net"][name])
        kept = optimiser.state[p]
        for key, value in state["optimiser"][name].items():
            if isinstance(value, torch.Tensor) and value.shape == p.shape:
                kept[key] = torch.zeros_like(p.data)
                fill(kept[key], value)
            else:
                kept[key] = value.to(p.device) if isinstance(value, torch.Tensor) and p.device.type == "cuda" else value
        if "steps" in kept:
            kept["param_init"] = p.data  # Adam-atan2 lists it, and reads it only where weights are drawn back to their start
    ema.restore(state["ema"], int(state["ema_updates"]))
    return int(state["step"])
