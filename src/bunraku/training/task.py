"""What can be trained: a network with the loss of a batch, and what is done with it when it is done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bunraku.training.settings import LoopSettings


class Task(ABC):
    """One kind of training. All its randomness comes from the number of the step, so that a run goes on exactly where it was."""

    kind: str
    settings: Any  # a frozen dataclass with a field `loop`
    objective: nn.Module  # a batch to the weighted terms of its loss, by name; on the device
    net: nn.Module  # the part of it that is kept

    @property
    def loop(self) -> LoopSettings:
        return self.settings.loop

    @abstractmethod
    def batch(self, step: int, rows: range) -> Any:
        """Some rows of the batch of a step, the same whoever draws the others."""

    def before(self, step: int) -> None:
        """What changes in the course of training, such as the dropout."""
        return

    @abstractmethod
    def about(self) -> Mapping[str, Any]:
        """What a run of this task is, for run.json: settings and data."""

    @abstractmethod
    def export(self, weights: Mapping[str, Tensor], folder: Path) -> None:
        """Writes the model with these weights, ready for use."""

    def preview(self, weights: Mapping[str, Tensor], path: Path) -> None:
        """A picture of what the model does, if it does anything that can be drawn."""
        return


def mixed(seed: int, *numbers: int) -> int:
    """One seed from several numbers, far from those of their neighbours (splitmix64)."""
    state = seed & _MASK
    for number in numbers:
        state = (state + 0x9E3779B97F4A7C15 + (number & _MASK)) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state & (2**63 - 1)


_MASK = 2**64 - 1


def seeded(seed: int, *numbers: int, device: torch.device | str = "cpu") -> torch.Generator:
    return torch.Generator(device).manual_seed(mixed(seed, *numbers))
