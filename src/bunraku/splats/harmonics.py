"""Spherical harmonics of degree 0 to 3, real and in the order and with the signs of 3D Gaussian splatting: colours that depend on direction."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

C0 = 0.28209479177387814  # √(1/4π)
_C1 = 0.4886025119029199  # √(3/4π)
_C2 = (1.0925484305920792, 0.31539156525252005, 0.5462742152960396)  # √(15/4π), √(5/16π), √(15/16π)
# √(35/32π), √(105/4π), √(21/32π), √(7/16π), √(105/16π)
_C3 = (0.5900435899266435, 2.890611442640554, 0.4570457994644658, 0.3731763325901154, 1.445305721320277)


def basis(direction: Float[Tensor, "*batch 3"], degree: int) -> Float[Tensor, "*batch K"]:
    """The harmonics at unit directions: 1, 4, 9 or 16 of them."""
    x, y, z = direction.unbind(-1)
    xx, yy, zz = x * x, y * y, z * z
    values = [torch.full_like(x, C0)]
    if degree > 0:
        values += [-_C1 * y, _C1 * z, -_C1 * x]
    if degree > 1:
        values += [_C2[0] * x * y, -_C2[0] * y * z, _C2[1] * (2 * zz - xx - yy), -_C2[0] * x * z, _C2[2] * (xx - yy)]
    if degree > 2:
        values += [
            -_C3[0] * y * (3 * xx - yy),
            _C3[1] * x * y * z,
            -_C3[2] * y * (4 * zz - xx - yy),
            _C3[3] * z * (2 * zz - 3 * xx - 3 * yy),
            -_C3[2] * x * (4 * zz - xx - yy),
            _C3[4] * z * (xx - yy),
            -_C3[0] * x * (xx - 3 * yy),
        ]
    return torch.stack(values, dim=-1)


def color_toward(
    sh: Float[Tensor, "N K 3"], means: Float[Tensor, "*#batch N 3"], p_world_camera: Float[Tensor, "*#batch 3"], degree: int
) -> Float[Tensor, "*#batch N 3"]:
    """What a camera sees of each splat: 0.5 plus the harmonics in the direction from camera to splat, never below 0. Degree 0 has no batch."""
    if degree == 0:
        return (0.5 + C0 * sh[:, 0]).clamp_min(0)
    direction = torch.nn.functional.normalize(means - p_world_camera[..., None, :], dim=-1)
    return (0.5 + torch.einsum("...nk,nkc->...nc", basis(direction, degree), sh)).clamp_min(0)


def sh_from_color(color: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 1 3"]:
    """Degree 0: the same colour from everywhere."""
    return ((color - 0.5) / C0)[..., None, :]
