"""Pictures of a textured mesh without light, exact but for their pixels: what splats are fitted to and measured by."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.geometry.appearance import Appearance
from bunraku.geometry.colour import to_srgb
from bunraku.geometry.zbuffer import rasterise_fast
from bunraku.splats.camera import FIELD_OF_VIEW, Camera

_SUPERSAMPLING = 3  # squared samples per pixel
_NEAR = 1e-4  # of the farthest depth: what is nearer to the camera is not drawn
_MARGIN = 1.05  # the ball around the character, nearest view, over what the picture holds


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
    """What a camera should see."""

    color: Float[Tensor, "*batch H W 3"]  # times alpha; sRGB
    alpha: Float[Tensor, "*batch H W"]

    def over(self, background: Float[Tensor, "3"]) -> Float[Tensor, "*batch H W 3"]:
        return self.color + (1 - self.alpha[..., None]) * background


def random_views(vertices: Float[Tensor, "V 3"], count: int, seed: int, size: int = 256, closest: float = 1.0) -> list[Camera]:
    """Cameras all around, evenly over the sphere, that see the whole body, it or its ball filling the picture or three quarters of it.

    Every second one looks at a vertex through a longer lens instead, at up to `closest` times the scale.
    """
    generator = torch.Generator().manual_seed(seed)
    low, high = vertices.amin(0), vertices.amax(0)
    middle = (low + high) / 2
    radius = float((vertices - middle).norm(dim=1).max())
    number = torch.arange(count)
    height = 1 - 2 * (number + torch.rand(count, generator=generator)) / count
    around = math.pi * (3 - math.sqrt(5)) * number + 2 * math.pi * torch.rand(1, generator=generator)
    level = (1 - height**2).clamp_min(0).sqrt()
    direction = torch.stack([level * around.cos(), height, level * around.sin()], dim=-1).to(vertices)
    distance = _MARGIN * radius / math.sin(FIELD_OF_VIEW / 2) * (1 + 0.33 * torch.rand(count, generator=generator)).to(vertices)
    zoom = torch.where(number % 2 == 1, closest ** torch.rand(count, generator=generator), 1.0).tolist()
    seen = vertices[torch.randint(len(vertices), (count,), generator=generator)]
    target = torch.where((number % 2 == 1)[:, None] & (closest > 1), seen, middle)
    eye = target + direction * distance[:, None]
    fields = (2 * math.atan(math.tan(FIELD_OF_VIEW / 2) / z) for z in zoom)
    return [Camera.look_at(eye[i], target[i], size, size, field_of_view=field) for i, field in enumerate(fields)]


def draw_mesh(vertices: Float[Tensor, "V 3"], appearance: Appearance, camera: Camera) -> Target:
    """One picture of the mesh with these vertices; `camera` is a single one."""
    fine = camera.resized(camera.width * _SUPERSAMPLING, camera.height * _SUPERSAMPLING)
    p_pixel, depth = fine.project(vertices.double().to(fine.T_world_camera.dtype))
    p_image = torch.cat([p_pixel, depth[:, None]], dim=-1).double().numpy()
    far = p_image[appearance.faces.ravel(), 2].max(initial=0)
    hits = rasterise_fast(p_image, appearance.faces, fine.width, fine.height, near=_NEAR * far)
    area = (hits.depth * _SUPERSAMPLING / float(fine.K[0, 0])) ** 2
    row, column = np.divmod(hits.pixel, fine.width)
    pixel = row // _SUPERSAMPLING * camera.width + column // _SUPERSAMPLING
    samples = [*to_srgb(appearance.colour(hits.face, hits.weight, area)).T, np.ones(len(pixel))]
    sums = np.stack([np.bincount(pixel, channel, camera.width * camera.height) for channel in samples], axis=-1)
    picture = torch.from_numpy(sums / _SUPERSAMPLING**2).float().reshape(camera.height, camera.width, 4)
    return Target(color=picture[..., :3], alpha=picture[..., 3])
