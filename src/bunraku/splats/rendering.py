"""The one door to the rasterisers: splats and cameras in, pictures out, a whole clip in one call."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.splats.camera import Camera
from bunraku.splats.splats import Splats

Backend = Literal["auto", "torch", "cpu", "gsplat"]
# [m] farther out float32 cannot tell a hand from a foot; the squared area of a larger splat close by is no float32 number
_LARGEST: Mapping[str, float] = MappingProxyType({"means": 1e9, "factors": 1e4})


@dataclass(frozen=True, kw_only=True)
class RenderSettings:
    near: float = 0.01  # [m] splats whose centre is nearer to the camera are not drawn
    blur: float = 0.3  # [px²] added to every splat's picture, so that nothing is thinner than a pixel

    def __post_init__(self) -> None:
        if not (self.near > 0 and self.blur > 0):
            raise BadValue(f"rendering with near={self.near:g} m and blur={self.blur:g} px² is impossible; both must be above 0, as 0.01 and 0.3 are.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Rendering:
    """What the cameras see, without background."""

    color: Float[Tensor, "*batch H W 3"]  # times alpha; sRGB
    alpha: Float[Tensor, "*batch H W"]  # share of the pixel that splats cover
    depth: Float[Tensor, "*batch H W"]  # mean of the splats' distances along the camera's axis [m]; 0 where alpha is 0
    backend: str  # which rasteriser made it

    def over(self, background: Float[Tensor, "*#background 3"]) -> Float[Tensor, "*batch H W 3"]:
        """The picture in front of a colour or of another picture."""
        return self.color + (1 - self.alpha[..., None]) * background


def render(splats: Splats, camera: Camera, backend: Backend = "auto", settings: RenderSettings | None = None) -> Rendering:
    """Pictures of splats. Frames of the splats and cameras of a batch broadcast: F frames seen by one camera, or by F, are F pictures.

    Gradients reach means, factors, opacities, colours and the camera's pose, not its lens. `backend`: "cpu" (numba, float32), "gsplat" (CUDA), "torch" (any
    device and precision, slow), or "auto", the fastest that fits.
    """
    settings = settings or RenderSettings()
    batch = _batch(splats, camera)
    _require_numbers(splats, camera)
    chosen = _choose(backend, splats.means.device.type, splats.means.dtype)
    rasterise_splats = import_module(f"bunraku.splats.raster_{chosen}").rasterise_splats
    sums = rasterise_splats(splats, camera, settings.near, settings.blur)
    color, depth, alpha = (value.reshape(*batch, *value.shape[1:]) for value in sums)
    return Rendering(color=color, alpha=alpha, depth=depth / alpha.clamp_min(1e-10), backend=chosen)


def _choose(backend: str, kind: str, dtype: torch.dtype) -> str:
    """The backend to use on a kind of device; "auto" never settles for the slow one there without saying so."""
    if backend not in get_args(Backend):
        raise BadValue(f"there is no rasteriser '{backend}'; choose {', '.join(get_args(Backend))}.")
    if backend == "cpu" and (kind != "cpu" or dtype != torch.float32):
        raise BadValue(f"the rasteriser 'cpu' draws float32 splats in main memory, these are {dtype} on '{kind}'; use backend='torch', or splats.to(...).")
    if backend == "gsplat" and (kind != "cuda" or dtype != torch.float32):
        raise BadValue(
            f"the rasteriser 'gsplat' draws float32 splats on a CUDA device, these are {dtype} on '{kind}'; use splats.to('cuda'), or backend='cpu'."
        )
    if backend == "torch" or dtype != torch.float32 or kind not in ("cpu", "cuda"):
        return "torch"
    if kind == "cpu":
        return "cpu"
    from bunraku.splats.raster_gsplat import why_not

    missing = why_not()
    if missing and backend == "gsplat":
        raise BadValue(f"the rasteriser 'gsplat' cannot be used: {missing}. Or use backend='torch'.")
    if missing:
        warnings.warn(f"{missing}. Until then the plain torch rasteriser draws, which is far slower.", stacklevel=3)
    return "torch" if missing else "gsplat"


def _batch(splats: Splats, camera: Camera) -> torch.Size:
    given = splats.batch, camera.T_world_camera.shape[:-2]
    try:
        return torch.broadcast_shapes(*given)
    except RuntimeError:
        frames, views = ("×".join(map(str, shape)) for shape in given)
        raise BadValue(f"{frames} frames of splats and {views} cameras do not fit together; give one camera, or one for each frame.") from None


def _require_numbers(splats: Splats, camera: Camera) -> None:
    """What is not a number would silently make pictures, or worse, gradients, that are none."""
    given = {"means": splats.means, "factors": splats.factors, "sh": splats.sh, "opacity_logits": splats.opacity_logits}
    given |= {"T_world_camera": camera.T_world_camera, "K": camera.K}
    for name, value in given.items():
        if value.dtype != splats.means.dtype or value.device != splats.means.device:
            raise BadValue(f"{name} are {value.dtype} on {value.device}, the splats' means {splats.means.dtype} on {splats.means.device}; use .to(...) on one.")
        if value.numel() == 0:
            continue
        low, high = (float(bound) for bound in torch.aminmax(value.detach()))
        largest = max(-low, high)
        # an opacity of exactly 0 has the logit −∞
        if math.isnan(largest) or (math.isinf(largest) and name != "opacity_logits"):
            where = tuple(int(i) for i in (~value.isfinite()).nonzero()[0])
            raise BadValue(f"{name} {where} is {float(value[where])}: not a finite number. Look for what diverged or was divided by zero before rendering.")
        if largest > _LARGEST.get(name, math.inf):
            raise BadValue(f"splats have {name} of up to {largest:.3g} m; {_LARGEST[name]:g} m can be drawn. Is their unit the metre?")
    K = camera.K.detach().cpu()
    if not (K[0, 0] > 0 and K[1, 1] > 0 and K[0, 1] == 0):
        raise BadValue(f"a camera has the lens K = {K.tolist()}; focal lengths above 0 on its diagonal and no skew are needed. Use Camera.look_at.")
