"""Complete configurations of `bunraku animate`: as the paper has it, and faster ones. `--iterations`, `--basis` and others change one thing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bunraku.distill.lessons import Guide, NoiseSchedule
from bunraku.distill.regularise import Regularisers
from bunraku.distill.settings import DistillSettings, SearchSettings


def paper() -> DistillSettings:
    """10,000 iterations at guidance 100, every frame on its own. What the paper leaves open is as in the code it builds on."""
    return DistillSettings()


def fast() -> DistillSettings:
    """A twentieth of the iterations: a spline has fewer unknowns, noise goes from much to little in order, guidance fades."""
    return DistillSettings(
        iterations=500,
        learning_rate=0.02,
        basis="spline",
        noise=NoiseSchedule(kind="annealed", low=0.1),
        guide=Guide(first=50.0, last=15.0),
        regularisers=Regularisers(smooth=0.05, ground=8.9, skate=0.02, limits=0.5, sides=0.5),
    )


def from_video() -> DistillSettings:
    """For matching a video instead of asking a prior: minutes on a processor."""
    return DistillSettings(
        iterations=400,
        learning_rate=0.01,
        basis="spline",
        knots_per_second=6.0,
        weighting="even",
        regularisers=Regularisers(smooth=3e-3, ground=1.0, limits=0.1, sides=0.3),
        splats=4000,
        search=SearchSettings(),
    )


RECIPES: Mapping[str, Callable[[], DistillSettings]] = {"fast": fast, "paper": paper}
