"""Gaussian splats: soft coloured ellipsoids, each with a place, a factor of its covariance, an opacity and a colour for every direction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue

COEFFICIENTS = (1, 4, 9, 16)  # of the spherical harmonics of degree 0, 1, 2, 3
_OWN_DIMENSIONS = {"means": 2, "factors": 3, "opacity_logits": 1, "sh": 3}  # what stands in front of these is the batch


@dataclass(frozen=True, kw_only=True, eq=False)
class Splats:
    """N Gaussians. Means, factors and opacities may have leading batch dimensions (frames), which broadcast; colours are shared by all of them.

    The covariance is `factor @ factorᵀ`. Any factor will do, so it can be optimised without constraints, and a surface that is
    deformed by a local gradient G carries a splat along as `G @ factor`.
    """

    means: Float[Tensor, "*#batch N 3"]  # [m] in the world
    factors: Float[Tensor, "*#batch N 3 3"]  # [m]
    opacity_logits: Float[Tensor, "*#batch N"]  # opacity = sigmoid(logit)
    sh: Float[Tensor, "N K 3"]  # spherical harmonics of degree 0 to 3: 1, 4, 9 or 16 coefficients for each of R G B, display values (sRGB)

    def __post_init__(self) -> None:
        shapes = {name: tuple(getattr(self, name).shape) for name in _OWN_DIMENSIONS}
        count = self.means.shape[-2] if self.means.ndim >= 2 else -1
        right = all(len(shapes[name]) >= own for name, own in _OWN_DIMENSIONS.items()) and self.sh.ndim == 3
        right = right and shapes["means"][-1] == 3 and shapes["factors"][-3:] == (count, 3, 3) and shapes["opacity_logits"][-1] == count
        if not right or shapes["sh"][0] != count or shapes["sh"][1] not in COEFFICIENTS or shapes["sh"][2] != 3:
            given = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise BadValue(f"splats have {given}; N splats need means (…, N, 3), factors (…, N, 3, 3), opacity_logits (…, N) and sh (N, 1|4|9|16, 3).")
        try:
            _ = self.batch
        except RuntimeError:
            given = ", ".join(f"{name} {shapes[name]}" for name in _OWN_DIMENSIONS)
            raise BadValue(f"the frames of these splats do not fit together: {given}; leading dimensions must be equal, 1 or absent.") from None

    @property
    def batch(self) -> torch.Size:
        """The leading dimensions, (F,) for the frames of a clip, () for splats that stand still."""
        return torch.broadcast_shapes(*(getattr(self, name).shape[:-own] for name, own in _OWN_DIMENSIONS.items()))

    @property
    def covariances(self) -> Float[Tensor, "*batch N 3 3"]:
        return self.factors @ self.factors.transpose(-1, -2)

    @property
    def opacities(self) -> Float[Tensor, "*batch N"]:
        return torch.sigmoid(self.opacity_logits)

    @property
    def degree(self) -> int:
        """Of the spherical harmonics: 0 looks the same from everywhere."""
        return COEFFICIENTS.index(self.sh.shape[1])

    def __len__(self) -> int:
        return self.means.shape[-2]

    def __getitem__(self, frames: int | slice | Tensor) -> Splats:
        """Some frames of a batch; `len` counts splats, not frames."""
        if not self.batch:
            raise BadValue("these splats have no frames to choose from; only deformed splats have.")
        chosen = {}
        for name, own in _OWN_DIMENSIONS.items():
            value = getattr(self, name)
            if value.ndim - own == len(self.batch):
                chosen[name] = value.expand(self.batch[0], *value.shape[1:])[frames]
        return replace(self, **chosen)

    def map(self, function: Callable[[Tensor], Tensor]) -> Splats:
        """The same change to every tensor, such as `lambda x: x.detach()`."""
        return replace(self, **{field.name: function(getattr(self, field.name)) for field in fields(self)})

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Splats:
        """On another device or in another precision."""
        return self.map(lambda value: value.to(device=device, dtype=dtype))

    def __repr__(self) -> str:
        frames = f"{' × '.join(map(str, self.batch))} frames of " if self.batch else ""
        return f"Splats({frames}{len(self)} splats, degree {self.degree})"


def random_splats(n: int, seed: int, *, degree: int = 0) -> Splats:
    """A ball of radius 1 m full of small ellipsoids in all colours, about as many pixels each whatever their number."""
    if n < 0 or degree not in range(4):
        raise BadValue(f"{n} random splats of degree {degree} were asked for; a count of 0 or more and a degree of 0 to 3 are needed.")
    generator = torch.Generator().manual_seed(seed)
    direction = torch.nn.functional.normalize(torch.randn(n, 3, generator=generator), dim=-1)
    radius = torch.rand(n, 1, generator=generator) ** (1 / 3)
    size = 1.5 / max(n, 1) ** 0.5 * torch.exp(0.4 * torch.randn(n, 3, generator=generator))
    turn, _ = torch.linalg.qr(torch.randn(n, 3, 3, generator=generator))
    sh = 0.1 * torch.randn(n, COEFFICIENTS[degree], 3, generator=generator)
    sh[:, 0] = 1.7 * (2 * torch.rand(n, 3, generator=generator) - 1)
    return Splats(means=direction * radius, factors=turn * size[:, None, :], opacity_logits=torch.randn(n, generator=generator), sh=sh)
