"""Optimisers by name."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from bunraku.errors import FileProblem
from bunraku.training.settings import LoopSettings


def optimiser_of(settings: LoopSettings, weights: Iterable[nn.Parameter], device: torch.device) -> torch.optim.Optimizer:
    """Adam-atan2 (arXiv 2407.05872) has no epsilon, so that the size of a step never depends on the scale of the gradients."""
    if settings.optimiser == "adamw":
        fused = device.type == "cuda"
        return torch.optim.AdamW(weights, lr=settings.learning_rate, betas=settings.betas, weight_decay=settings.weight_decay, fused=fused)
    try:
        from adam_atan2_pytorch.foreach import AdamAtan2
    except ImportError as error:
        raise FileProblem("Adam-atan2 needs another package: pip install 'bunraku[train]', or choose --set optimiser=adamw.") from error
    return AdamAtan2(list(weights), lr=settings.learning_rate, betas=settings.betas, weight_decay=settings.weight_decay)
