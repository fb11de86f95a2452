"""Solvers against problems whose answer is known: data that is Gaussian, where the best guess at the clean signal is a formula."""

from __future__ import annotations

import pytest
import torch

from bunraku.diffusion.schedule import CosineSchedule
from bunraku.diffusion.solvers import StepTable, ddim_steps, dpm_steps, solve, step_table

SCHEDULE = CosineSchedule()
MEAN = 0.7  # of the data


def best_guess(x: torch.Tensor, level: torch.Tensor, spread: float) -> torch.Tensor:
    """E[x_0 | x_t] for x_0 ~ N(MEAN, spread²)."""
    kept = SCHEDULE.alpha_bar[level].reshape(-1, 1)
    gain = kept.sqrt() * spread**2 / (kept * spread**2 + 1 - kept)
    return MEAN + gain * (x - kept.sqrt() * MEAN)


def error(table: StepTable, spread: float = 0.4) -> float:
    """Root mean square distance from the exact end of the probability-flow ODE, which keeps every sample at its quantile."""
    noise = torch.randn(500, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    start = SCHEDULE.alpha_bar[-1]
    quantile = (noise - start.sqrt() * MEAN) / (start * spread**2 + 1 - start).sqrt()
    end = solve(table, lambda x, level: best_guess(x, level, spread), noise)
    return float((end - (MEAN + spread * quantile)).square().mean().sqrt())


def test_both_solvers_reach_the_exact_answer() -> None:
    assert error(ddim_steps(SCHEDULE, 1000)) < 2e-3
    assert error(dpm_steps(SCHEDULE, 250)) < 2e-3


@pytest.mark.parametrize("spread", [1.0, 0.4, 0.05, 0.01])
def test_twenty_steps_of_second_order_are_worth_a_hundred_of_first(spread: float) -> None:
    assert error(dpm_steps(SCHEDULE, 20), spread) < 1.2 * error(ddim_steps(SCHEDULE, 100), spread)
    assert error(dpm_steps(SCHEDULE, 10), spread) < error(ddim_steps(SCHEDULE, 20), spread)


@pytest.mark.parametrize("steps", [10, 12, 15, 20, 25])
@pytest.mark.parametrize("spread", [1.0, 0.4, 0.05, 0.01])
def test_second_order_halves_the_error_of_as_many_steps_of_first(spread: float, steps: int) -> None:
    assert error(dpm_steps(SCHEDULE, steps), spread) < 0.5 * error(ddim_steps(SCHEDULE, steps), spread)


@pytest.mark.parametrize("solver", ["ddim", "dpm"])
@pytest.mark.parametrize("steps", [1, 2, 3, 10])
def test_a_known_clean_signal_is_reached_exactly(solver: str, steps: int) -> None:
    clean = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    noise = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    end = solve(step_table(solver, SCHEDULE, steps), lambda x, level: clean, noise)
    assert torch.allclose(end, clean, atol=1e-12)


def test_each_step_tells_the_level_and_is_reported() -> None:
    told, reported = [], []
    solve(ddim_steps(SCHEDULE, 4), lambda x, level: told.append(level.tolist()) or x, torch.zeros(2, 1), reported.append)
    assert told == [[999, 999], [666, 666], [333, 333], [0, 0]]
    assert reported == [1, 2, 3, 4]
