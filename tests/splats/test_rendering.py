"""The door: which rasteriser it chooses, and what it does not let in."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from bunraku.errors import BadValue
from bunraku.splats import RenderSettings, random_splats, raster_gsplat, render, rendering
from tests.splats.scenes import before


def test_the_fastest_that_fits_is_chosen_and_named() -> None:
    splats, camera = random_splats(5, 0), before()
    assert render(splats, camera).backend == "cpu"
    assert render(splats.to(dtype=torch.float64), camera.to(dtype=torch.float64)).backend == "torch"


def test_without_gsplat_a_gpu_falls_back_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raster_gsplat, "why_not", lambda: "gsplat is not here")
    with pytest.warns(UserWarning, match=r"gsplat is not here\. .*slower"):
        assert rendering._choose("auto", "cuda", torch.float32) == "torch"
    with pytest.raises(BadValue, match="cannot be used: gsplat is not here"):
        rendering._choose("gsplat", "cuda", torch.float32)
    monkeypatch.setattr(raster_gsplat, "why_not", lambda: None)
    assert rendering._choose("auto", "cuda", torch.float32) == "gsplat"
    assert rendering._choose("auto", "cuda", torch.float64) == "torch"
    assert rendering._choose("auto", "mps", torch.float32) == "torch"


@pytest.mark.usefixtures("unchecked_shapes")
def test_impossible_choices_are_refused() -> None:
    splats, camera = random_splats(5, 0), before()
    with pytest.raises(BadValue, match="no rasteriser 'metal'"):
        render(splats, camera, "metal")  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="CUDA device"):
        render(splats, camera, "gsplat")
    with pytest.raises(BadValue, match="float32 splats in main memory"):
        render(splats.to(dtype=torch.float64), camera.to(dtype=torch.float64), "cpu")


@pytest.mark.parametrize("backend", ["cpu", "torch"])
def test_numbers_that_are_none_are_named(backend: Any) -> None:
    splats, camera = random_splats(5, 0), before()
    for name in ("means", "factors", "sh", "opacity_logits"):
        spoilt = getattr(splats, name).clone()
        spoilt[2] = math.nan
        with pytest.raises(BadValue, match=rf"{name} \(2.*not a finite number"):
            render(replace(splats, **{name: spoilt}), camera, backend)
    T = camera.T_world_camera.clone()
    T[0, 3] = math.inf
    with pytest.raises(BadValue, match="T_world_camera"):
        render(splats, replace(camera, T_world_camera=T), backend)
    for row, column, value in ((0, 0, 0.0), (1, 1, -5.0), (0, 1, 2.0)):
        K = camera.K.clone()
        K[row, column] = value
        with pytest.raises(BadValue, match="focal lengths above 0"):
            render(splats, replace(camera, K=K), backend)
    with pytest.raises(BadValue, match="Is their unit the metre"):
        render(replace(splats, factors=1e6 * splats.factors), camera, backend)
    with pytest.raises(BadValue, match="Is their unit the metre"):
        render(replace(splats, means=1e12 * splats.means), camera, backend)


def test_what_does_not_fit_together_is_named() -> None:
    splats, camera = random_splats(5, 0), before()
    with pytest.raises(BadValue, match=r"use \.to"):
        render(splats, camera.to(dtype=torch.float64))
    moving = replace(splats, means=splats.means.expand(3, -1, -1))
    cameras = replace(camera, T_world_camera=camera.T_world_camera.expand(2, -1, -1))
    with pytest.raises(BadValue, match="3 frames of splats and 2 cameras"):
        render(moving, cameras)
    for settings in ({"near": 0.0}, {"blur": -1.0}, {"near": math.nan}):
        with pytest.raises(BadValue, match="must be above 0"):
            RenderSettings(**settings)


@pytest.mark.parametrize("backend", ["cpu", "torch"])
def test_settings_reach_the_picture(backend: Any) -> None:
    splats, camera = random_splats(50, 0), before()
    assert render(splats, camera, backend, RenderSettings(near=10.0)).alpha.max() == 0
    plain, blurred = (render(splats, camera, backend, RenderSettings(blur=blur)).alpha for blur in (0.3, 3.0))
    assert blurred.sum() > 1.05 * plain.sum()


@pytest.mark.parametrize("backend", ["cpu", "torch"])
def test_a_clip_without_frames_is_a_clip_without_pictures(backend: Any) -> None:
    splats = random_splats(5, 0)
    assert render(replace(splats, means=splats.means.expand(0, -1, -1)), before(), backend).color.shape == (0, 37, 53, 3)
