"""The kernels that carry splats against their twin in plain torch: values and gradients, and the same bits on any number of cores."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bunraku.splats.cpu_deformation import carried_fast
from bunraku.splats.deformation import carried

Arguments = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor]


def scene(seed: int, count: int, joints: int, frames: int, riding: bool = True) -> Arguments:
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(count, joints, generator=generator) * (torch.rand(count, joints, generator=generator) < 0.5)
    weights[:, 0] += 0.1
    weights = weights / weights.sum(1, keepdim=True)
    shapes = ((count, 3), (count, 3, 3)), (frames, joints, 3, 4)
    means, factors = (torch.randn(shape, generator=generator) for shape in shapes[0])
    arms = torch.randn(count, joints, 3, generator=generator) * (weights[:, :, None] > 0)
    return means, factors, weights, arms if riding else None, torch.randn(shapes[1], generator=generator)


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), count=st.integers(0, 20), joints=st.integers(1, 6), frames=st.integers(1, 4), riding=st.booleans())
def test_twins(seed: int, count: int, joints: int, frames: int, riding: bool) -> None:
    means, factors, weights, arms, moved = scene(seed, count, joints, frames, riding)
    generator = torch.Generator().manual_seed(seed)
    pull = torch.randn(frames, count, 3, generator=generator), torch.randn(frames, count, 3, 3, generator=generator)
    results = []
    for function in (carried, carried_fast):
        free = [value.clone().requires_grad_() for value in (means, factors, moved)]
        out = function(free[0], free[1], weights, arms, free[2])
        gradients = torch.autograd.grad(sum((value * p).sum() for value, p in zip(out, pull, strict=True)), free)
        results.append([*out, *gradients])
    for slow, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("needed", [0, 2])
def test_gradients_that_nobody_asked_for_are_not_made(needed: int) -> None:
    means, factors, weights, arms, moved = scene(0, 5, 3, 2)
    free = [means, factors, moved]
    free[needed] = free[needed].requires_grad_()
    means, _ = carried_fast(free[0], free[1], weights, arms, free[2])
    means.sum().backward()
    assert [value.grad is not None for value in free] == [number == needed for number in range(3)]


def test_cores_do_not_matter() -> None:
    means, factors, weights, arms, moved = scene(1, 3000, 5, 7)
    results = []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        try:
            free = [value.clone().requires_grad_() for value in (means, factors, moved)]
            out = carried_fast(free[0], free[1], weights, arms, free[2])
            results.append([*out, *torch.autograd.grad(sum(value.square().sum() for value in out), free)])
        finally:
            torch.set_num_threads(1)
    for one, three in zip(*results, strict=True):
        assert torch.equal(one, three)
