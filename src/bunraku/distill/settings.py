"""A complete configuration of a distillation; `recipes.animate` has those of the paper and faster ones."""

from __future__ import annotations

from dataclasses import dataclass, field

from bunraku.distill.lessons import Guide, NoiseSchedule, Weighting
from bunraku.distill.regularise import Regularisers
from bunraku.distill.stage import Shot
from bunraku.distill.time_basis import Basis
from bunraku.errors import BadValue


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How limbs are looked for in a video (`limb_search.py`): the grid, in degrees away from where a limb is, and what moving costs."""

    swings: tuple[float, ...] = (-60, -45, -30, -15, 0, 15, 30, 45, 60)  # about x, of the upper joint of a pair
    bends: tuple[float, ...] = (-70, -45, -20, 0, 20, 45, 70)  # about x, of the lower one
    moving: float = 0.3  # share of the spread of a limb's costs that turning by a right angle between two frames costs
    # which joints of a limb, and how wide the grid is there
    rounds: tuple[tuple[int, float], ...] = ((0, 1.0), (1, 1.0), (0, 0.5), (1, 0.5))


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
    search: SearchSettings | None = None  # where a video is matched: limbs are first looked for on a grid
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
