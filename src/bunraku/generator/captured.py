"""A solver's step as one CUDA graph: the denoiser's thousand kernels are launched by a single call, and nothing waits for the host.

A graph is recorded the first time a shape of batch is met (about 0.1 s) and kept with its buffers; later runs copy their conditions
into those. It computes exactly what `diffusion.solvers.solve` does.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.diffusion.solvers import StepTable
from bunraku.generator.denoiser import Denoiser
from bunraku.generator.sample import GuidedDenoiser

KEPT = 4  # graphs of a denoiser: each holds the activations of its batch

_kept: WeakKeyDictionary[Denoiser, OrderedDict[tuple[object, ...], CapturedStep]] = WeakKeyDictionary()


@torch.no_grad()
def solve_captured(
    table: StepTable, guided: GuidedDenoiser, noise: Float[Tensor, "B F D"], on_step: Callable[[int], None] | None = None
) -> Float[Tensor, "B F D"]:
    """`solvers.solve` on a GPU."""
    step = _step_for(guided, noise)
    rows = torch.stack([table.level.double(), table.keep, table.clean, table.before], dim=1).to(noise.device, torch.float32)
    step.x.copy_(noise)
    step.last.zero_()
    for number in range(len(table)):
        step.row.copy_(rows[number])
        step.graph.replay()
        if on_step is not None:
            on_step(number + 1)
    return step.x.clone()


def _step_for(guided: GuidedDenoiser, noise: Tensor) -> CapturedStep:
    steps = _kept.setdefault(guided.denoiser, OrderedDict())
    key = (tuple(noise.shape), noise.dtype, guided.layout_key)
    if key in steps:
        steps.move_to_end(key)
        steps[key].guided.refill(guided)
        return steps[key]
    steps[key] = CapturedStep(guided, noise)
    while len(steps) > KEPT:
        steps.popitem(last=False)
    return steps[key]


class CapturedStep:
    """One step with its buffers: x, the guess before, and the row of the table (level, keep, clean, before)."""

    def __init__(self, guided: GuidedDenoiser, noise: Float[Tensor, "B F D"]) -> None:
        self.guided = guided
        self.x, self.last = noise.clone(), torch.zeros_like(noise)
        self.row = torch.tensor([0.0, 1.0, 0.0, 0.0], device=noise.device)
        with _matrix_units_for_float32(not guided.denoiser.exact):
            self._record()

    def _record(self) -> None:
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):  # libraries set themselves up on first use, which must not be recorded
            for _ in range(2):
                self._step()
        torch.cuda.current_stream().wait_stream(aside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._step()

    def _step(self) -> None:
        level = self.row[0].long().expand(len(self.x))
        guess = self.guided(self.x, level)
        self.x.copy_(self.row[1] * self.x + self.row[2] * guess + self.row[3] * self.last)
        self.last.copy_(guess)


@contextmanager
def _matrix_units_for_float32(wanted: bool) -> Iterator[None]:
    """TF32 for what stays float32 around layers that are coarser anyway: the recorded kernels keep it, the process does not."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = before or wanted
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
