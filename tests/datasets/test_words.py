"""Words: sides swapped, sentences retold, labels made into sentences, a language model asked once."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bunraku.datasets.labels import label_sentence
from bunraku.datasets.paraphrase import ask_for_paraphrases, paraphrase, read_paraphrases
from bunraku.datasets.sides import mirrored_text, sides_of
from bunraku.datasets.verbs import BASE_OF_CONTINUOUS, VERBS, continuous, third_person
from bunraku.errors import BunrakuError, FormatProblem


@pytest.mark.parametrize(
    ("text", "mirrored"),
    [
        ("A person waves the Left hand.", "A person waves the Right hand."),
        ("turns LEFT, then right, then left", "turns RIGHT, then left, then right"),
        ("walks in a circle clockwise", "walks in a circle counterclockwise"),
        ("spins counter-clockwise on his right-hand side", "spins clockwise on his left-hand side"),
        ("turns anticlockwise", "turns clockwise"),
        ("stands upright, all right, and sits right down", "stands upright, all right, and sits left down"),
        ("stops right after the jump", "stops right after the jump"),
        ("turns right after the jump", "turns left after the jump"),
        ("it stands right in front of the wall", "it stands right in front of the wall"),
        ("moves to the right in front of the wall", "moves to the left in front of the wall"),
        ("turning left at right angles", "turning right at right angles"),
        ("he left the room", "he left the room"),
        ("leftover bright copyright", "leftover bright copyright"),
        ("walks leftwards", "walks rightwards"),
    ],
)
def test_sides_are_swapped(text: str, mirrored: str) -> None:
    assert mirrored_text(text) == mirrored


SOME_WORDS = ["left", "right", "Left", "hand", "clockwise", "then", "his", "turns", "and", "counterclockwise", "to the", "walks"]
WORDS = st.lists(st.sampled_from(SOME_WORDS), max_size=9)


@given(WORDS)
def test_mirrored_twice_a_sentence_is_itself(words: list[str]) -> None:
    text = " ".join(words)
    assert mirrored_text(mirrored_text(text)) == text
    assert len(sides_of(mirrored_text(text))) == len(sides_of(text))


@given(WORDS, st.integers(0, 1000))
def test_a_paraphrase_keeps_the_sides(words: list[str], seed: int) -> None:
    text = "a person walks " + " ".join(words)
    assert [w.lower() for w in sides_of(paraphrase(text, torch.Generator().manual_seed(seed)))] == [w.lower() for w in sides_of(text)]


def test_a_paraphrase_varies_subject_form_and_writing() -> None:
    generator = torch.Generator().manual_seed(0)
    told = {paraphrase("A person walks forward and turns left.", generator) for _ in range(200)}
    assert {"Someone is walking forward and turning left.", "The figure walks forward and turns left.", "Walk forward and turn left."} <= told
    assert len(told) > 20
    for text in told:
        forms = [word.strip(".").lower() for word in text.split() if word.lower().startswith(("walk", "turn"))]
        assert forms in (["walks", "turns"], ["walking", "turning"], ["walk", "turn"])


@pytest.mark.parametrize("text", ["his left leg hurts so walks with right", "The lights go out.", "a woman dances"])
def test_what_the_rules_cannot_parse_stays(text: str) -> None:
    generator = torch.Generator().manual_seed(0)
    assert {paraphrase(text, generator).rstrip(".").lower() for _ in range(20)} == {text.rstrip(".").lower()}


def test_verbs_have_their_forms() -> None:
    forms = {"walk": ("walks", "walking"), "run": ("runs", "running"), "carry": ("carries", "carrying"), "lie": ("lies", "lying")}
    for verb, (third, ing) in forms.items():
        assert (third_person(verb), continuous(verb)) == (third, ing)
    assert (continuous("dance"), continuous("squat"), continuous("tiptoe"), continuous("row")) == ("dancing", "squatting", "tiptoeing", "rowing")
    assert {BASE_OF_CONTINUOUS[continuous(verb)] for verb in VERBS} == set(VERBS)  # no two verbs share a form


@pytest.mark.parametrize(
    ("label", "category", "sentence"),
    [
        ("walk", "", "A person walks."),
        ("run/jog", "", "A person runs or jogs."),
        ("walk, shake hands (2 subjects - subject B)", "", "A person walks, shakes hands."),
        ("JumpForward", "", "A person jumps forward."),
        ("monkey (human subject)", "animal behaviors (pantomime - human subject)", "A person acts like a monkey."),
        ("drinking from bottle", "", "A person is drinking from bottle."),
        ("basketball - forward dribble", "", "A person performs this: forward dribble."),
        ("Unknown", "", ""),
        ("clean", "Female General Subject", ""),
        ("", "", ""),
    ],
)
def test_labels_become_sentences(label: str, category: str, sentence: str) -> None:
    assert label_sentence(label, category) == sentence


# --- a language model --------------------------------------------------------------------------------------------------

ANSWER = """
import json, sys
for line in sys.stdin:
    text = json.loads(line)["text"]
    print(json.dumps({"paraphrases": [text.upper(), text.replace("left", "right"), text, ""]}), flush=True)
    %s
"""


def command(tmp_path: Path, after: str = "") -> str:
    script = tmp_path / f"model{len(after)}.py"
    script.write_text(ANSWER % (after or "pass"))
    return f"{sys.executable} {script}"


def test_a_model_is_asked_once_and_watched(tmp_path: Path) -> None:
    cache, ask = tmp_path / "cache.jsonl", command(tmp_path)
    known = ask_for_paraphrases(["walks left", "sits down", "walks left "], ask, cache)
    assert known == {"walks left": ("WALKS LEFT",), "sits down": ("SITS DOWN",)}  # the answer that changed the side is not taken
    before = cache.read_bytes()
    assert ask_for_paraphrases(["sits down"], ask, cache)["sits down"] == ("SITS DOWN",)
    assert cache.read_bytes() == before


def test_what_was_answered_before_a_crash_is_kept(tmp_path: Path) -> None:
    cache, ask = tmp_path / "cache.jsonl", command(tmp_path, "sys.exit('no more')")
    for done, text in enumerate(("one", "two", "three"), start=1):
        if done < 3:
            with pytest.raises(BunrakuError, match=r"after 1 of \d sentences.*no more"):
                ask_for_paraphrases(["one", "two", "three"], ask, cache)
        else:
            ask_for_paraphrases(["one", "two", "three"], ask, cache)
        assert text in read_paraphrases(cache)
    with cache.open("a") as stream:
        stream.write('{"text": "half')
    assert set(read_paraphrases(cache)) == {"one", "two", "three"}
    ask_for_paraphrases(["four"], command(tmp_path), cache)
    assert set(read_paraphrases(cache)) == {"one", "two", "three", "four"}
    assert json.loads(cache.read_text().splitlines()[-1])["text"] == "four"


def test_an_answer_that_makes_no_sense_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FormatProblem, match="answered 'hello'"):
        ask_for_paraphrases(["walks"], "echo hello", tmp_path / "cache.jsonl")
    with pytest.raises(BunrakuError, match="status 127 after 0 of 1"):
        ask_for_paraphrases(["walks"], "no-such-program-here", tmp_path / "cache.jsonl")
