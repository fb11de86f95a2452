"""The smoothed root: the released numbers, for any length; smooth, near the hips, and blind to where and which way they go."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from bunraku.kinematics.smooth_root import MARGIN, smoothed_root
from bunraku.math.rotations import quat_rotate, yaw_quat
from tests.golden import tensors


def swaying(frames: int, sway: float = 0.03, speed: float = 1.2) -> torch.Tensor:
    """A walk along +Z at 30 frames a second whose hips sway sideways [m] once a second."""
    t = torch.arange(frames, dtype=torch.float64) / 30
    return torch.stack([sway * torch.sin(2 * math.pi * t), 0.9 + 0.02 * torch.cos(4 * math.pi * t), speed * t], dim=-1)


@pytest.mark.parametrize("clip", ["soma30", "soma30-mixed", "g1-mixed"])
def test_the_released_numbers(shared: Path, clip: str) -> None:
    recorded = tensors(shared / "golden" / "kimodo" / clip / "representation.safetensors")
    torch.testing.assert_close(smoothed_root(recorded["root_positions"]), recorded["features"][:, :3], atol=1e-4, rtol=0)


@pytest.mark.parametrize("frames", [1, 2, 3, 4, 5, 6, 31, 32, 33, 1000])
def test_any_length(frames: int) -> None:
    p = swaying(frames)
    smooth = smoothed_root(p)
    assert smooth.shape == p.shape
    assert torch.isfinite(smooth).all()
    torch.testing.assert_close(smooth[:, 1], p[:, 1])
    late = 1.2 / 30 / 2
    assert (smooth - p)[:, [0, 2]].norm(dim=-1).max() < MARGIN + late + 0.01


def test_sway_goes_and_the_way_stays() -> None:
    p = swaying(300)
    smooth = smoothed_root(p)
    t = torch.arange(300, dtype=torch.float64)
    line = np.polyval(np.polyfit(t.numpy(), smooth[:, 0].numpy(), 1), t.numpy())
    assert np.abs(smooth[:, 0].numpy() - line).max() < 0.001  # of a sway of 30 mm
    assert (smooth - p)[:, [0, 2]].norm(dim=-1).max() == pytest.approx(0.078, abs=0.001)  # measured on the release: 7.8 to 7.9 cm
    inner = smooth[:-2]  # the last two frames are uneven, as in the release
    assert (inner[2:] - 2 * inner[1:-1] + inner[:-2])[:, [0, 2]].abs().max() < 1e-5


def test_someone_who_stands_stays_put() -> None:
    p = swaying(90, speed=0.0)
    smooth = smoothed_root(p)
    assert smooth[:, [0, 2]].diff(dim=0).norm(dim=-1).max() < 1e-4


def test_turned_and_moved_with_the_clip() -> None:
    p = swaying(120)
    turn, aside = yaw_quat(torch.tensor(1.1, dtype=torch.float64)), torch.tensor([3.0, 0.0, -2.0], dtype=torch.float64)
    torch.testing.assert_close(smoothed_root(quat_rotate(turn, p) + aside), quat_rotate(turn, smoothed_root(p)) + aside, atol=1e-9, rtol=0)
