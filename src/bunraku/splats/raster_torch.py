"""The rasteriser in plain torch: the specification that the fast ones are tested against, on any device and in any precision.

Of the splats that touch a tile of the picture, front to back, splat i covers `alpha_i = min(opacity exp(−½ d²), 0.999)` of a
pixel d standard deviations from its centre, or nothing below 1/255, and shows with the weight `alpha_i Π_{j<i} (1 − alpha_j)`. A pixel is
finished before the first splat that would leave less than 1e-4 of the light behind it.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.splats.camera import Camera
from bunraku.splats.projection import LEAST_ALPHA, LEAST_LIGHT, MOST_ALPHA, Ellipses, project
from bunraku.splats.splats import Splats

_TILE = 16  # [px]


def rasterise_splats(
    splats: Splats, camera: Camera, near: float, blur: float
) -> tuple[Float[Tensor, "B H W 3"], Float[Tensor, "B H W"], Float[Tensor, "B H W"]]:
    """Colour and depth [m] times the splats' weights, and the sum of the weights (alpha)."""
    ellipses = project(splats, camera, near, blur)
    pictures = [_picture(ellipses, number, camera.width, camera.height) for number in range(len(ellipses.depth))]
    sums = torch.stack(pictures) if pictures else ellipses.depth.new_zeros(0, camera.height, camera.width, 5)
    return sums[..., :3], sums[..., 3], sums[..., 4]


def _picture(ellipses: Ellipses, number: int, width: int, height: int) -> Float[Tensor, "H W 5"]:
    seen = ellipses.seen[number].nonzero().squeeze(-1)
    order = seen[ellipses.depth[number, seen].detach().argsort(stable=True)]
    p_pixel, root, opacity, reach = (value[number, order] for value in (ellipses.p_pixel, ellipses.root, ellipses.opacity, ellipses.reach))
    shown = torch.cat([ellipses.color[number, order], ellipses.depth[number, order, None], torch.ones_like(opacity)[:, None]], dim=-1)
    low, high = p_pixel.detach() - reach, p_pixel.detach() + reach
    rows = []
    for top in range(0, height, _TILE):
        tiles = []
        for left in range(0, width, _TILE):
            right, bottom = min(left + _TILE, width), min(top + _TILE, height)
            near = _overlap(low, high, left, top, right, bottom)
            weight = _weights(_pixels(left, top, right, bottom, p_pixel), p_pixel[near], root[near], opacity[near])
            tiles.append((weight @ shown[near]).view(bottom - top, right - left, 5))
        rows.append(torch.cat(tiles, dim=1))
    return torch.cat(rows, dim=0)


def _overlap(low: Float[Tensor, "N 2"], high: Float[Tensor, "N 2"], left: int, top: int, right: int, bottom: int) -> Bool[Tensor, " N"]:
    return (low[:, 0] < right) & (high[:, 0] > left) & (low[:, 1] < bottom) & (high[:, 1] > top)


def _pixels(left: int, top: int, right: int, bottom: int, like: Tensor) -> Float[Tensor, "P 2"]:
    """The centres of a tile's pixels, row after row."""
    y, x = torch.meshgrid(torch.arange(top, bottom), torch.arange(left, right), indexing="ij")
    return torch.stack([x, y], dim=-1).reshape(-1, 2).to(like) + 0.5


def _weights(pixels: Float[Tensor, "P 2"], p_pixel: Float[Tensor, "N 2"], root: Float[Tensor, "N 3"], opacity: Float[Tensor, " N"]) -> Float[Tensor, "P N"]:
    """How much of each splat, sorted front to back, each pixel shows."""
    x, y = (pixels[:, None] - p_pixel).unbind(-1)
    square = (root[:, 0] * x + root[:, 1] * y).square() + (root[:, 2] * y).square()
    alpha = (opacity * torch.exp(-0.5 * square)).clamp_max(MOST_ALPHA)
    alpha = torch.where(alpha >= LEAST_ALPHA, alpha, 0.0)
    light_after = torch.cumprod(1 - alpha, dim=-1)
    light_before = torch.cat([torch.ones_like(light_after[:, :1]), light_after[:, :-1]], dim=-1)
    return torch.where(light_after > LEAST_LIGHT, alpha * light_before, 0.0)
