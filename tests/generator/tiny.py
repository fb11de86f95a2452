"""A small random denoiser of the released make, for tests."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch

import bunraku
from bunraku.generator.backbone import BackboneConfig
from bunraku.generator.denoiser import Condition, Denoiser, DenoiserConfig
from bunraku.generator.features import FeatureLayout, encode
from bunraku.generator.stats import Spread, Stats
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.walk import walk

SMALL = BackboneConfig(width=32, feed_width=64, layers=2, heads=4, text_width=24, text_slots=6)


def layout_of(name: str = "soma30") -> FeatureLayout:
    return FeatureLayout(skeleton=bunraku.skeleton(name))


def walking(layout: FeatureLayout, seconds: float = 2.0) -> Motion:
    return _walking(layout.skeleton.name, seconds)


@cache
def _walking(name: str, seconds: float) -> Motion:
    return walk(bunraku.skeleton(name), seconds=seconds, fps=30.0)


def stats_of(layout: FeatureLayout) -> Stats:
    """Statistics of a walk, so that decoded motions are about as large as a person."""
    features = encode(layout, walking(layout))
    spread = Spread(mean=features.mean(0), std=features.std(0) + 0.1)
    ones = Spread(mean=torch.zeros(4), std=torch.ones(4))
    return Stats(
        global_root=Spread(mean=spread.mean[:5], std=spread.std[:5]), local_root=ones, body=Spread(mean=spread.mean[5:], std=spread.std[5:])
    )


def denoiser_of(name: str = "soma30", config: DenoiserConfig | None = None, seed: int = 0, **changes: object) -> Denoiser:
    layout = layout_of(name)
    torch.manual_seed(seed)
    make = DenoiserConfig(backbone=replace(SMALL, **changes)) if config is None else config
    return Denoiser(make, layout, stats_of(layout)).eval().requires_grad_(False)


class Walker(Denoiser):
    """Whatever it is asked, it draws a walk from the origin along +Z: clean motion, deaf to constraints."""

    def forward(self, x: torch.Tensor, level: torch.Tensor, condition: Condition) -> torch.Tensor:
        spread = self.stats.features
        return ((walk_features(self.layout.skeleton.name)[: x.shape[1]] - spread.mean) / spread.scale).expand_as(x)


@cache
def walk_features(name: str = "soma30") -> torch.Tensor:
    """Three seconds of what a Walker draws."""
    features = encode(layout_of(name), walking(layout_of(name), seconds=3.0)).clone()
    features[:, [0, 2]] -= features[:1, [0, 2]].clone()
    return features


def walker(name: str = "soma30") -> Walker:
    layout = layout_of(name)
    return Walker(DenoiserConfig(backbone=SMALL), layout, stats_of(layout)).eval().requires_grad_(False)
