from __future__ import annotations

import torch

from bunraku.evaluate.adherence import Adherence
from bunraku.generator.missed import Numbering, note_on_slides, notes_on
from bunraku.kinematics.footing import Nail
from bunraku.timeline import Heading


def miss(position: float = 0.0, turn: float = 0.0) -> Adherence:
    heading = Heading(frames=torch.tensor([3]), heading=torch.zeros(1))
    return Adherence(constraint=heading, position=position, position_frame=3, turn=turn, turn_frame=3)


def nail(side: str, *slides: range) -> Nail:
    return Nail(joint=0, side=side, p_world=torch.zeros(1, 3), planted=torch.zeros(1, dtype=torch.bool), slides=slides)


def test_what_is_met_is_not_spoken_of() -> None:
    assert notes_on([miss(), miss(0.9e-3, 1e-3)], Numbering()) == {}
    assert note_on_slides([nail("left")], Numbering()) is None


def test_frames_and_constraints_are_numbered_as_told() -> None:
    notes = notes_on([miss(0.05), miss(), miss(0.02), miss(turn=0.1)], Numbering(frame=30, constraint=1))
    assert list(notes) == ["constraint 1", "constraint 2"]
    assert "2.0 cm at frame 33" in notes["constraint 1"]
    assert "5.7 degrees at frame 33" in notes["constraint 2"]
    assert "left foot from frame 32 to 34" in (note_on_slides([nail("left", range(2, 5))], Numbering(frame=30)) or "")


def test_a_foot_is_named_once_and_long_lists_are_cut() -> None:
    spans = [range(10 * k, 10 * k + 5) for k in range(8)]
    note = note_on_slides([nail("left", *spans), nail("left", *spans)], Numbering()) or ""
    assert note.count("left foot") == 6
    assert note.endswith("and 2 more")
