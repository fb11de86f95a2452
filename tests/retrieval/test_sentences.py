"""Sentences that say the same, and those that say the opposite in nearly the same words."""

from __future__ import annotations

import pytest
import torch

from bunraku.retrieval.sentences import ALIKE, SAME, alike, one_sided, opposite_codes, opposites

EXCLUDE = [
    ("a person kicks with the left leg", "a person kicks with the right leg"),
    ("walks in a circle clockwise", "walks in a circle counter-clockwise"),
    ("walks clockwise", "walks counter clockwise"),
    ("a person walks forward", "a person walks backwards"),
    ("he runs slowly", "he runs quickly"),
    ("someone stands up", "someone sits down"),
]
FIT = [
    ("a person walks", "a person walks to the left"),
    ("a person waves left and right", "a person waves left"),
    ("he jumps right away", "he jumps to the left"),  # no side is meant
    ("leftover food", "the right hand"),
]


def said_alike(a: str, b: str, cosine: float = ALIKE) -> bool:
    vectors = torch.tensor([[1.0, 0.0], [1.0, 0.01]])
    return bool(alike(vectors, opposite_codes([a, b]), cosine)[0, 1])


@pytest.mark.parametrize(("a", "b"), EXCLUDE)
def test_opposites_are_never_alike(a: str, b: str) -> None:
    assert not said_alike(a, b)
    assert not said_alike(b, a, SAME)


@pytest.mark.parametrize(("a", "b"), FIT)
def test_what_can_both_be_true_may_be_alike(a: str, b: str) -> None:
    assert said_alike(a, b)


def test_far_vectors_are_not_alike_and_everything_is_like_itself() -> None:
    codes = opposite_codes(["walks left", "walks", "walks left and right"])
    found = alike(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]]), codes, ALIKE)
    assert torch.equal(found, torch.eye(3, dtype=torch.bool))
    zeros = alike(torch.zeros(2, 4), opposite_codes(["", ""]), SAME)  # sentences that were not read
    assert torch.equal(zeros, torch.eye(2, dtype=torch.bool))


def test_one_sided_sentences() -> None:
    texts = ["kicks with the left leg", "turns clockwise", "left, then right", "walks forward", "he is all right"]
    assert one_sided(opposite_codes(texts)).tolist() == [True, True, False, False, False]


def test_both_words_of_a_pair_say_nothing() -> None:
    assert opposites("turns left, then right") == opposites("turns")
    assert opposites("walks forwards and backwards") == opposites("walks")
