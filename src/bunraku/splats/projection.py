"""From ellipsoids in the world to ellipses in the picture: EWA splatting, a perspective camera linearised at each splat's centre.

With `M = J R_camera_world factor` (2 × 3) the ellipse has the covariance `M Mᵀ + blur I`. Two things keep needles longer than the
picture sharp in float32: its determinant is a sum of squares, `|M₀ × M₁|² + blur (|M₀|² + |M₁|²) + blur²`, and distances are taken
through a triangular root of its inverse. Constants not explained here are those of gsplat 1.5.3, so that all rasterisers agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.math.rigid import transform_points
from bunraku.splats.camera import Camera
from bunraku.splats.harmonics import color_toward
from bunraku.splats.splats import Splats

LEAST_ALPHA = 1 / 255  # where a splat covers less of a pixel, it is not drawn
MOST_ALPHA = 0.999  # a splat never hides all that lies behind it
LEAST_LIGHT = 1e-4  # a pixel is finished before the splat that would leave less than this of what lies behind
BEYOND_EDGE = 0.3  # the Jacobian is evaluated at most this far outside the picture, as a share of its half side


@dataclass(frozen=True, kw_only=True, eq=False)
class Ellipses:
    """N splats as B pictures see them. Where `seen` is false the other values are placeholders."""

    p_pixel: Float[Tensor, "B N 2"]  # [px]
    root: Float[Tensor, "B N 3"]  # u, v, w: a pixel (x, y) away from the centre is √((u x + v y)² + (w y)²) standard deviations away [1/px]
    depth: Float[Tensor, "B N"]  # [m]
    color: Float[Tensor, "B N 3"]
    opacity: Float[Tensor, "B N"]
    reach: Float[Tensor, "B N 2"]  # half the box outside of which nothing is drawn [px]; no gradient
    seen: Bool[Tensor, "B N"]


def project(splats: Splats, camera: Camera, near: float, blur: float) -> Ellipses:
    """`near` [m]: what is closer is not drawn. `blur` [px²] is added to each ellipse, so that nothing is thinner than a pixel."""
    batch = torch.broadcast_shapes(splats.batch, camera.T_world_camera.shape[:-2])
    count = (batch.numel(), len(splats))
    R_camera_world = camera.T_camera_world[..., :3, :3]
    p_camera = transform_points(camera.T_camera_world, splats.means)
    ahead = p_camera[..., 2] >= near
    x, y, z = torch.where(ahead[..., None], p_camera, 1.0).unbind(-1)
    K = camera.K.detach()
    p_pixel = torch.stack([K[0, 0] * x / z + K[0, 2], K[1, 1] * y / z + K[1, 2]], dim=-1)
    M = _jacobian(x / z, y / z, z, K, camera) @ (R_camera_world[..., None, :, :] @ splats.factors)
    variance, root = _ellipse(M, blur)
    opacity = splats.opacities
    with torch.no_grad():
        reach = torch.sqrt(2 * torch.log((opacity / LEAST_ALPHA).clamp_min(1)))[..., None] * torch.sqrt(variance)
        size = torch.tensor([camera.width, camera.height], dtype=reach.dtype, device=reach.device)
        seen = ahead & (opacity >= LEAST_ALPHA) & (p_pixel + reach > 0).all(-1) & (p_pixel - reach < size).all(-1)
    color = color_toward(splats.sh, splats.means, camera.p_world, splats.degree)
    return Ellipses(
        p_pixel=p_pixel.expand(*batch, -1, -1).reshape(*count, 2),
        root=root.expand(*batch, -1, -1).reshape(*count, 3),
        depth=z.expand(*batch, -1).reshape(count),
        color=color.expand(*batch, -1, -1).reshape(*count, 3),
        opacity=opacity.expand(*batch, -1).reshape(count),
        reach=reach.expand(*batch, -1, -1).reshape(*count, 2),
        seen=seen.expand(*batch, -1).reshape(count),
    )


def _jacobian(
    x: Float[Tensor, "*batch N"], y: Float[Tensor, "*batch N"], z: Float[Tensor, "*batch N"], K: Float[Tensor, "3 3"], camera: Camera
) -> Float[Tensor, "*batch N 2 3"]:
    """How pixels move with a point at (x z, y z, z) [px/m]. Far outside the picture it is that of the nearest direction a little outside."""
    rows = []
    for axis, (direction, side) in enumerate(((x, camera.width), (y, camera.height))):
        focal, centre = K[axis, axis], K[axis, 2]
        beyond = BEYOND_EDGE * side / 2
        direction = direction.clamp(-(centre + beyond) / focal, (side - centre + beyond) / focal)
        row = [torch.zeros_like(z), torch.zeros_like(z), -focal * direction / z]
        row[axis] = focal / z
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2)


def _ellipse(M: Float[Tensor, "*batch N 2 3"], blur: float) -> tuple[Float[Tensor, "*batch N 2"], Float[Tensor, "*batch N 3"]]:
    """The variances across and down the picture, and the upper triangular root of the inverse covariance."""
    across, down = M.unbind(-2)
    xx, xy, yy = (across * across).sum(-1), (across * down).sum(-1), (down * down).sum(-1)
    determinant = torch.linalg.cross(across, down).square().sum(-1) + blur * (xx + yy) + blur**2
    xx, yy = xx + blur, yy + blur
    root = torch.stack([torch.sqrt(yy / determinant), -xy / torch.sqrt(yy * determinant), torch.rsqrt(yy)], dim=-1)
    return torch.stack([xx, yy], dim=-1), root
