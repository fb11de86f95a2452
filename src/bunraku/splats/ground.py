"""A checkerboard ground by ray casting, every pixel the exact average over its footprint, so that it stays calm up to the horizon.

A checkerboard is 0.5 + 0.5 · q(x) · q(z) with q a square wave of ±1. The average of q over a box has a closed form (the difference of
two triangle waves). A pixel's footprint on the ground is a parallelogram; boxes in a row have its spread along x and along z.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.splats.camera import Camera

Colour = tuple[float, float, float]  # sRGB, 0 … 1

SHARPEST = 1e-3  # [squares] no box is narrower: the difference of two nearly equal numbers would be noise
BOXES = 2  # that a pixel's footprint is cut into: with one, where the ground recedes askew to the squares, errors are twice as large
FARTHEST = 6.0  # [fade lengths] what rays meet behind this is sky: e⁻³⁶ of it would be left, and float32 overflows at the horizon


@dataclass(frozen=True, kw_only=True)
class Checkerboard:
    """Ground at a height, in squares of two colours, that fades into the sky away from the camera."""

    height: float = 0.0  # [m]
    square: float = 0.5  # [m] side of a square
    colours: tuple[Colour, Colour] = ((0.86, 0.85, 0.82), (0.68, 0.67, 0.64))
    fade: float = 12.0  # [m] at this distance from the camera's foot the ground has faded to 37 %

    def __post_init__(self) -> None:
        if not (self.square > 0 and self.fade > 0):
            raise BadValue(f"a checkerboard needs squares and a fade of positive length; got {self.square:g} m and {self.fade:g} m.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Floor:
    """What a camera sees of the ground."""

    color: Float[Tensor, "*batch H W 3"]
    p_world: Float[Tensor, "*batch H W 3"]  # where each ray meets the ground [m]; anything where `share` is 0
    share: Float[Tensor, "*batch H W"]  # of the ground in a pixel, the rest is sky


def see_ground(camera: Camera, ground: Checkerboard) -> Floor:
    """The ground as the camera sees it from above; differentiable in the camera's pose."""
    T, K = camera.T_world_camera, camera.K
    if T.ndim == 3 and not T.requires_grad:  # frame by frame: all that is in between would take gigabytes for a clip
        floors = [see_ground(camera[frame], ground) for frame in range(len(T))]
        return Floor(**{part.name: torch.stack([getattr(floor, part.name) for floor in floors]) for part in fields(Floor)})
    eye, ray = camera.p_world[..., None, None, :], camera.rays()
    above = eye[..., 1] - ground.height
    meets = (ray[..., 1] < -1e-9) & (above > 0)
    fall = torch.where(meets, ray[..., 1], -torch.ones_like(ray[..., 1]))
    depth = -above / fall
    meets = meets & (depth * ray[..., (0, 2)].detach().norm(dim=-1) < FARTHEST * ground.fade)
    depth = torch.where(meets, depth, torch.zeros_like(depth))
    point = eye + depth[..., None] * ray
    # d point / d pixel along a row and along a column: the edges of the footprint
    level, steep, metres = ray[..., (0, 2)], (1 / fall)[..., None], depth[..., None] / ground.square
    right, down = (T[..., None, None, :3, axis] / K[axis, axis] for axis in (0, 1))
    row, column = (metres * (v[..., (0, 2)] - level * (steep * v[..., 1:2])) for v in (right, down))
    light = _averaged(point[..., (0, 2)] / ground.square, row, column)
    first, second = (torch.tensor(colour, dtype=T.dtype, device=T.device) for colour in ground.colours)
    away = (point - eye)[..., (0, 2)].square().sum(-1) / ground.fade**2
    return Floor(color=second + light[..., None] * (first - second), p_world=point, share=torch.where(meets, torch.exp(-away), torch.zeros_like(away)))


def _averaged(place: Float[Tensor, "*batch 2"], row: Float[Tensor, "*batch 2"], column: Float[Tensor, "*batch 2"]) -> Float[Tensor, "*batch"]:
    """The average of `checkerboard` over a parallelogram with these edges: boxes of the same spread along x and z, in a row along its longer edge."""
    flip = (column.square().sum(-1) > row.square().sum(-1))[..., None]
    long, short = torch.where(flip, column, row), torch.where(flip, row, column)
    spread = torch.sqrt((long / BOXES) ** 2 + short**2 + 1e-24)
    return torch.stack([checkerboard(place + ((box + 0.5) / BOXES - 0.5) * long, spread) for box in range(BOXES)]).mean(0)


def checkerboard(place: Float[Tensor, "*batch 2"], spread: Float[Tensor, "*batch 2"]) -> Float[Tensor, "*batch"]:
    """The average of a checkerboard of unit squares (1 where both coordinates are in [0, 1)) over a box about `place` with sides `spread`."""
    half = spread.clamp_min(SHARPEST) / 2
    wave = (_triangle(place + half) - _triangle(place - half)) / (2 * half)
    return 0.5 + 0.5 * wave.prod(-1)


def _triangle(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """The integral of the square wave that is +1 in [0, 1) and −1 in [1, 2)."""
    return 1 - (torch.remainder(x, 2.0) - 1).abs()
