"""The running mean of a network's weights: what is used after training in place of the last, noisy ones (kimodo §4.3)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from bunraku.training.ranks import whole


class Ema:
    """A mean over about `every / (1 − decay)` steps; in the first steps over fewer, so that it forgets the random start."""

    def __init__(self, net: nn.Module, decay: float, every: int) -> None:
        self.net, self.decay, self.every, self.updates = net, decay, every, 0
        self.names = [name for name, _ in net.named_parameters()]
        self.values: list[Tensor] = [p.detach().clone() for p in net.parameters()]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """After step number `step`, counted from 1."""
        if step % self.every:
            return
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        get_ema_multi_avg_fn(decay)(self.values, [p.detach() for p in self.net.parameters()], self.updates)

    def weights(self) -> dict[str, Tensor]:
        """By name, gathered from all ranks."""
        return {name: whole(value) for name, value in zip(self.names, self.values, strict=True)}

    def restore(self, weights: dict[str, Tensor], updates: int) -> None:
        self.updates = updates
        with torch.no_grad():
            for name, value in zip(self.names, self.values, strict=True):
                fill(value, weights[name])


def fill(into: Tensor, values: Tensor) -> None:
    """Copies a whole tensor into one that may be spread over ranks."""
    if hasattr(into, "device_mesh"):
        from torch.distributed.tensor import distribute_tensor

        values = distribute_tensor(values.to(into.device), into.device_mesh, into.placements)  # type: ignore[attr-defined]
    into.copy_(values)
