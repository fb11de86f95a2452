"""Prompts tidied as the released models do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunraku.generator.text.sanitize import sanitize_text


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("A person walks forward.", "A person walks forward."),
        ("  a   person\twalks\n forward ", "A person walks forward."),
        ("A Person WALKS", "A person walks."),
        ("- walks", "Walks."),
        ("...and then jumps", "And then jumps."),
        ("walks, ;-", "Walks."),
        ("Jump!", "Jump!"),
        ("walks. then sits down! what now? waves", "Walks. Then sits down! What now? Waves."),
        ("Walks 2.5 m", "Walks 2.5 m."),
        ("walks (slowly)", "Walks (slowly)."),
        ("does a T-pose", "Does a t-pose."),
        ("élan vital", "Élan vital."),
        ("", ""),
        ("  ?! ", ""),
    ],
)
def test_examples(written: str, read: str) -> None:
    assert sanitize_text(written) == read


@given(st.text(st.characters(codec="ascii")))
def test_tidying_twice_is_tidying_once(text: str) -> None:
    once = sanitize_text(text)
    assert sanitize_text(once) == once
    assert (once == "") == (not any(letter.isalnum() for letter in text))
