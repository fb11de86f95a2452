"""Values along time: which frames a new rate has, linear and spherical interpolation, velocity, the smooth step."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bunraku.math.curves import interpolate, interpolate_quats, low_pass, low_pass_kernel, resample_times, smooth_step, velocity
from bunraku.math.rotations import exp_quat, log_quat, quat_distance, quat_normalize

RATES = st.sampled_from([24.0, 25.0, 29.97, 30.0, 50.0, 60.0, 100.0, 120.0, 7.3])


@given(st.integers(1, 500), RATES, RATES)
def test_new_frames_lie_inside_the_old_clip_and_fill_it(frames: int, fps_from: float, fps_to: float) -> None:
    times = resample_times(frames, fps_from, fps_to)
    assert times[0] == 0
    assert 0 <= (frames - 1) / fps_from - float(times[-1]) / fps_from < 1 / fps_to * (1 + 1e-5)
    steps = times[1:] - times[:-1]
    assert torch.allclose(steps, torch.full_like(steps, fps_from / fps_to), atol=1e-5)


@pytest.mark.parametrize(
    ("frames", "fps_from", "fps_to", "count"),
    [(1, 30, 120, 1), (2, 30, 120, 5), (121, 120, 30, 31), (31, 30, 120, 121), (10, 30, 30, 10)],
)
def test_how_many_frames(frames: int, fps_from: float, fps_to: float, count: int) -> None:
    assert len(resample_times(frames, fps_from, fps_to)) == count


def test_linear_interpolation_of_a_line_is_the_line() -> None:
    values = torch.arange(12, dtype=torch.float64)[:, None, None] * torch.tensor([[2.0, -1.0], [0.5, 0.0]]).double() + 3
    times = torch.rand(40, dtype=torch.float64) * 11
    expected = times[:, None, None] * torch.tensor([[2.0, -1.0], [0.5, 0.0]]).double() + 3
    torch.testing.assert_close(interpolate(values, times), expected)


def test_interpolation_at_frames_returns_the_frames() -> None:
    values, quats = torch.randn(9, 4, 3, dtype=torch.float64), quat_normalize(torch.randn(9, 4, 4, dtype=torch.float64))
    times = torch.arange(9, dtype=torch.float64)
    torch.testing.assert_close(interpolate(values, times), values)
    assert float(quat_distance(interpolate_quats(quats, times), quats).max()) < 1e-7


def test_spherical_interpolation_of_a_steady_turn_is_steady() -> None:
    axis = torch.tensor([0.6, 0.0, 0.8], dtype=torch.float64)
    turn = torch.arange(20, dtype=torch.float64) * 0.3
    signs = torch.where(torch.arange(20) % 3 == 0, -1.0, 1.0).double()  # q and −q mixed, as files have them
    quats = exp_quat(turn[:, None, None] * axis) * signs[:, None, None]
    times = torch.rand(50, dtype=torch.float64) * 19
    expected = exp_quat((times * 0.3)[:, None, None] * axis)
    assert float(quat_distance(interpolate_quats(quats, times), expected).max()) < 1e-7


def test_one_frame_can_be_sampled() -> None:
    value, quat = torch.randn(1, 3), quat_normalize(torch.randn(1, 5, 4))
    times = torch.zeros(4, dtype=torch.float64)
    assert torch.equal(interpolate(value, times), value.expand(4, 3))
    assert interpolate_quats(quat, times).shape == (4, 5, 4)


def test_dtype_is_kept() -> None:
    times = torch.tensor([0.5], dtype=torch.float64)
    assert interpolate(torch.randn(2, 3), times).dtype == torch.float32
    assert interpolate_quats(quat_normalize(torch.randn(2, 4)), times).dtype == torch.float32


def test_velocity_of_a_line_and_of_one_frame() -> None:
    values = torch.arange(5, dtype=torch.float64)[:, None] * torch.tensor([1.0, -2.0]).double()
    torch.testing.assert_close(velocity(values, 30.0), torch.tensor([[30.0, -60.0]]).double().expand(5, 2))
    assert torch.equal(velocity(values[:1], 30.0), torch.zeros(1, 2).double())


def test_velocity_is_the_forward_difference() -> None:
    values = torch.tensor([0.0, 1.0, 4.0, 9.0])
    assert velocity(values, 2.0).tolist() == [2.0, 6.0, 10.0, 10.0]


def test_smooth_step_is_flat_at_its_ends_and_symmetric() -> None:
    t = torch.linspace(-1, 2, 301, dtype=torch.float64, requires_grad=True)
    s = smooth_step(t)
    (slope,) = torch.autograd.grad(s.sum(), t)
    assert s[t <= 0].abs().max() == 0
    assert (s[t >= 1] - 1).abs().max() == 0
    torch.testing.assert_close(s + smooth_step(1 - t), torch.ones_like(s))
    assert float(slope.min()) >= 0
    assert float(smooth_step(torch.tensor(0.5))) == 0.5
    assert float(slope[(t - 1e-9).abs().argmin()]) < 1e-12


def test_interpolation_passes_gradients() -> None:
    v = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    times = torch.tensor([0.0, 0.4, 1.9, 3.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda v: log_quat(interpolate_quats(exp_quat(v), times)), (v,))


# --- low-pass filter -------------------------------------------------------------------------------------------------

SIGMAS = st.sampled_from([0.5, 1.0, 2.0, 3.0])


@given(st.integers(1, 60), SIGMAS)
def test_lines_pass_the_filter_up_to_their_ends(frames: int, sigma: float) -> None:
    line = torch.arange(float(frames))[None, :, None] * torch.tensor([0.3, -2.0]) + torch.tensor([1.0, 5.0])
    filtered = low_pass(line, low_pass_kernel(sigma))
    if frames > math.ceil(5 * sigma):
        torch.testing.assert_close(filtered, line, atol=1e-4, rtol=0)
    assert torch.isfinite(filtered).all()
    assert filtered.shape == line.shape


def test_cubics_pass_inside_and_noise_does_not() -> None:
    x = torch.linspace(-1, 1, 101, dtype=torch.float64)[None, :, None]
    cubic = 2 * x**3 - x**2 + 0.5 * x
    torch.testing.assert_close(low_pass(cubic, low_pass_kernel(3.0))[:, 15:-15], cubic[:, 15:-15], atol=1e-5, rtol=0)
    noise = torch.randn(1, 5000, 1)
    jitter = [float(v.diff(dim=1).diff(dim=1).std()) for v in (noise, low_pass(noise, low_pass_kernel(3.0)))]
    assert jitter[1] < 0.05 * jitter[0]


@given(st.integers(1, 30), st.integers(0, 12), SIGMAS)
def test_padding_does_not_reach_into_a_filtered_curve(frames: int, padding: int, sigma: float) -> None:
    curve = torch.randn(1, frames, 3)
    padded = torch.cat([curve, torch.full((1, padding, 3), 100.0)], dim=1)
    valid = torch.arange(frames + padding)[None] < frames
    kernel = low_pass_kernel(sigma)
    torch.testing.assert_close(low_pass(padded, kernel, valid)[:, :frames], low_pass(curve, kernel))
