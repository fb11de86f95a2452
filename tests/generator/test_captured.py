"""A step recorded as a CUDA graph against the same steps one after the other. Only where there is a GPU."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from bunraku.diffusion.guidance import Guidance, branches
from bunraku.diffusion.schedule import CosineSchedule
from bunraku.diffusion.solvers import solve, step_table
from bunraku.generator.captured import KEPT, _kept, solve_captured
from bunraku.generator.conditioning import observe
from bunraku.generator.denoiser import Denoiser
from bunraku.generator.placing import place_denoiser
from bunraku.generator.sample import GuidedDenoiser, Request, Sampling, batch, draw_noise, sample
from bunraku.timeline.constraints import EffectorTarget, RootPath
from tests.generator.tiny import denoiser_of, layout_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="records CUDA graphs")
TABLE = step_table("dpm", CosineSchedule(), 6)


def request(frames: int = 20, seed: int = 0, *, constrained: bool = True) -> Request:
    generator = torch.Generator().manual_seed(100 + seed)
    path = RootPath(frames=torch.tensor([frames - 1]), xz=torch.tensor([[0.5 + seed, 1.0]]))
    seen = observe(layout_of(), [path], frames) if constrained else None
    return Request(frames=frames, text=torch.randn(1, 24, generator=generator), seed=seed, heading=0.1 * seed, observation=seen)


def both(denoiser: Denoiser, wanted: list[Request], text_weight: float = 2.0) -> tuple[torch.Tensor, torch.Tensor]:
    """The recorded and the plain run of the same requests."""
    condition, _ = batch(denoiser, wanted)
    steps = branches(Guidance(text=text_weight), has_text=True, has_constraints=condition.mask is not None)
    longest = max(one.frames for one in wanted)
    noise = torch.zeros(len(wanted), longest, denoiser.layout.width)
    for row, one in enumerate(wanted):
        noise[row, : one.frames] = draw_noise(one, denoiser.layout)
    noise = noise.cuda()
    recorded = solve_captured(TABLE, GuidedDenoiser(denoiser, condition, steps), noise)
    return recorded, solve(TABLE, GuidedDenoiser(denoiser, condition, steps), noise)


@pytest.mark.parametrize("precision", ["float32", "float16", "bfloat16"])
def test_a_recorded_run_is_the_plain_run(precision: str) -> None:
    denoiser = place_denoiser(denoiser_of(), device="cuda", precision=precision)
    for wanted in ([request()], [request(seed=1)], [request(seed=2), request(frames=12, seed=3)], [request(constrained=False)]):
        recorded, plain = both(denoiser, wanted)
        assert torch.allclose(recorded, plain, atol=1e-4 if precision == "float32" else 0.02)


def test_a_graph_is_used_again_with_other_texts_constraints_headings_and_weights() -> None:
    denoiser = place_denoiser(denoiser_of(), device="cuda", precision="float32")
    both(denoiser, [request()])
    recorded, plain = both(denoiser, [request(seed=5)], text_weight=4.0)
    assert len(_kept[denoiser]) == 1
    assert torch.allclose(recorded, plain, atol=1e-4)


def test_only_a_few_graphs_are_kept() -> None:
    denoiser = place_denoiser(denoiser_of(), device="cuda", precision="float32")
    for frames in range(10, 10 + KEPT + 3):
        both(denoiser, [request(frames=frames)])
    assert len(_kept[denoiser]) == KEPT


def test_the_gpu_draws_what_the_cpu_draws() -> None:
    here, there = denoiser_of(), place_denoiser(copy.deepcopy(denoiser_of()), device="cuda", precision="float32")
    target = EffectorTarget(frames=torch.tensor([6]), effector="left_hand", position=torch.tensor([[0.4, 1.5, 0.3]]))
    floating = replace(request(), observation=observe(layout_of(), [target], 20))
    for wanted in ([request(), request(frames=13, seed=1)], [floating]):
        for a, b in zip(sample(here, wanted, Sampling(steps=6)), sample(there, wanted, Sampling(steps=6)), strict=True):
            assert torch.allclose(a, b, atol=1e-3)
