"""Splats fitted to pictures: gradient steps on place, size, turn, opacity and colour, held near the surface they were seeded on.

Each step draws one view before a background of random colour, so that what should be opaque becomes opaque and the outline sharp. A splat
may leave its seed by about one spacing and stays flat: it must still belong to the skin below it when that moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.math.rotations import quat_to_matrix
from bunraku.splats.camera import Camera
from bunraku.splats.harmonics import C0
from bunraku.splats.rendering import render
from bunraku.splats.splats import Splats
from bunraku.splats.views import Target

ITERATIONS = 400
_WIDEST = 3.0  # [spacing]


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    iterations: int = ITERATIONS
    seed: int = 0
    place_rate: float = 0.02  # [spacing] Adam's step, as the next four
    size_rate: float = 0.02  # of the logarithm
    turn_rate: float = 0.01
    opacity_rate: float = 0.05  # of the logit
    colour_rate: float = 0.01  # of the display value
    last_rate: float = 0.1  # steps shrink to this share of the first
    hold: float = 1e-4  # weight of the squared distance from the seed, in spacings
    flat: float = 1e-3  # weight of what is thicker than a quarter of its width
    solid: float = 3e-4  # weight of missing opacity, which from near would let the other side through

    def __post_init__(self) -> None:
        if self.iterations < 0:
            raise BadValue(f"{self.iterations} steps of fitting were asked for; 0 or more are needed.")


def fit_splats(
    seeds: Splats,
    spacing: float,
    cameras: Sequence[Camera],
    targets: Sequence[Target],
    settings: FitSettings,
    on_progress: Callable[[float], None] | None = None,
) -> Splats:
    """`spacing` [m] is the distance between neighbouring seeds. `on_progress` hears the share that is done."""
    body = _Body.of(seeds, spacing)
    rates = (settings.place_rate, settings.size_rate, settings.turn_rate, settings.opacity_rate, settings.colour_rate)
    optimiser = torch.optim.Adam([{"params": [value], "lr": rate} for value, rate in zip(body.free, rates, strict=True)], betas=(0.9, 0.99), eps=1e-12)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: settings.last_rate ** (step / max(settings.iterations, 1)))
    generator = torch.Generator().manual_seed(settings.seed)
    order: list[int] = []
    for step in range(settings.iterations):
        order = order or torch.randperm(len(targets), generator=generator).tolist()
        view = order.pop()
        background = torch.rand(3, generator=generator)
        splats = body.splats()
        error = render(splats, cameras[view]).over(background) - targets[view].over(background)
        loss = error.square().mean() + settings.hold * body.strayed() + settings.flat * body.thick() + settings.solid * (1 - splats.opacities).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if on_progress is not None:
            on_progress((step + 1) / settings.iterations)
    return body.splats().map(lambda value: value.detach())


@dataclass(frozen=True, kw_only=True, eq=False)
class _Body:
    """Seeds and what changes them: at zero the seeds themselves."""

    seeds: Splats
    frames: Float[Tensor, "N 3 3"]  # unit columns along the seeds' axes, the normal last
    log_sizes: Float[Tensor, "N 3"]
    spacing: float
    free: tuple[Tensor, ...]  # place (N 3) [spacing], size (N 3), turn (N 3), opacity (N), colour (N K 3)

    @staticmethod
    def of(seeds: Splats, spacing: float) -> _Body:
        sizes = seeds.factors.norm(dim=-2)
        count = len(seeds)
        shapes = ((count, 3), (count, 3), (count, 3), (count,), tuple(seeds.sh.shape))
        free = tuple(torch.zeros(shape, dtype=seeds.means.dtype, requires_grad=True) for shape in shapes)
        return _Body(seeds=seeds, frames=seeds.factors / sizes[:, None], log_sizes=sizes.log(), spacing=spacing, free=free)

    def sizes(self) -> Float[Tensor, "N 3"]:
        return (self.log_sizes + self.free[1]).clamp_max(math.log(_WIDEST * self.spacing)).exp()

    def splats(self) -> Splats:
        place, _, turn, opacity, colour = self.free
        R = quat_to_matrix(torch.nn.functional.normalize(torch.cat([torch.ones_like(turn[:, :1]), turn / 2], dim=-1), dim=-1))
        return replace(
            self.seeds,
            means=self.seeds.means + self.spacing * place,
            factors=R @ self.frames * self.sizes()[:, None],
            opacity_logits=self.seeds.opacity_logits + opacity,
            sh=self.seeds.sh + colour / C0,
        )

    def strayed(self) -> Float[Tensor, ""]:
        """Mean squared distance from the seeds [spacing²]."""
        return self.free[0].square().sum(-1).mean()

    def thick(self) -> Float[Tensor, ""]:
        """Mean squared logarithm of how much thicker splats are than a quarter of their width."""
        log_sizes = self.log_sizes + self.free[1]
        return (log_sizes[:, 2] - log_sizes[:, :2].amin(-1) + math.log(4)).clamp_min(0).square().mean()
