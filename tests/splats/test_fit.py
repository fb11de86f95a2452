"""Fitting: nearer to pictures never seen, near the skin all the while, and the same for the same seed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bunraku.errors import BadValue
from bunraku.geometry.appearance import appearance_of
from bunraku.splats import Camera, Splats
from bunraku.splats.fit import FitSettings, fit_splats
from bunraku.splats.seed import seed_splats, spacing_of
from bunraku.splats.views import Target, draw_mesh, random_views
from tests.splats.likeness import psnr
from tests.splats.puppet import puppet

SIZE, COUNT = 48, 400
SETTINGS = FitSettings(iterations=60)


def views(count: int, seed: int) -> tuple[list[Camera], list[Target]]:
    mesh = puppet().mesh
    cameras = random_views(mesh.vertices, count, seed, size=SIZE)
    return cameras, [draw_mesh(mesh.vertices, appearance_of(mesh), camera) for camera in cameras]


def seeds() -> tuple[Splats, float]:
    mesh = puppet().mesh
    return seed_splats(mesh, appearance_of(mesh), COUNT), spacing_of(mesh, COUNT)


def test_unseen_views_get_nearer_and_splats_stay_where_the_skin_is() -> None:
    start, spacing = seeds()
    told: list[float] = []
    fitted = fit_splats(start, spacing, *views(20, 0), SETTINGS, told.append)
    assert psnr(fitted, *views(6, 77)) > psnr(start, *views(6, 77)) + 2
    assert float((fitted.means - start.means).norm(dim=1).quantile(0.99)) < spacing
    sizes = fitted.factors.norm(dim=1)
    assert float((sizes[:, 2] / sizes[:, :2].amin(1)).quantile(0.95)) < 0.6
    assert float(sizes.max()) <= 3.01 * spacing
    assert told == sorted(told)
    assert told[-1] == 1
    assert not fitted.means.requires_grad


def test_the_seed_decides() -> None:
    start, spacing = seeds()
    few = replace(SETTINGS, iterations=5)
    seen = views(3, 0)
    first, again = (fit_splats(start, spacing, *seen, few) for _ in range(2))
    other = fit_splats(start, spacing, *seen, replace(few, seed=1))
    assert torch.equal(first.means, again.means)
    assert torch.equal(first.sh, again.sh)
    assert not torch.equal(first.means, other.means)


def test_no_steps_change_nothing() -> None:
    start, spacing = seeds()
    fitted = fit_splats(start, spacing, *views(1, 0), FitSettings(iterations=0))
    torch.testing.assert_close(fitted.factors, start.factors)
    torch.testing.assert_close(fitted.means, start.means)
    with pytest.raises(BadValue, match="0 or more"):
        FitSettings(iterations=-1)
