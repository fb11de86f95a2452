"""Means and spreads of the features of a dataset's train split, as a model is to be fed with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bunraku.datasets.features import mirror_features, rows_features
from bunraku.generator.features import FeatureLayout, canonical_features, local_root, turn_features
from bunraku.generator.stats import Spread, Stats

if TYPE_CHECKING:
    from bunraku.datasets.store import Dataset

LONGEST = 10.0  # [s] of a crop
SEED = 0


def statistics_of(dataset: Dataset, layout: FeatureLayout | None = None) -> Stats:
    """Over crops of at most 10 s that follow each other, each as it is and mirrored, each turned anyhow, its smoothed root starting above
    the origin. A dataset without a train split is measured over all of its clips. `layout`: of the features, if not the dataset's own."""
    layout, generator = dataset.layout if layout is None else layout, torch.Generator().manual_seed(SEED)
    sums = {"root": _Sums(), "local": _Sums(), "body": _Sums()}
    for clip in dataset.of_split("train") or range(len(dataset)):
        frames = dataset.clips[clip].frames
        longest = round(LONGEST * dataset.fps)
        for first in range(0, frames, longest):
            features = canonical_features(layout, rows_features(layout, dataset.rows(clip, range(first, min(first + longest, frames)))))
            for copy in (features, mirror_features(layout, features)):
                yaw = torch.rand((), generator=generator) * 2 * torch.pi
                copy = turn_features(layout, copy, yaw.expand(len(copy)))
                root = copy[:, layout.root]
                sums["root"].add(root)
                sums["local"].add(local_root(root[None], layout.fps)[0])
                sums["body"].add(copy[:, layout.body])
    return Stats(global_root=sums["root"].spread(), local_root=sums["local"].spread(), body=sums["body"].spread())


class _Sums:
    """Mean and standard deviation of rows that come bit by bit, in float64."""

    def __init__(self) -> None:
        self.count, self.total, self.squares = 0, torch.zeros(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)

    def add(self, rows: Tensor) -> None:
        rows = rows.double()
        self.count += len(rows)
        self.total = self.total + rows.sum(dim=0)
        self.squares = self.squares + rows.square().sum(dim=0)

    def spread(self) -> Spread:
        mean = self.total / self.count
        return Spread(mean=mean.float(), std=(self.squares / self.count - mean**2).clamp_min(0).sqrt().float())
