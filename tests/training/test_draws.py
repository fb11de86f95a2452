"""What is drawn in a step: within its window, with a sentence of its window, as often as its weight says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunraku.datasets.forms import sentence_forms
from bunraku.datasets.store import Dataset
from bunraku.errors import BadValue
from bunraku.training.draws import Described, WindowSampler, described


def told(*texts: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return texts, tuple(f"{text} mirrored" for text in texts)


WINDOWS = [
    Described(clip=0, start=10, stop=75, weight=1.0, told=(told("walks", "is walking", "strolls"), told("goes"))),
    Described(clip=1, start=0, stop=200, weight=3.0, told=(told("runs"),)),
    Described(clip=2, start=5, stop=400, weight=1.0, told=()),
    Described(clip=3, start=0, stop=12, weight=9.0, told=(told("blinks"),)),  # too short for any length
]


def sampler(**changes: object) -> WindowSampler:
    return WindowSampler(WINDOWS, **{"seed": 1, "batch": 256, **changes})  # type: ignore[arg-type]


@given(st.integers(0, 10_000))
def test_stretches_lie_in_their_windows_and_sentences_belong_to_them(step: int) -> None:
    s = sampler()
    draw = s.draw(step)
    for clip, first, text, mirrored in zip(draw.clip, draw.first, draw.text, draw.mirrored, strict=True):
        window = WINDOWS[clip]
        assert window.start <= first
        assert first + draw.frames <= window.stop
        forms = [form for each in window.told for form in each[int(mirrored)]]
        assert (s.texts[text] in forms) if forms else text == -1


def test_a_step_repeats_and_another_differs() -> None:
    first, again, other = sampler().draw(7), sampler().draw(7), sampler().draw(8)
    assert all(np.array_equal(getattr(first, name), getattr(again, name)) for name in ("clip", "first", "text", "mirrored", "yaw"))
    assert not np.array_equal(first.yaw, other.yaw)


def drawn(s: WindowSampler, steps: int = 400) -> dict[str, np.ndarray]:
    draws = [s.draw(step) for step in range(steps)]
    return {name: np.concatenate([getattr(draw, name) for draw in draws]) for name in ("clip", "text", "mirrored")}


def test_windows_are_drawn_by_weight() -> None:
    clip = drawn(sampler(shorter=0.0), 2000)["clip"]
    shares = [float((clip == number).mean()) for number in range(4)]
    assert shares == pytest.approx([0.2, 0.6, 0.2, 0.0], abs=0.03)


def test_a_sentence_is_drawn_as_often_as_all_its_paraphrases() -> None:
    s = sampler(mirror=False)
    rows = drawn(s)
    assert not rows["mirrored"].any()
    texts = [s.texts[number] for number in rows["text"][rows["clip"] == 0]]
    shares = {text: texts.count(text) / len(texts) for text in ("walks", "is walking", "strolls", "goes")}
    assert shares == pytest.approx({"walks": 0.25, "is walking": 0.125, "strolls": 0.125, "goes": 0.5}, abs=0.02)


def test_half_is_drawn_in_the_mirror_and_told_so() -> None:
    s = sampler()
    rows = drawn(s)
    assert float(rows["mirrored"].mean()) == pytest.approx(0.5, abs=0.01)
    spoken = rows["text"] >= 0
    said = np.array([s.texts[number].endswith(" mirrored") for number in rows["text"][spoken]])
    assert np.array_equal(said, rows["mirrored"][spoken])


def test_long_windows_are_also_drawn_in_part() -> None:
    lengths = {int(s) for s in (sampler(shorter=0.5).draw(step).frames for step in range(300))}
    assert 20 in lengths
    assert 300 in lengths


def test_motion_without_a_word_said_can_be_drawn() -> None:
    s = WindowSampler([WINDOWS[2]], seed=0, batch=4)
    assert s.texts == []
    assert (s.draw(0).text == -1).all()


def test_windows_that_are_all_too_short_are_refused() -> None:
    with pytest.raises(BadValue, match="no captioned window is as long as 20 frames"):
        WindowSampler([WINDOWS[3]], seed=0, batch=4)


def test_windows_of_a_dataset_are_its_captions_in_all_forms(walks: Dataset) -> None:
    windows = described(walks, "train", sentence_forms)
    assert [window.clip for window in windows] == walks.of_split("train")
    for window in windows:
        (caption,) = walks.clips[window.clip].captions
        ((plain, mirrored),) = window.told
        assert (window.start, window.stop) == (caption.start, caption.stop)
        assert plain[0] == caption.text
        assert len(plain) == len(mirrored) > 1
        for side, other in (("left", "right"), ("right", "left")):
            assert (f" {side}" in plain[0]) == (f" {other}" in mirrored[0])
