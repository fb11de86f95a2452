"""What clean-up could not do, in notes that count frames and constraints as the user does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bunraku.evaluate.adherence import Adherence
from bunraku.kinematics.footing import Nail

EXACT, EXACT_TURN = 1e-3, math.radians(0.1)  # [m], [rad] a constraint that is missed by more than this is noted
MOST_SLIDES = 6  # that are listed


@dataclass(frozen=True, kw_only=True)
class Numbering:
    """How notes number a clip's frames and constraints, where it is part of something longer."""

    frame: int = 0  # the number of its first frame
    constraint: int = 0  # the first constraint that the user knows of: number 0; nothing is said of those before it


def notes_on(misses: Sequence[Adherence], number: Numbering) -> dict[str, str]:
    """A note for each constraint that is missed."""
    own = misses[number.constraint :]
    return {f"constraint {k}": note for k, miss in enumerate(own) if (note := _note(miss, number.frame))}


def note_on_slides(nails: Sequence[Nail], number: Numbering) -> str | None:
    """Which feet were left to slide, and when; None where none was."""
    spans = sorted({(nail.side, span.start, span.stop) for nail in nails for span in nail.slides})
    listed = [f"{side} foot from frame {number.frame + start} to {number.frame + stop - 1}" for side, start, stop in spans]
    more = f" and {len(listed) - MOST_SLIDES} more" if len(listed) > MOST_SLIDES else ""
    return f"left to slide, for they go too far to stand: {', '.join(listed[:MOST_SLIDES])}{more}" if listed else None


def _note(miss: Adherence, first: int) -> str | None:
    what, why = type(miss.constraint).__name__, "out of reach, or in conflict with another"
    if miss.position > EXACT:
        return f"{what} is missed by {miss.position * 100:.1f} cm at frame {first + miss.position_frame}: {why}."
    if miss.turn > EXACT_TURN:
        return f"{what} is missed by {math.degrees(miss.turn):.1f} degrees at frame {first + miss.turn_frame}: {why}."
    return None
