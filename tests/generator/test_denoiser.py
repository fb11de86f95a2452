from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from bunraku.generator.backbone import BackboneConfig
from bunraku.generator.denoiser import Condition, Denoiser, DenoiserConfig
from bunraku.generator.features import FeatureLayout
from bunraku.generator.stats import Spread, Stats
from bunraku.kinematics.skeleton import Skeleton
from tests.generator.tiny import SMALL, denoiser_of, layout_of

# sizes of the paper: width, feed-forward width, layers in each stage (§6.3 and the release)
SIZES = {"L": (1024, 2048, 16), "M": (1024, 2048, 8), "S": (512, 2048, 8)}


def empty(layout: FeatureLayout) -> Stats:
    rows = {name: Spread(mean=torch.zeros(n), std=torch.ones(n)) for name, n in (("global_root", 5), ("local_root", 4), ("body", layout.body_width))}
    return Stats(**rows)


def parameters(layout: FeatureLayout, size: str) -> int:
    width, feed_width, layers = SIZES[size]
    with torch.device("meta"):
        config = DenoiserConfig(backbone=BackboneConfig(width=width, feed_width=feed_width, layers=layers))
        return sum(p.numel() for p in Denoiser(config, layout, empty(layout)).parameters())


def test_the_released_model_has_its_number_of_parameters() -> None:
    assert parameters(layout_of(), "L") == 283_281_777


def paper_layout() -> FeatureLayout:
    """The paper's experiments are on 27 joints of their own; only the number of joints matters here."""
    chain = Skeleton(name="paper27", joints=tuple(f"joint{i}" for i in range(27)), parents=tuple(range(-1, 26)), offsets=torch.zeros(27, 3))
    return FeatureLayout(skeleton=chain)


@pytest.mark.parametrize(("size", "millions"), [("L", 282), ("M", 148), ("S", 56)])
def test_sizes_have_the_papers_numbers_of_parameters(size: str, millions: int) -> None:
    assert abs(parameters(paper_layout(), size) / 1e6 - millions) < 1.5


def condition(clips: int = 2, frames: int = 8) -> Condition:
    torch.manual_seed(3)
    return Condition(text=torch.randn(clips, 1, SMALL.text_width), heading=torch.randn(clips))


@pytest.mark.parametrize("changes", [{}, {"stages": 1}, {"body_sees": "global_root"}])
def test_every_make_predicts_the_whole_vector(changes: dict[str, Any]) -> None:
    denoiser = denoiser_of(config=DenoiserConfig(backbone=SMALL, **changes))
    x = torch.randn(2, 8, denoiser.layout.width)
    assert denoiser(x, torch.tensor([10, 900]), condition()).shape == x.shape


def test_observed_values_replace_noisy_ones_only_under_the_mask() -> None:
    denoiser = denoiser_of()
    x, observed = torch.randn(2, 8, 369), torch.randn(2, 8, 369)
    mask = torch.rand(2, 8, 369) < 0.1
    level = torch.tensor([10, 900])
    told = replace(condition(), observed=observed, mask=mask)
    other = torch.where(mask, torch.full_like(x, 9.0), x)  # what lies under the mask is not looked at
    assert torch.equal(denoiser(x, level, told), denoiser(other, level, told))
    unmasked = replace(told, observed=torch.where(mask, observed, torch.full_like(x, 7.0)))
    assert torch.equal(denoiser(x, level, told), denoiser(x, level, unmasked))
    assert not torch.allclose(denoiser(x, level, told), denoiser(x, level, condition()))


def test_an_empty_mask_is_no_mask() -> None:
    denoiser, x, level = denoiser_of(), torch.randn(2, 8, 369), torch.tensor([10, 900])
    nothing = replace(condition(), observed=torch.randn(2, 8, 369), mask=torch.zeros(2, 8, 369, dtype=torch.bool))
    assert torch.equal(denoiser(x, level, nothing), denoiser(x, level, condition()))


def test_the_body_does_not_train_the_root() -> None:
    denoiser = denoiser_of().requires_grad_(True)
    out = denoiser(torch.randn(2, 8, 369), torch.tensor([10, 900]), condition())
    out[..., 5:].sum().backward()
    assert all(p.grad is None or not p.grad.any() for p in denoiser.root_net.parameters())
    assert all(p.grad.any() for p in denoiser.body_net.parameters())


@pytest.mark.parametrize("stages", [1, 2])
def test_filters_behind_the_outputs_take_the_jitter_out(stages: int) -> None:
    def jitter(**filters: float) -> torch.Tensor:
        """The spread of second differences of each column."""
        denoiser = denoiser_of(config=DenoiserConfig(backbone=SMALL, stages=stages, **filters))  # type: ignore[arg-type]
        guess = denoiser(torch.randn(2, 60, 369, generator=torch.Generator().manual_seed(1)), torch.tensor([10, 900]), condition())
        return guess.diff(dim=1).diff(dim=1).std(dim=1).mean(dim=0)

    plain, filtered = jitter(), jitter(path_smoothing=3.0, pose_smoothing=1.0)
    assert (filtered[[0, 2]] < 0.05 * plain[[0, 2]]).all()
    rest = [column for column in range(369) if column not in (0, 2)]
    assert (filtered[rest] < 0.6 * plain[rest]).all()
    assert (filtered[rest] > 0.05 * plain[rest]).all()
    only_path = jitter(path_smoothing=3.0)
    torch.testing.assert_close(only_path[rest][:3], plain[rest][:3])


def test_what_lies_beyond_a_clip_does_not_reach_it_through_the_filters() -> None:
    denoiser = denoiser_of(config=DenoiserConfig(backbone=SMALL, path_smoothing=3.0, pose_smoothing=1.0))
    x, level = torch.randn(1, 20, 369), torch.tensor([500])
    told = replace(condition(), text=torch.zeros(1, 1, SMALL.text_width), heading=torch.zeros(1))
    padded = torch.cat([x, torch.full((1, 9, 369), 50.0)], dim=1)
    valid = torch.arange(29)[None] < 20
    alone, among = denoiser(x, level, told), denoiser(padded, level, replace(told, valid=valid))
    torch.testing.assert_close(among[:, :20], alone, atol=1e-4, rtol=0)
