"""What surrounds an asset: ground, sky and shadow, composited under the splats' alpha. One call for a whole clip.

    images = render_scene(deformed, following_camera, Scene())          # (F H W 3), differentiable in splats and camera
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from bunraku.errors import BadValue
from bunraku.splats.camera import Camera
from bunraku.splats.ground import Checkerboard, Colour, Floor, see_ground
from bunraku.splats.rendering import Backend, render
from bunraku.splats.shadow import Shadow, shadow_on_ground
from bunraku.splats.splats import Splats


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Ground, sky and shadow; None leaves the ground or the shadow out."""

    ground: Checkerboard | None = field(default_factory=Checkerboard)
    sky: Colour = (0.93, 0.94, 0.96)
    shadow: Shadow | None = field(default_factory=Shadow)
    edge: float = 0.004  # [m] splats fade out below the ground over about six times this depth

    def __post_init__(self) -> None:
        if not self.edge > 0:
            raise BadValue(f"the edge at the ground must have a positive width, so that gradients live there; got {self.edge:g} m.")


def render_scene(splats: Splats, camera: Camera, scene: Scene, backend: Backend = "auto") -> Float[Tensor, "*batch H W 3"]:
    """Images of splats in a scene, sRGB values from 0 to 1."""
    if scene.ground is not None:
        splats = hide_below(splats, scene.ground.height, scene.edge)
    seen = render(splats, camera, backend=backend)
    return seen.over(backdrop(scene, camera, splats, backend))


def backdrop(scene: Scene, camera: Camera, splats: Splats | None = None, backend: Backend = "auto") -> Float[Tensor, "*batch H W 3"]:
    """Ground and sky, with the shadow of `splats` where they are given."""
    sky = torch.tensor(scene.sky, dtype=camera.T_world_camera.dtype, device=camera.T_world_camera.device)
    if scene.ground is None:
        return sky.expand(*camera.T_world_camera.shape[:-2], camera.height, camera.width, 3)
    floor = see_ground(camera, scene.ground)
    if splats is None or scene.shadow is None or not len(splats):
        return over_sky(floor, sky)
    light = shadow_on_ground(splats, floor.p_world, scene.ground.height, scene.shadow, backend)
    return over_sky(replace(floor, color=floor.color * light[..., None]), sky)


def over_sky(floor: Floor, sky: Float[Tensor, "3"]) -> Float[Tensor, "*batch H W 3"]:
    return sky + floor.share[..., None] * (floor.color - sky)


def hide_below(splats: Splats, height: float, edge: float) -> Splats:
    """Splats whose centres are below the ground lose their opacity, over a soft edge: at the height of the ground 95 % of it is left.

    The product of two sigmoids is written as one logit again, without leaving logarithms.
    """
    shown = logsigmoid(splats.opacity_logits) + logsigmoid((splats.means[..., 1] - height) / edge + 3)
    return replace(splats, opacity_logits=shown - torch.log(-torch.expm1(shown.clamp_max(-1e-7))))
