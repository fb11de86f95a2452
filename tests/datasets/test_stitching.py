"""Two clips as one: no jump between them, the texts joined, only the gap redrawn."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bunraku.datasets.stitching import joined_text, stitch
from bunraku.errors import BadValue, SkeletonMismatch
from bunraku.kinematics.edit import place
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.heading import heading_of
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.walk import walk

BODY = skeleton("soma30")


@pytest.fixture(scope="module")
def clips() -> tuple[Motion, Motion]:
    return walk(BODY, seconds=2.0), place(walk(BODY, seconds=1.5, speed=0.8), (7.0, -3.0), 2.1)


def test_the_second_clip_goes_on_where_the_first_ends(clips: tuple[Motion, Motion]) -> None:
    made = stitch(*clips, ("A person walks.", "a man walks slowly"))
    assert made.text == "A person walks, then walks slowly."
    assert (len(made.motion), made.gap, made.second) == (60 + 15 + 45, range(60, 75), range(75, 120))
    speed = (made.motion.root_position[1:] - made.motion.root_position[:-1]).norm(dim=-1) * 30
    assert speed.max() < 2.5
    heading = heading_of(BODY, forward_kinematics(made.motion).p_world_joint)
    assert heading.abs().max() < 0.5  # both walk along +Z now
    assert made.motion.contacts is not None
    assert torch.equal(made.motion.quats[:60], clips[0].quats)


def test_only_the_gap_is_redrawn(clips: tuple[Motion, Motion]) -> None:
    asked: list[range] = []

    def lifted(motion: Motion, frames: range) -> Motion:
        asked.append(frames)
        root = motion.root_position.clone()
        root[frames.start : frames.stop, 1] += 0.2
        return replace(motion, root_position=root)

    made = stitch(*clips, ("walks", "walks"), transition=lifted)
    assert asked == [range(60, 75)]
    assert (made.motion.root_position[60:75, 1] > 1.05).all()

    def spoilt(motion: Motion, frames: range) -> Motion:
        return replace(motion, root_position=motion.root_position + 0.1)

    with pytest.raises(BadValue, match="more than the frames 60 to 75"):
        stitch(*clips, ("walks", "walks"), transition=spoilt)


def test_what_does_not_fit_is_refused(clips: tuple[Motion, Motion]) -> None:
    with pytest.raises(SkeletonMismatch, match="cannot be stitched"):
        stitch(clips[0], walk(skeleton("cmu23"), seconds=1.0), ("a", "b"))
    with pytest.raises(BadValue, match="30 and 20 fps"):
        stitch(clips[0], walk(BODY, seconds=1.0, fps=20.0), ("a", "b"))


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("A person walks forward.", "The man sits down.", "A person walks forward, then sits down."),
        ("someone is walking", "a person is waving", "Someone is walking, then waving."),
        ("a person walks", "a person is waving", "A person walks, then a person is waving."),
        ("arms go up", "legs go down.", "Arms go up, then legs go down."),
        ("", "sits", "sits."),
    ],
)
def test_texts_are_joined(first: str, second: str, joined: str) -> None:
    assert joined_text(first, second) == joined
