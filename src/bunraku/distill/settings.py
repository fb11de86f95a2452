"""A complete configuration of a distillation; `recipes.animate` has those of the paper and faster ones."""

from __future__ import annotations

from dataclasses import dataclass, field

from bunraku.distill.lessons import Guide, NoiseSchedule, Weighting
from bunraku.distill.regularise import Regularisers
from bunraku.distill.stage import Shot
from bunraku.distill.time_basis import Basis
from bunraku.errors import BadValue


@dataclass(frozen=True, kw_only=True)
class DistillSettings:
    """How a motion is looked for."""

    iterations: int = 10_000
    learning_rate: float = 0.01  # [rad] and [body heights] an iteration, at most
    cooldown: float = 0.3  # share of the iterations, at the end, in which the rate falls to a tenth
    basis: Basis = "frames"
    knots_per_second: float = 4.0
    speed: float = 0.0  # [m/s] ahead, from the start
    weighting: Weighting = "sds"
    noise: NoiseSchedule = field(default_factory=NoiseSchedule)
    guide: Guide = field(default_factory=Guide)
    regularisers: Regularisers = field(default_factory=Regularisers)
    shot: Shot = field(default_factory=Shot)
    splats: int = 8000
    seed: int = 0
    save_every: int = 100  # iterations
    preview_every: int = 0  # 0: never

    def __post_init__(self) -> None:
        for name in ("iterations", "splats", "save_every"):
            if getattr(self, name) < 1:
                raise BadValue(f"{name} is {getattr(self, name)}; at least 1 is needed.")
        if not self.learning_rate > 0 or not 0 <= self.cooldown <= 1:
            raise BadValue(f"a learning rate above 0 and a cooldown from 0 to 1 are needed; got {self.learning_rate:g} and {self.cooldown:g}.")

    def rate_at(self, iteration: int) -> float:
        left = (self.iterations - iteration) / max(self.cooldown * self.iterations, 1)
        return self.learning_rate * max(min(left, 1.0), 0.1)
