"""What a distillation gives: a motion on the character's own rig, how plausible it is, and how it came about."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from bunraku.distill.settings import DistillSettings
from bunraku.distill.trajectory import Timing
from bunraku.evaluate.report import Report
from bunraku.kinematics.motion import Motion


@dataclass(frozen=True, kw_only=True)
class AnimateProvenance:
    """All that is needed to distil the same motion again."""

    text: str
    teacher: str  # the prior's name, or the video that was matched
    timing: Timing
    size: tuple[int, int]  # width, height of the clips that were looked at [px]
    settings: DistillSettings
    version: str  # of bunraku

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True, eq=False)
class AnimateTake:
    """One result of `bunraku.animate`."""

    motion: Motion
    report: Report  # of `evaluate.check`
    provenance: AnimateProvenance
