"""What every encoder keeps: padding is zero and not present, an empty prompt is nothing, a repeated one is encoded once."""

from __future__ import annotations

import pytest
import torch
from text_samples import CountingEncoder

from bunraku.errors import BadValue
from bunraku.generator.text.encoder import NoText


def test_rows_stand_in_order_and_are_padded_with_zeros() -> None:
    features = CountingEncoder().encode(["a person walks", "", "waves"])
    assert len(features) == 3
    assert features.width == 6
    assert features.mask.tolist() == [[True] * 3, [False] * 3, [True, False, False]]
    assert not features.tokens[~features.mask].any()
    assert not features.pooled[1].any()
    torch.testing.assert_close(features.tokens[2, 0], features.pooled[2])


def test_the_company_of_a_text_changes_nothing() -> None:
    encoder = CountingEncoder()
    alone, together = encoder.encode(["waves"]), encoder.encode(["a person walks slowly", " waves "])
    torch.testing.assert_close(together.pooled[1], alone.pooled[0])
    torch.testing.assert_close(together.tokens[1, :1], alone.tokens[0])


def test_a_repeated_text_is_encoded_once() -> None:
    encoder = CountingEncoder()
    features = encoder.encode(["runs", "walks", "runs", " walks"])
    assert encoder.asked == [["runs", "walks"]]
    assert torch.equal(features.pooled[0], features.pooled[2])
    assert torch.equal(features.pooled[1], features.pooled[3])


@pytest.mark.parametrize("texts", [[], [""], ["  ", "\n"]])
def test_nothing_to_encode_asks_nothing(texts: list[str]) -> None:
    encoder = CountingEncoder()
    features = encoder.encode(texts)
    assert encoder.asked == []
    assert features.tokens.shape == (len(texts), 0, 6)
    assert not features.pooled.any()


def test_no_text_is_zero_of_the_asked_width() -> None:
    features = NoText(4096).encode(["A person walks.", ""])
    assert features.pooled.shape == (2, 4096)
    assert not features.pooled.any()
    assert features.mask.shape == (2, 0)


def test_features_move_together() -> None:
    features = CountingEncoder().encode(["a person", "walks"]).to(torch.float64)
    assert features.tokens.dtype == features.pooled.dtype == torch.float64
    assert features.mask.dtype == torch.bool


def test_a_text_instead_of_a_list_is_refused() -> None:
    with pytest.raises(BadValue, match=r"encode takes a list of texts; got the single text 'waves'"):
        CountingEncoder().encode("waves")


def test_a_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(BadValue, match=r"the prompt 'wav\\udce9s' is not valid text"):
        CountingEncoder().encode(["wav\udce9s"])


def test_numbers_that_are_not_finite_stop_here(monkeypatch: pytest.MonkeyPatch) -> None:
    made = CountingEncoder().embed(["waves"])
    made[0].pooled[2] = float("nan")
    monkeypatch.setattr(CountingEncoder, "embed", lambda self, texts: made)
    with pytest.raises(BadValue, match="'counting-1' made numbers that are not finite of 'waves'"):
        CountingEncoder().encode(["waves"])
