from __future__ import annotations

import copy

import pytest
import torch

from bunraku.errors import BadValue
from bunraku.generator.features import decode
from bunraku.generator.placing import place_denoiser
from bunraku.generator.sample import Request, Sampling, sample
from bunraku.kinematics.forward import forward_kinematics
from tests.generator.tiny import denoiser_of


def test_only_the_products_inside_the_layers_get_coarser() -> None:
    denoiser = place_denoiser(denoiser_of(), device="cpu", precision="bfloat16")
    for name, weight in denoiser.named_parameters():
        inside = ".layers." in name and "norm" not in name
        assert weight.dtype == (torch.bfloat16 if inside else torch.float32), name
    assert not denoiser.exact


def test_norms_of_queries_and_keys_run_in_the_format_of_the_products(recwarn: pytest.WarningsRecorder) -> None:
    denoiser = place_denoiser(denoiser_of(norm="pre", qk_norm=True), device="cpu", precision="bfloat16")
    sample(denoiser, [Request(frames=5, text=torch.randn(1, 24))], Sampling(steps=1))
    assert not [str(warning.message) for warning in recwarn if "dtype" in str(warning.message)]


def test_bfloat16_moves_joints_by_millimetres() -> None:
    exact = denoiser_of()
    coarse = place_denoiser(copy.deepcopy(exact), device="cpu", precision="bfloat16")
    wanted = [Request(frames=30, text=torch.randn(1, 24), seed=seed) for seed in range(3)]
    clips = [sample(denoiser, wanted, Sampling(steps=10)) for denoiser in (exact, coarse)]
    for a, b in zip(*clips, strict=True):
        there, here = (forward_kinematics(decode(exact.layout, features).motion).p_world_joint for features in (a, b))
        assert 0 < (there - here).norm(dim=-1).mean() < 0.01


def test_a_device_that_is_not_there_gets_its_sentence() -> None:
    with pytest.raises(BadValue, match="no device"):
        place_denoiser(denoiser_of(), device="abacus")
    if not torch.cuda.is_available():
        with pytest.raises(BadValue, match="no CUDA device"):
            place_denoiser(denoiser_of(), device="cuda")
