"""The compiled z-buffer gives what its readable twin gives."""

from __future__ import annotations

import numpy as np
import pytest

from bunraku.geometry.raster import rasterise_projected
from bunraku.geometry.zbuffer import rasterise_fast


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_twins(parallel: bool, seed: int) -> None:
    """Faces of all sizes, in front of, behind and beside the picture, some without area."""
    random = np.random.default_rng(seed)
    p = random.uniform((-30, -20, -1), (90, 60, 6), (120, 3))
    faces = np.concatenate([random.integers(0, 120, (60, 3)), np.repeat(np.arange(120)[:, None], 3, axis=1)[:5]])
    p[60:] = p[:60] + random.normal(0, 3, (60, 3))
    slow, fast = (function(p, faces, 64, 48, parallel=parallel) for function in (rasterise_projected, rasterise_fast))
    assert len(slow.pixel) > 300
    for name in ("pixel", "face", "weight", "depth"):
        assert getattr(fast, name) == pytest.approx(getattr(slow, name), abs=1e-9), name


@pytest.mark.parametrize("shift", [(0, 0, -9), (500, 0, 0), (0, -500, 0), (np.nan, 0, 0)])
def test_what_is_not_in_the_picture(shift: tuple[float, float, float]) -> None:
    p = np.array([[5.0, 5, 1], [20, 6, 1], [9, 20, 1]]) + shift
    assert len(rasterise_fast(p, np.array([[0, 1, 2]]), 30, 30).pixel) == 0
    assert len(rasterise_fast(np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64), 30, 30).pixel) == 0
