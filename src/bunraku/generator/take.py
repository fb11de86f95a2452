"""What a generator gives: a motion, how plausible it is, and how it came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bunraku.errors import BadValue
from bunraku.evaluate.report import Report
from bunraku.evaluate.score import faults
from bunraku.generator.sample import Sampling
from bunraku.kinematics.motion import Motion
from bunraku.timeline.prompt import Prompt


@dataclass(frozen=True, kw_only=True)
class TakeProvenance:
    """All that is needed to draw the same take again, but for the constraints themselves."""

    prompts: tuple[Prompt, ...]
    seed: int
    model: str
    text_encoder: str
    version: str  # of bunraku
    sampling: Sampling
    constraints: int  # how many there were
    notes: Mapping[str, str] = field(default_factory=dict)  # what was assumed, cut or missed

    def sentence(self) -> str:
        """Solver, steps and guidance in a few words, for files."""
        guidance = self.sampling.guidance
        weights = {"none": "", "joint": f" {guidance.text:g}", "separated": f" (text {guidance.text:g}, constraints {guidance.constraint:g})"}
        return f"{self.sampling.solver}, {self.sampling.steps} steps, guidance {guidance.kind}{weights[guidance.kind]}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Take:
    """One sample."""

    motion: Motion
    report: Report  # of `evaluate.check`
    provenance: TakeProvenance

    @property
    def faults(self) -> float:
        """How much the report finds wrong; 0 is nothing."""
        return faults(self.report)


def best(takes: Sequence[Take]) -> Take:
    """The take with the fewest faults in its report; of equals the first."""
    if not takes:
        raise BadValue("there is no take to choose from; give at least one.")
    return min(takes, key=lambda take: take.faults)
