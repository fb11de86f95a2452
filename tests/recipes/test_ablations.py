"""The paper's ablations: each changes what its name says and nothing else, and makes a network that runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import bunraku
from bunraku.generator.denoiser import Condition, Denoiser
from bunraku.generator.features import FeatureLayout
from bunraku.recipes.ablations import ABLATIONS
from bunraku.recipes.generator import small
from bunraku.training.settings import as_json
from tests.generator.tiny import stats_of

CHANGED = {
    "full": set(),
    "one-stage": {"denoiser.stages", "denoiser.backbone.layers"},
    "second-stage-global": {"denoiser.body_sees"},
    "no-smoothed-root": {"smooth_root", "denoiser.path_smoothing"},
    "no-extra-tokens": {"denoiser.backbone.text_slots"},
    "no-curriculum": {"text_only", "dropout", "constrained"},
}


def flat(value: object, name: str = "") -> dict[str, object]:
    if isinstance(value, dict):
        return {key: item for part, values in value.items() for key, item in flat(values, f"{name}.{part}" if name else part).items()}
    return {name: value}


@pytest.mark.parametrize("name", ABLATIONS)
def test_only_what_is_named_changes(name: str) -> None:
    full, changed = flat(as_json(small())), flat(as_json(ABLATIONS[name](small())))
    assert {key for key in full if full[key] != changed[key]} == CHANGED[name]


@pytest.mark.parametrize("name", ABLATIONS)
def test_the_network_runs(name: str) -> None:
    settings = small()
    tiny = replace(settings.denoiser.backbone, width=32, feed_width=64, layers=2, heads=4, text_width=24)
    settings = ABLATIONS[name](replace(settings, denoiser=replace(settings.denoiser, backbone=tiny)))
    layout = FeatureLayout(skeleton=bunraku.skeleton("soma30"), smooth=settings.smooth_root)
    denoiser = Denoiser(settings.denoiser, layout, stats_of(layout))
    condition = Condition(text=torch.zeros(2, settings.denoiser.backbone.text_slots, 24), heading=torch.zeros(2))
    assert denoiser(torch.randn(2, 12, layout.width), torch.tensor([3, 500]), condition).shape == (2, 12, layout.width)


def test_one_stage_has_about_as_many_weights() -> None:
    layout = FeatureLayout(skeleton=bunraku.skeleton("soma30"))
    stats, sizes = stats_of(layout), []
    for name in ("full", "one-stage"):
        with torch.device("meta"):
            denoiser = Denoiser(ABLATIONS[name](small()).denoiser, layout, stats)
        sizes.append(sum(weight.numel() for weight in denoiser.parameters()))
    assert sizes[1] == pytest.approx(sizes[0], rel=0.05)
