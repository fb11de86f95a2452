"""Prompts as they are typed, and the frames they own."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunraku.errors import BadValue, BunrakuError
from bunraku.timeline.prompt import Prompt, parse_prompt, parse_prompts, prompt_frames


@pytest.mark.parametrize(
    ("typed", "text", "seconds"),
    [
        ("waves.@3", "waves.", 3.0),
        ("A person waves. @2.5 ", "A person waves.", 2.5),
        ("waves.", "waves.", 5.0),
        ("mail it to bob@home.org", "mail it to bob@home.org", 5.0),
        ("mail it to bob@3com.org", "mail it to bob@3com.org", 5.0),
        ("meets @ noon", "meets @ noon", 5.0),
        ("bob@home.org waves@.5", "bob@home.org waves", 0.5),
        ("waves@", "waves@", 5.0),
        ("@4", "", 4.0),
        ("two\nlines@1e1", "two\nlines", 10.0),
    ],
)
def test_only_a_number_at_the_end_is_a_time(typed: str, text: str, seconds: float) -> None:
    assert parse_prompt(typed) == Prompt(text=text, seconds=seconds)


def test_the_default_length_can_be_chosen() -> None:
    assert parse_prompts(["a", "b@2"], 8.0) == (Prompt(text="a", seconds=8.0), Prompt(text="b", seconds=2.0))


@pytest.mark.parametrize("typed", ["waves@0", "waves@-3", "waves@nan", "waves@inf", "waves@601", "waves@1e9", "x" * 2001, "\ud800"])
def test_what_cannot_be_is_refused(typed: str) -> None:
    with pytest.raises(BadValue, match="prompt"):
        parse_prompt(typed)


def test_wrong_types_and_too_many(unchecked_shapes: None) -> None:
    for values in (
        {"text": 3},
        {"text": "a", "seconds": "3"},
        {"text": "a", "seconds": True},
        {"text": "a", "seconds": math.nan},
        {"text": "a", "seconds": 10**400},
    ):
        with pytest.raises(BadValue):
            Prompt(**values)
    with pytest.raises(BadValue, match="1,001 prompts are too many"):
        parse_prompts(["a"] * 1001)


@given(st.text(max_size=60))
def test_nothing_that_is_typed_breaks(text: str) -> None:
    try:
        prompt = parse_prompt(text)
    except BunrakuError:
        return
    assert prompt.text == text.strip() or "@" in text


@given(st.lists(st.floats(0.1, 600.0), min_size=1, max_size=30), st.sampled_from([20.0, 24.0, 30.0, 60.0, 29.97]))
def test_frames_add_up(seconds: list[float], fps: float) -> None:
    ranges = prompt_frames([Prompt(text="", seconds=s) for s in seconds], fps)
    assert ranges[0].start == 0
    assert all(a.stop == b.start for a, b in pairwise(ranges))
    assert abs(ranges[-1].stop - sum(seconds) * fps) <= 0.5 + 1e-6
    assert all(abs(len(r) - s * fps) <= 1 + 1e-6 for r, s in zip(ranges, seconds, strict=True))


def test_thirds_of_a_frame_do_not_get_lost() -> None:
    assert prompt_frames([Prompt(text="", seconds=0.11)] * 3, 30)[-1].stop == 10
    with pytest.raises(BadValue, match="less than a frame"):
        prompt_frames([Prompt(text="blink", seconds=0.01)], 30)
    with pytest.raises(BadValue, match="no frame rate"):
        prompt_frames([Prompt(text="")], 0.0)
