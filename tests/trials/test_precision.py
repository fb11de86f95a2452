"""Retrieval: what is found at which rank, among equals, and where sentences say the same."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from bunraku.trials.precision import precision, retrieval_ranks


def test_every_sentence_finds_its_own() -> None:
    found = precision(torch.eye(20), torch.eye(20))
    assert found.at == {1: 100, 2: 100, 3: 100, 5: 100, 10: 100}
    assert (found.median_rank, found.size) == (1, 20)


def test_ranks_are_counted_by_hand() -> None:
    sentences = torch.eye(3)
    motions = torch.tensor([[0.9, 0.8, 0.1], [0.5, 0.7, 0.2], [0.1, 0.9, 0.3]])
    # sentence 0: 0.9 0.5 0.1; sentence 1: 0.8 0.7 0.9; sentence 2: 0.1 0.2 0.3
    assert retrieval_ranks(sentences, motions).tolist() == [1, 3, 1]
    found = precision(sentences, motions)
    assert found.at[1] == pytest.approx(200 / 3)
    assert found.at[2] == pytest.approx(200 / 3)
    assert found.at[3] == 100


def test_a_blind_model_finds_nothing() -> None:
    same_everywhere = F.normalize(torch.ones(50, 4), dim=-1)
    found = precision(same_everywhere, same_everywhere)
    assert found.at[1] == 0
    assert found.median_rank == 50


def test_chance_is_chance() -> None:
    generator = torch.Generator().manual_seed(0)
    sentences, motions = (F.normalize(torch.randn(400, 16, generator=generator), dim=-1) for _ in range(2))
    found = precision(sentences, motions)
    assert found.at[10] == pytest.approx(2.5, abs=2)
    assert found.median_rank == pytest.approx(200, abs=40)


def test_motions_of_the_same_sentence_are_as_good() -> None:
    sentences = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    motions = torch.tensor([[0.2, 0.0], [0.9, 0.0], [0.5, 0.4]])
    same = torch.tensor([[True, True, False], [True, True, False], [False, False, True]])
    assert retrieval_ranks(sentences, motions).tolist() == [3, 1, 1]
    assert retrieval_ranks(sentences, motions, same).tolist() == [1, 1, 1]
