"""What training draws: every captioned stretch once, rare actions more often, within bounds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bunraku.datasets.build import build
from bunraku.datasets.clip import Caption
from bunraku.datasets.store import Dataset, open_dataset
from bunraku.datasets.windows import action_shares, actions_of, caption_windows, sampling_weights
from tests.datasets.some_source import Walks


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(Walks(6), tmp_path_factory.mktemp("walks") / "d", workers=1).folder


@pytest.fixture
def dataset(built: Path) -> Dataset:
    return open_dataset(built)


def with_captions(dataset: Dataset, texts: list[list[tuple[str, float]]]) -> Dataset:
    """The dataset with other sentences, all of the whole clip."""
    clips = [
        replace(clip, split="train", captions=tuple(Caption(text=text, start=0, stop=clip.frames, weight=weight) for text, weight in said))
        for clip, said in zip(dataset.clips, texts, strict=True)
    ]
    dataset.clips = tuple(clips)
    return dataset


def test_sentences_of_the_same_frames_make_one_window(dataset: Dataset) -> None:
    windows = caption_windows(dataset, "train")
    assert [(w.clip, w.start, w.stop, w.mirrored) for w in windows[:2]] == [(0, 0, 60, False), (0, 15, 45, True)]
    assert len(windows) == 2 * len(dataset.of_split("train"))
    assert len(caption_windows(dataset, "train", shortest=1.5)) == len(dataset.of_split("train"))


def test_rare_actions_are_drawn_more_but_within_bounds(dataset: Dataset) -> None:
    walks = [[("a person walks", 1.0)]] * 5
    windows = caption_windows(with_captions(dataset, [*walks, [("a person kicks", 1.0)]]), "train")
    weights = sampling_weights(dataset, windows)
    assert float(weights.mean()) == pytest.approx(1)
    assert float(weights[5] / weights[0]) == pytest.approx(5**0.5, rel=1e-3)
    bounded = sampling_weights(dataset, windows, power=1.0, most=3.0)
    assert float(bounded[5] / bounded[0]) == pytest.approx(3.0, rel=1e-3)
    assert torch.allclose(sampling_weights(dataset, windows, power=0.0), torch.ones(6), atol=1e-4)
    shares = action_shares(dataset, windows, sampling_weights(dataset, windows, power=1.0))
    assert shares["kick"] == pytest.approx(shares["walk"], rel=1e-3)


def test_a_rare_action_among_frequent_ones_is_still_drawn_more(dataset: Dataset) -> None:
    said = [[("a person walks", 1.0)]] * 4 + [[("a person walks and sits down", 1.0)], [("a person walks and turns", 1.0)]]
    windows = caption_windows(with_captions(dataset, said), "train")
    weights = sampling_weights(dataset, windows)
    before, after = (action_shares(dataset, windows, w) for w in (torch.ones(6), weights))
    assert after["sit"] > 1.15 * before["sit"]
    assert float(weights.max() / weights.min()) < 16.0


def test_bare_labels_are_drawn_less(dataset: Dataset) -> None:
    windows = caption_windows(with_captions(dataset, [[("a person walks", 1.0)]] * 5 + [[("A person walks.", 0.25)]]), "train")
    weights = sampling_weights(dataset, windows)
    assert float(weights[5] / weights[0]) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("a person walks backwards slowly", {"walk", "walk backwards"}),
        ("someone sits on a chair", {"sit"}),
        ("does a cartwheel", {"flip"}),
        ("is kicking with the left leg and claps", {"kick", "clap"}),
        ("does something unheard of", {"walk"}),  # the category of the clip
    ],
)
def test_actions_are_read_from_words(dataset: Dataset, text: str, actions: set[str]) -> None:
    window = caption_windows(with_captions(dataset, [[(text, 1.0)]] * 6), "train")[0]
    assert set(actions_of(window, dataset.clips[0])) == actions


def test_an_empty_split_has_no_windows(dataset: Dataset) -> None:
    dataset.clips = dataset.clips[:2]
    assert caption_windows(dataset, "test") == []
    assert len(sampling_weights(dataset, [])) == 0
