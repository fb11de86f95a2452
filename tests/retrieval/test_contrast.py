"""The contrast: its value in closed form, what it leaves out, and that a retriever learns by it."""

from __future__ import annotations

import math
import zlib

import pytest
import torch

import bunraku
from bunraku.generator.features import FeatureLayout, encode
from bunraku.generator.stats import Spread
from bunraku.generator.text.encoder import TextFeatures
from bunraku.kinematics.walk import walk
from bunraku.retrieval.contrast import Pairs, contrast, info_nce, no_lesson
from bunraku.retrieval.model import Retriever, RetrieverConfig, embed_motions, embed_texts
from bunraku.retrieval.sentences import opposite_codes
from bunraku.retrieval.view import mirror_view, motion_view

LAYOUT = FeatureLayout(skeleton=bunraku.skeleton("soma30"))
SMALL = RetrieverConfig(width=32, feed_width=64, heads=4, motion_layers=2, text_layers=1, text_width=12, latent=16, dropout=0.0)
FEATURES = [encode(LAYOUT, walk(LAYOUT.skeleton, seconds=seconds, speed=speed)) for seconds, speed in ((1.0, 0.5), (1.5, 1.0), (2.0, 1.5), (0.9, 2.0))]
TEXTS = ["a person creeps", "he walks", "she strides along", "someone runs"]


def text_of(texts: list[str]) -> TextFeatures:
    rows = [torch.randn(3, 12, generator=torch.Generator().manual_seed(zlib.crc32(text.encode()))) for text in texts]
    tokens = torch.stack(rows)
    return TextFeatures(tokens=tokens, mask=torch.ones(len(texts), 3, dtype=torch.bool), pooled=tokens.mean(1))


def pairs_of(texts: list[str], motions: list[int] | None = None) -> Pairs:
    views = [motion_view(LAYOUT, features) for features in FEATURES[: len(texts)]]
    frames = max(map(len, views))
    valid = torch.stack([torch.arange(frames) < len(view) for view in views])
    padded = torch.stack([torch.cat([view, torch.zeros(frames - len(view), view.shape[1])]) for view in views])
    numbers = list(range(len(texts))) if motions is None else motions
    return Pairs(views=padded, valid=valid, text=text_of(texts), codes=opposite_codes(texts), motions=torch.tensor(numbers))


def retriever() -> Retriever:
    torch.manual_seed(0)
    rows = torch.cat([motion_view(LAYOUT, features) for features in FEATURES])
    return Retriever(SMALL, LAYOUT, Spread(mean=rows.mean(0), std=rows.std(0) + 0.1))


def test_the_value_in_closed_form() -> None:
    nothing = torch.zeros(3, 3, dtype=torch.bool)
    assert float(info_nce(torch.zeros(3, 3), nothing)) == pytest.approx(math.log(3))
    assert float(info_nce(20 * torch.eye(3), nothing)) == pytest.approx(0, abs=1e-7)
    left_out = nothing.clone()
    left_out[0, 1] = left_out[1, 0] = True
    expected = (math.log(2) + math.log(2) + math.log(3)) / 3
    assert float(info_nce(torch.zeros(3, 3), left_out)) == pytest.approx(expected)


def test_what_is_no_lesson() -> None:
    same = no_lesson(pairs_of(["a person walks", "a person walks", "she strides along", "someone runs"]))
    assert same.tolist() == [[False, True, False, False], [True, False, False, False], [False] * 4, [False] * 4]
    one_motion = no_lesson(pairs_of(TEXTS, motions=[0, 0, 1, 2]))
    assert one_motion[0, 1]
    assert one_motion.sum() == 2
    opposite = pairs_of(["kicks with the left leg"] * 4)
    assert no_lesson(opposite).sum() == 12
    sided = Pairs(**{**vars(opposite), "codes": opposite_codes(["kicks left", "kicks right", "kicks left", "kicks"])})
    assert not no_lesson(sided)[0, 1]
    assert no_lesson(sided)[0, 2]


def test_the_mirror_image_is_one_more_to_choose_from() -> None:
    nothing = torch.zeros(3, 3, dtype=torch.bool)
    more = torch.tensor([0.0, float("-inf"), float("-inf")])
    expected = (math.log(4) + 2 * math.log(3)) / 3 / 2 + math.log(3) / 2
    assert float(info_nce(torch.zeros(3, 3), nothing, more)) == pytest.approx(expected)


def test_sides_are_learnt() -> None:
    """Of a motion and its mirror image, told apart by nothing but one word, each finds its own."""
    model, view = retriever(), motion_view(LAYOUT, FEATURES[1])
    view = view + 0.3 * torch.randn(view.shape, generator=torch.Generator().manual_seed(0))  # a walk is much like its mirror image
    texts = ["kicks with the left leg", "she strides along"]
    views = torch.stack([view, motion_view(LAYOUT, FEATURES[2])[: len(view)]])
    pairs = Pairs(
        views=views,
        valid=torch.ones(2, len(view), dtype=torch.bool),
        text=text_of(texts),
        codes=opposite_codes(texts),
        motions=torch.arange(2),
    )
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for _ in range(40):
        lesson = contrast(model, pairs)
        optimiser.zero_grad()
        lesson.loss.backward()
        optimiser.step()
    with torch.no_grad():
        told = embed_texts(model, text_of(texts[:1]))[0]
        seen = model.embed_views(torch.stack([view, mirror_view(LAYOUT.skeleton, view)]), torch.ones(2, len(view), dtype=torch.bool)) @ told
    assert float(seen[0] - seen[1]) > 0.5


def test_a_retriever_learns() -> None:
    model, pairs = retriever(), pairs_of(TEXTS)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
    first = contrast(model, pairs)
    for _ in range(40):
        lesson = contrast(model, pairs)
        optimiser.zero_grad()
        lesson.loss.backward()
        optimiser.step()
    last = contrast(model, pairs)
    assert first.loss.item() > 1.0
    assert last.loss.item() < 0.1 * first.loss.item()
    assert float(last.found) == 1.0
    assert all(weight.grad is not None and bool(weight.grad.any()) for weight in model.parameters())


def test_embedding_does_not_depend_on_company() -> None:
    model = retriever().eval()
    together = embed_motions(model, FEATURES)
    assert together.shape == (4, 16)
    torch.testing.assert_close(together.norm(dim=-1), torch.ones(4))
    for row, features in zip(together, FEATURES, strict=True):
        torch.testing.assert_close(embed_motions(model, [features])[0], row, atol=1e-5, rtol=1e-4)
    sentences = embed_texts(model, text_of(TEXTS))
    torch.testing.assert_close(embed_texts(model, text_of(TEXTS[2:3]))[0], sentences[2], atol=1e-5, rtol=1e-4)
    assert len(embed_motions(model, [])) == 0


def test_motions_and_texts_of_another_make_are_refused() -> None:
    with pytest.raises(bunraku.BunrakuError, match="motion 1 has 100 features a frame"):
        embed_motions(retriever(), [FEATURES[0], torch.zeros(5, 100)])
    wide = TextFeatures(tokens=torch.zeros(1, 2, 20), mask=torch.ones(1, 2, dtype=torch.bool), pooled=torch.zeros(1, 20))
    with pytest.raises(bunraku.BunrakuError, match="20 numbers a token"):
        embed_texts(retriever(), wide)


def test_the_shipped_size_keeps_its_promise() -> None:
    from bunraku.retrieval.view import view_width

    width = view_width(LAYOUT)
    with torch.device("meta"):
        model = Retriever(RetrieverConfig(), LAYOUT, Spread(mean=torch.zeros(width), std=torch.ones(width)))
    assert 2 * sum(weight.numel() for weight in model.parameters()) < 20 * 2**20
