"""gsplat gets what it expects. On a machine with CUDA and gsplat its pictures are compared, elsewhere a stand-in looks at its arguments."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from bunraku.splats import Camera, Splats, random_splats, raster_gsplat
from bunraku.splats.harmonics import basis
from bunraku.splats.projection import project
from bunraku.splats.raster_gsplat import rasterise_splats
from bunraku.splats.raster_torch import rasterise_splats as specified
from tests.splats.scenes import SCENES, assert_same, before, outcome


class StandIn(ModuleType):
    """gsplat's door with its own checks of shapes. It draws by our specification from nothing but its arguments."""

    def rasterization(
        self, *, means: Tensor, quats: None, scales: None, covars: Tensor, opacities: Tensor, colors: Tensor, viewmats: Tensor, Ks: Tensor,
        width: int, height: int, near_plane: float, eps2d: float, packed: bool, render_mode: str,
    ) -> tuple[Tensor, Tensor, dict[str, Any]]:  # fmt: skip
        (scenes, count), cameras = means.shape[:2], viewmats.shape[1]
        assert covars.shape == (scenes, count, 3, 3)
        assert opacities.shape == (scenes, count)
        assert colors.shape == (scenes, count, 3)
        assert viewmats.shape == (scenes, cameras, 4, 4)
        assert Ks.shape == (scenes, cameras, 3, 3)
        assert render_mode == "RGB+D"
        splats = Splats(means=means, factors=torch.linalg.cholesky(covars), opacity_logits=torch.logit(opacities), sh=torch.zeros(count, 1, 3))
        camera = Camera(T_world_camera=torch.linalg.inv(viewmats[:, 0]), K=Ks[0, 0], width=width, height=height)
        pictures = []
        for scene in range(scenes):
            shown = replace(splats[scene], sh=(colors[scene, :, None] - 0.5) / 0.28209479177387814)
            pictures.append(specified(shown, camera[scene], near_plane, eps2d))
        color, depth, alpha = (torch.stack(value) for value in zip(*pictures, strict=True))
        return torch.cat([color, depth[..., None]], dim=-1), alpha[..., None], {}


@pytest.mark.parametrize("degree", [0, 1])
def test_arguments(monkeypatch: pytest.MonkeyPatch, degree: int) -> None:
    monkeypatch.setitem(sys.modules, "gsplat", StandIn("gsplat"))
    splats = random_splats(30, 0, degree=degree)
    clip = replace(splats, means=splats.means * torch.tensor([1.0, 1.1, 0.9])[:, None, None])
    camera = before()
    drawn = rasterise_splats(clip, camera, 0.02, 0.4)
    assert drawn[0].shape == (3, camera.height, camera.width, 3)
    torch.testing.assert_close(drawn, specified(clip, camera, 0.02, 0.4), rtol=1e-4, atol=1e-4)


def test_nothing_to_draw_needs_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gsplat", StandIn("gsplat"))
    assert [float(value.abs().max()) for value in rasterise_splats(random_splats(0, 0), before(), 0.01, 0.3)] == [0, 0, 0]


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    raster_gsplat.why_not.cache_clear()
    monkeypatch.setattr(raster_gsplat, "find_spec", lambda name: None)
    assert "pip install" in str(raster_gsplat.why_not())
    monkeypatch.setattr(raster_gsplat, "find_spec", lambda name: object())
    for kernels, sentence in ((None, "no CUDA toolkit"), (object(), "None")):
        backend = ModuleType("gsplat.cuda._backend")
        backend._C = kernels  # pyright: ignore[reportAttributeAccessIssue]
        monkeypatch.setitem(sys.modules, "gsplat", ModuleType("gsplat"))
        monkeypatch.setitem(sys.modules, "gsplat.cuda", ModuleType("gsplat.cuda"))
        monkeypatch.setitem(sys.modules, "gsplat.cuda._backend", backend)
        raster_gsplat.why_not.cache_clear()
        assert sentence in str(raster_gsplat.why_not())
    monkeypatch.setitem(sys.modules, "gsplat.cuda._backend", None)  # importing it fails
    raster_gsplat.why_not.cache_clear()
    assert "cannot build its kernels" in str(raster_gsplat.why_not())
    raster_gsplat.why_not.cache_clear()


@pytest.mark.oracle
def test_harmonics_and_ellipses_are_those_of_gsplat() -> None:
    """Against gsplat's own formulas in torch, which need no card."""
    theirs = pytest.importorskip("gsplat.cuda._torch_impl")
    splats, camera = random_splats(200, 0, degree=3).to(dtype=torch.float64), before((0.2, 0.1, 1.2)).to(dtype=torch.float64)
    direction = torch.nn.functional.normalize(torch.randn(50, 3, dtype=torch.float64), dim=-1)
    torch.testing.assert_close(basis(direction, 3), theirs._eval_sh_bases_fast(16, direction))
    p_camera, covariances = theirs._world_to_cam(splats.means, splats.covariances, camera.T_camera_world[None])
    p_pixel, flat = theirs._persp_proj(p_camera, covariances, camera.K[None], camera.width, camera.height)
    ours, seen = project(splats, camera, near=0.01, blur=0.3), p_camera[0, :, 2] > 0.01
    root = torch.zeros(200, 2, 2, dtype=torch.float64)
    root[:, 0, 0], root[:, 0, 1], root[:, 1, 1] = ours.root[0].unbind(-1)
    covariance = flat[0] + 0.3 * torch.eye(2, dtype=torch.float64)
    torch.testing.assert_close(ours.p_pixel[0, seen], p_pixel[0, seen])
    torch.testing.assert_close((root.transpose(-1, -2) @ root)[seen], torch.linalg.inv(covariance)[seen])


@pytest.mark.skipif(not torch.cuda.is_available() or find_spec("gsplat") is None, reason="needs CUDA and gsplat")
@pytest.mark.parametrize("scene", [scene for scene in SCENES if scene != "needles"])
def test_the_same_as_the_specification_on_a_gpu(scene: str) -> None:
    """Without needles: gsplat measures them by a quadratic form, which cancels in float32."""
    splats, camera = SCENES[scene]()
    assert_same(outcome(splats.to("cuda"), camera.to("cuda"), "gsplat").on("cpu"), outcome(splats, camera, "torch"))
