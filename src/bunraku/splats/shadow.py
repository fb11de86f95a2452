"""Shadows on the ground, as if light fell straight down: `s(P) = 1 − s_max · exp(−β d(P))`, d(P) the height of the asset above the point P.

The height comes from a rendering of the asset as the ground sees it, looking up from so far below that the rays are almost parallel.
Where the asset covers a point only in part, so does the shadow. Everything is differentiable in the splats.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.splats.camera import Camera
from bunraku.splats.rendering import Backend, render
from bunraku.splats.splats import Splats

_FAR_BELOW = 40.0  # [half widths of the map] the rays of the map's camera lean by at most 1/40
_BORDER = 1.15  # the map is this much wider than the asset


@dataclass(frozen=True, kw_only=True)
class Shadow:
    """How dark a shadow is, and how it fades with height."""

    strongest: float = 0.55  # s_max, where the asset touches the ground
    decay: float = 2.0  # β [1/m]
    pixels: int = 96  # side of the height map

    def __post_init__(self) -> None:
        if not (0 <= self.strongest <= 1 and self.decay >= 0 and self.pixels >= 8):
            raise BadValue(
                f"a shadow needs a strength from 0 to 1, a decay that is not negative and a map of 8 pixels or more; "
                f"got {self.strongest:g}, {self.decay:g} and {self.pixels}."
            )

    def light(self, height: Float[Tensor, "*batch"], cover: Float[Tensor, "*batch"] | float = 1.0) -> Float[Tensor, "*batch"]:
        """The factor s on the ground's colour below an asset at `height` [m] that hides `cover` of the light."""
        return 1 - self.strongest * cover * torch.exp(-self.decay * height.clamp_min(0))


def shadow_on_ground(
    splats: Splats, p_world: Float[Tensor, "*batch H W 3"], height: float, shadow: Shadow, backend: Backend = "auto"
) -> Float[Tensor, "*batch H W"]:
    """The factor s at points of the ground, which lies at `height` [m]."""
    camera = looking_up(splats.means.detach(), height, shadow.pixels)
    seen = render(splats, camera, backend=backend)
    light = shadow.light(seen.depth + (camera.p_world[..., 1] - height)[..., None, None], seen.alpha)
    return 1 - _sample(1 - light, camera, p_world)


def looking_up(means: Float[Tensor, "*batch N 3"], height: float, pixels: int) -> Camera:
    """From far below the ground, one pixel of map as wide everywhere: sees all splats of its frame that are above the ground."""
    low, high = means.amin(-2), means.amax(-2)
    centre = (low + high) / 2
    half = (high - low)[..., (0, 2)].amax() / 2 * _BORDER + 1e-6
    below = torch.full_like(centre[..., 0], height) - _FAR_BELOW * half
    T = torch.eye(4, dtype=means.dtype, device=means.device).expand(*centre.shape[:-1], 4, 4).clone()
    T[..., :3, :3] = means.new_tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])  # x right, its y along −Z, looking up
    T[..., :3, 3] = torch.stack([centre[..., 0], below, centre[..., 2]], dim=-1)
    focal = pixels / 2 * _FAR_BELOW
    K = means.new_tensor([[focal, 0.0, pixels / 2], [0.0, focal, pixels / 2], [0.0, 0.0, 1.0]])
    return Camera(T_world_camera=T, K=K, width=pixels, height=pixels)


def _sample(values: Float[Tensor, "*batch M M"], camera: Camera, p_world: Float[Tensor, "*batch H W 3"]) -> Float[Tensor, "*batch H W"]:
    """Values of a map at points of the ground, 0 outside it."""
    T = camera.T_world_camera
    away = p_world - T[..., None, None, :3, 3]
    # the map's camera has its x along X and its y along −Z: 1 at the border of the map, which the ground is `_FAR_BELOW` half widths away from
    place = torch.stack([away[..., 0], -away[..., 2]], dim=-1) / away[..., 1:2] * _FAR_BELOW
    batch, size = values.shape[:-2], p_world.shape[-3:-1]
    flat = torch.nn.functional.grid_sample(
        values.reshape(-1, 1, *values.shape[-2:]), place.reshape(-1, *size, 2).expand(values.shape[:-2].numel(), -1, -1, -1), align_corners=False
    )
    return flat.reshape(*batch, *size)
