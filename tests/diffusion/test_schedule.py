from __future__ import annotations

import math

import pytest
import torch

from bunraku.diffusion.schedule import CosineSchedule
from bunraku.errors import BadValue


def test_signal_falls_from_nearly_one_to_nearly_nothing_along_the_cosine() -> None:
    alpha_bar = CosineSchedule().alpha_bar
    assert (torch.diff(alpha_bar) < 0).all()
    assert alpha_bar[0] > 0.9999
    assert alpha_bar[-1] < 1e-5
    for i in (100, 500, 900):
        u = (i + 1) / 1000
        expected = (math.cos((u + 0.008) / 1.008 * math.pi / 2) / math.cos(0.008 / 1.008 * math.pi / 2)) ** 2
        assert float(alpha_bar[i]) == pytest.approx(expected, rel=1e-5)


def test_levels_are_evenly_spaced_from_first_to_last() -> None:
    assert CosineSchedule().levels(1000).tolist() == list(range(999, -1, -1))
    assert CosineSchedule().levels(4).tolist() == [999, 666, 333, 0]
    assert CosineSchedule().levels(1).tolist() == [999]


@pytest.mark.parametrize("steps", [1, 2, 3, 20, 100, 500, 999, 1000])
def test_levels_even_in_log_snr_fall_from_all_noise_to_none(steps: int) -> None:
    levels = CosineSchedule().levels_even_in_log_snr(steps)
    assert levels[0] == 999
    assert len(levels) == steps
    assert (torch.diff(levels) < 0).all()
    assert steps == 1 or levels[-1] == 0


@pytest.mark.parametrize("steps", [0, -3, 1001])
def test_impossible_numbers_of_steps_are_refused(steps: int) -> None:
    with pytest.raises(BadValue, match="1 to 1000"):
        CosineSchedule().levels(steps)


def test_noise_has_the_variance_of_its_level() -> None:
    schedule, generator = CosineSchedule(), torch.Generator().manual_seed(0)
    level = torch.tensor([0, 300, 999])
    noise = torch.randn(3, 20000, generator=generator)
    noisy = schedule.noisy(torch.ones(3, 20000), noise, level)
    kept = schedule.alpha_bar[level].float()
    assert torch.allclose(noisy.mean(1), kept.sqrt(), atol=0.02)
    assert torch.allclose(noisy.var(1), 1 - kept, atol=0.03)
