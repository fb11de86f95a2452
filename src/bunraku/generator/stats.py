"""Means and spreads of features: the numbers a network is fed have zero mean and unit spread, as those it was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import FileProblem, FormatProblem
from bunraku.generator.features import LOCAL_ROOT_WIDTH, ROOT_WIDTH, FeatureLayout

SOFTENING = 1e-5  # added to the variance, as released: features that hardly vary are not blown up


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread:
    """Mean and standard deviation of some features."""

    mean: Float[Tensor, " n"]
    std: Float[Tensor, " n"]

    @property
    def scale(self) -> Float[Tensor, " n"]:
        return (self.std**2 + SOFTENING).sqrt()


@dataclass(frozen=True, kw_only=True, eq=False)
class Stats:
    """The three spreads of a model: of the root in the world, of the root as the body stage sees it, and of the body."""

    global_root: Spread
    local_root: Spread
    body: Spread

    @property
    def features(self) -> Spread:
        """The spread of the whole feature vector."""
        return Spread(mean=torch.cat([self.global_root.mean, self.body.mean]), std=torch.cat([self.global_root.std, self.body.std]))


def load_stats(folder: Path, layout: FeatureLayout) -> Stats:
    """Reads `{global_root,local_root,body}/{mean,std}.npy`, as released."""
    widths = {"global_root": ROOT_WIDTH, "local_root": LOCAL_ROOT_WIDTH, "body": layout.body_width}
    return Stats(**{name: _load_spread(folder / name, width, layout) for name, width in widths.items()})


def save_stats(stats: Stats, folder: Path) -> None:
    for name, spread in vars(stats).items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for kind in ("mean", "std"):
            np.save(folder / name / f"{kind}.npy", getattr(spread, kind).cpu().numpy())


def stats_tensors(stats: Stats) -> Mapping[str, Tensor]:
    """The six rows by name, for a single file."""
    return {f"{name}.{kind}": getattr(spread, kind) for name, spread in vars(stats).items() for kind in ("mean", "std")}


def _load_spread(folder: Path, width: int, layout: FeatureLayout) -> Spread:
    rows = {}
    for kind in ("mean", "std"):
        path = folder / f"{kind}.npy"
        if not path.is_file():
            raise FileProblem(f"'{path}' is missing; a checkpoint folder has stats/{{global_root,local_root,body}}/{{mean,std}}.npy.")
        try:
            row = np.load(path, allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise FormatProblem(f"'{path}' is no NumPy array file ({error}).") from error
        if row.shape != (width,) or row.dtype.kind != "f":
            needed = f"{width} numbers for '{layout.skeleton.name}' ({layout.joints} joints)"
            raise FormatProblem(f"'{path}' holds {row.dtype} of shape {list(row.shape)}; {needed} are needed. Are these the statistics of another skeleton?")
        if not np.isfinite(row).all() or (kind == "std" and (row < 0).any()):
            raise FormatProblem(f"'{path}' holds numbers that are not finite, or a negative spread.")
        rows[kind] = torch.from_numpy(row.astype(np.float32))
    return Spread(**rows)
