"""What is to be drawn, and into which runs of the model it is cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.heading import heading_of
from bunraku.timeline import crop_constraints
from bunraku.timeline.constraints import Constraint, EffectorTarget, Heading, PoseKey, RootPath

# [frames] The release overlaps by 5; others found that its models then ignore later prompts (a third prompt "stands still" walked on
# at 0.88 m/s) and follow them with 2. Two are the fewest that say how fast everything moves. docs/decisions/0007
OVERLAP = 2
FADE = 0.3  # [s] within which what is left of a difference at a seam dies out
_MIX = 0x9E3779B97F4A7C15  # 2⁶⁴ / golden ratio: spreads seeds of pieces far from those of other samples


@dataclass(frozen=True, kw_only=True)
class Stitching:
    """How pieces are joined."""

    overlap: int = OVERLAP  # [frames]
    fade_seconds: float = FADE

    def __post_init__(self) -> None:
        if not 1 <= self.overlap <= 100:
            raise BadValue(f"pieces cannot overlap by {self.overlap} frames; choose 1 to 100 (the release: 5).")
        if not 0 <= self.fade_seconds <= 10:
            raise BadValue(f"a seam cannot fade within {self.fade_seconds} seconds; choose 0 to 10.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Strand:
    """One clip that is wanted. Its frames, and those of the constraints, are numbered from the first new one."""

    prompt_frames: tuple[range, ...]  # one after the other, without gaps
    text: tuple[Float[Tensor, "S W"], ...]  # slot rows of each prompt
    seed: int
    constraints: tuple[Constraint, ...] = ()
    heading: float | None = None  # [rad] at the start; None: as constrained there, or +Z
    start_xz: tuple[float, float] | None = None  # [m] where the smoothed root starts; None: as constrained there, or the origin
    before: Float[Tensor, "P D"] | None = None  # features of frames that lead up to the first
    after: Float[Tensor, "Q D"] | None = None  # of frames that follow on the last
    loop: bool = False  # the last frame is the first one again, wherever the body has gone

    @property
    def frames(self) -> int:
        return self.prompt_frames[-1].stop


@dataclass(frozen=True, kw_only=True)
class Piece:
    """The frames that one run of the model adds, all of one prompt."""

    prompt: int
    start: int
    stop: int


def plan(prompt_frames: Sequence[range], most: int, *, overlap: int, led: bool = False, tail: int = 0) -> list[Piece]:
    """Pieces whose runs take at most `most` frames; a longer prompt is cut into equal parts.

    `led`: frames come before the first piece; `tail`: frames that the last run needs beyond its end.
    """
    if most <= 2 * overlap + tail:
        raise BadValue(f"an overlap of {overlap} frames leaves no room in the model's {most}; choose a smaller one.")
    pieces: list[Piece] = []
    for number, owned in enumerate(prompt_frames):
        last = number == len(prompt_frames) - 1
        room = most - (overlap if led or pieces else 0) - (tail if last else 0)
        parts = math.ceil(len(owned) / room)
        if parts > 1:  # from the second part on there is always a lead
            parts = math.ceil(len(owned) / (most - overlap - (tail if last else 0)))
        borders = [owned.start + len(owned) * part // parts for part in range(parts + 1)]
        pieces += [Piece(prompt=number, start=a, stop=b) for a, b in pairwise(borders)]
    return pieces


def piece_seed(seed: int, piece: int) -> int:
    """The seed of a piece's noise: the clip's own for the first, and far from every other clip's for the rest."""
    return (seed + piece * _MIX) % 2**63


def start_of(strand: Strand) -> tuple[float, tuple[float, float]]:
    """Which way a clip faces at first [rad] and where its smoothed root is [m]: as constraints have it there, else as the strand says."""
    heading: float | None = None
    place: tuple[float, float] | None = None
    about: tuple[float, float] | None = None  # of a hand or foot: near enough for an origin
    for constraint in crop_constraints(strand.constraints, 0, 1):
        if isinstance(constraint, RootPath | Heading) and constraint.heading is not None:
            heading = float(constraint.heading[0]) if heading is None else heading
        if isinstance(constraint, PoseKey) and heading is None:
            heading = float(heading_of(constraint.poses.skeleton, forward_kinematics(constraint.poses).p_world_joint[0]))
        if isinstance(constraint, RootPath):
            place = place or _xz(constraint.xz[0])
        elif isinstance(constraint, PoseKey):
            place = place or _xz(constraint.poses.root_position[0, [0, 2]] if constraint.smooth_xz is None else constraint.smooth_xz[0])
        elif isinstance(constraint, EffectorTarget) and constraint.position is not None:
            about = about or _xz(constraint.position[0, [0, 2]])
    return (
        heading if heading is not None else strand.heading if strand.heading is not None else 0.0,
        place or strand.start_xz or about or (0.0, 0.0),
    )


def _xz(point: Float[Tensor, "2"]) -> tuple[float, float]:
    return float(point[0]), float(point[1])
