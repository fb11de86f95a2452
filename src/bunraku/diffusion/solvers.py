"""From noise to signal in a few steps, given guesses at the clean signal: the probability-flow ODE, eta = 0.

With x = α x_0 + σ ε and λ = log(α / σ), every solver here makes the step

    x  ←  keep · x  +  clean · x̂_0  +  before · x̂_0 of the step before

so a solver is a table of three numbers per step and one loop runs them all. Randomness is only in the noise one starts from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bunraku.diffusion.schedule import CosineSchedule

Solver = Literal["ddim", "dpm"]


@dataclass(frozen=True, kw_only=True, eq=False)
class StepTable:
    """S steps from the noisiest to the cleanest."""

    level: Int[Tensor, " S"]  # base step at which the clean signal is guessed
    keep: Float[Tensor, " S"]
    clean: Float[Tensor, " S"]
    before: Float[Tensor, " S"]

    def __len__(self) -> int:
        return len(self.level)


def ddim_steps(schedule: CosineSchedule, steps: int) -> StepTable:
    """DDIM (Song et al. 2020) as released: first order, base steps evenly spaced, the last step returns x̂_0 itself."""
    return _table(schedule, schedule.levels(steps), second_order=False)


def dpm_steps(schedule: CosineSchedule, steps: int) -> StepTable:
    """DPM-Solver++ 2M (Lu et al. 2022): second order by extrapolating x̂_0 along λ; a first and a last step of first order."""
    return _table(schedule, schedule.levels_even_in_log_snr(steps), second_order=True)


def step_table(solver: Solver, schedule: CosineSchedule, steps: int) -> StepTable:
    return dpm_steps(schedule, steps) if solver == "dpm" else ddim_steps(schedule, steps)


def _table(schedule: CosineSchedule, level: Int[Tensor, " S"], *, second_order: bool) -> StepTable:
    alpha_bar = torch.cat([schedule.alpha_bar[level], torch.ones(1, dtype=torch.float64)])  # the end: no noise at all
    alpha, sigma = alpha_bar.sqrt(), (1 - alpha_bar).sqrt()
    keep = sigma[1:] / sigma[:-1]
    reach = alpha[1:] - keep * alpha[:-1]  # weight of a clean signal that stays what it is during the step
    before = torch.zeros_like(reach)
    if second_order:
        step = torch.diff(schedule.log_snr[level])
        ratio = step[1:] / step[:-1]  # this step against the one before
        before[1:-1] = -reach[1:-1] * ratio / 2
    return StepTable(level=level, keep=keep, clean=reach - before, before=before)


Predict = Callable[[Float[Tensor, "B ..."], Int[Tensor, " B"]], Float[Tensor, "B ..."]]


@torch.no_grad()
def solve(
    table: StepTable, predict_clean: Predict, noise: Float[Tensor, "B ..."], on_step: Callable[[int], None] | None = None
) -> Float[Tensor, "B ..."]:
    """Runs a table of steps from pure noise. The numbers of the table lie on the device beforehand: no step waits for the host."""
    level = table.level.to(noise.device)[:, None].expand(-1, len(noise))
    keep, clean, before = (row.to(noise) for row in (table.keep, table.clean, table.before))
    x, last = noise, torch.zeros_like(noise)
    for step in range(len(table)):
        guess = predict_clean(x, level[step])
        x = keep[step] * x + clean[step] * guess + before[step] * last
        last = guess
        if on_step is not None:
            on_step(step + 1)
    return x
