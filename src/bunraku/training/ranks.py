"""Several processes that train one network together: who we are among them, and how gradients are shared.

`torchrun --nproc-per-node N -m bunraku.cli train …` starts N of them; alone there is one. Each draws its own share of every batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from bunraku.errors import BadValue

Sharing = Literal["ddp", "fsdp"]  # every rank holds the whole network, or a part of each layer


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """This process among those that train together."""

    rank: int = 0
    world: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    sharing: Sharing = "ddp"

    @property
    def first(self) -> bool:
        """Whether this one writes files and talks."""
        return self.rank == 0

    def share(self, batch: int) -> range:
        """Which rows of a batch are this one's."""
        if batch % self.world:
            raise BadValue(f"a batch of {batch} cannot be shared by {self.world} processes; choose a multiple of {self.world}.")
        each = batch // self.world
        return range(self.rank * each, (self.rank + 1) * each)

    def wrapped(self, objective: nn.Module) -> nn.Module:
        """The network made to exchange gradients."""
        if self.world == 1:
            return objective
        if self.sharing == "fsdp":
            return _sharded(objective, self)
        from torch.nn.parallel import DistributedDataParallel

        return DistributedDataParallel(objective, device_ids=[self.device.index] if self.device.type == "cuda" else None)

    def mean(self, value: Tensor) -> Tensor:
        """The mean of a number over all ranks."""
        if self.world == 1:
            return value
        total = value.detach().clone()
        torch.distributed.all_reduce(total)
        return total / self.world

    def wait(self) -> None:
        """Until all have come this far."""
        if self.world > 1:
            torch.distributed.barrier()


@contextmanager
def ranks(device: str = "auto", sharing: Sharing = "ddp") -> Iterator[Ranks]:
    """Joins the others that torchrun has started, and leaves them in the end."""
    world, rank, local = (int(os.environ.get(name, default)) for name, default in (("WORLD_SIZE", 1), ("RANK", 0), ("LOCAL_RANK", 0)))
    kind = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    try:
        where = torch.device("cuda", local) if kind == "cuda" else torch.device(kind)
    except RuntimeError as error:
        raise BadValue(f"'{device}' is no device; use cpu, cuda, cuda:1 or auto.") from error
    if where.type == "cuda":
        if not torch.cuda.is_available():
            raise BadValue(f"device '{device}' was asked for, but PyTorch sees no CUDA device here. Use --device cpu.")
        torch.cuda.set_device(where)
    if world > 1:
        torch.distributed.init_process_group("nccl" if where.type == "cuda" else "gloo")
    try:
        yield Ranks(rank=rank, world=world, device=where, sharing=sharing)
    finally:
        if world > 1:
            torch.distributed.destroy_process_group()


def _sharded(objective: nn.Module, group: Ranks) -> nn.Module:
    """Every layer's weights spread over the ranks and gathered when it runs (FSDP2)."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    from bunraku.generator.backbone import EncoderLayer

    mesh = init_device_mesh(group.device.type, (group.world,))
    for module in objective.modules():
        if isinstance(module, EncoderLayer):
            fully_shard(module, mesh=mesh)
    fully_shard(objective, mesh=mesh)
    return objective


def whole(tensor: Tensor) -> Tensor:
    """A weight gathered from all ranks, where it is spread over them. All must call this."""
    gathered = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor  # type: ignore[attr-defined]
    return gathered.detach()
