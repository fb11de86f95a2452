"""The cache: a second time nothing is encoded, damage is repaired in silence, and a folder that cannot be written is said once."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from text_samples import CountingEncoder

from bunraku.generator.text.cache import CachedEncoder, cache_folder

TEXTS = ["a person walks", "", "waves", "a person walks"]


def entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.safetensors"))


def test_only_what_is_new_is_encoded_and_all_of_it_at_once(tmp_path: Path) -> None:
    expected = CountingEncoder().encode([*TEXTS, "runs", "left"])
    encoder = CountingEncoder()
    CachedEncoder(encoder, tmp_path).encode(TEXTS)
    features = CachedEncoder(encoder, tmp_path).encode([*TEXTS, "runs", "left"])
    assert encoder.asked == [["a person walks", "waves"], ["runs", "left"]]
    assert torch.equal(features.tokens, expected.tokens)
    assert torch.equal(features.pooled, expected.pooled)
    assert torch.equal(features.mask, expected.mask)
    assert len(entries(tmp_path)) == 4


def test_encoders_do_not_share_entries(tmp_path: Path) -> None:
    for encoder in (CountingEncoder(), CountingEncoder(name="counting-2"), CountingEncoder(name="a/b"), CountingEncoder(name="a_b")):
        CachedEncoder(encoder, tmp_path).encode(["waves"])
        assert encoder.asked == [["waves"]]
    assert len(entries(tmp_path)) == 4


@pytest.mark.parametrize("damage", ["truncated", "empty", "other text", "other width", "not finite", "no tokens"])
def test_damage_is_encoded_anew(tmp_path: Path, damage: str) -> None:
    CachedEncoder(CountingEncoder(), tmp_path).encode(["waves", "runs"])
    first, second = entries(tmp_path)
    whole = first.read_bytes()
    header = {"text": "waves", "encoder": "counting-1"}
    if damage == "truncated":
        first.write_bytes(whole[:-5])
    elif damage == "empty":
        first.write_bytes(b"")
    elif damage == "other text":
        first.write_bytes(second.read_bytes())
    else:
        wide = 7 if damage == "other width" else 6
        tensors = {"pooled": torch.full((wide,), float("nan") if damage == "not finite" else 1.0), "tokens": torch.ones(1, wide)}
        if damage == "no tokens":
            tensors.pop("tokens")
        for path in (first, second):
            save_file(tensors, path, metadata=header if path == first else header | {"text": "runs"})
    encoder = CountingEncoder()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        features = CachedEncoder(encoder, tmp_path).encode(["waves", "runs"])
    assert encoder.asked
    assert torch.equal(features.pooled, CountingEncoder().encode(["waves", "runs"]).pooled)
    again = CountingEncoder()
    CachedEncoder(again, tmp_path).encode(["waves", "runs"])
    assert again.asked == []


def test_a_folder_that_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cached = CachedEncoder(CountingEncoder(), tmp_path / "file" / "cache")
    with pytest.warns(UserWarning, match=r"texts cannot be kept in .* and will be encoded again next time; set BUNRAKU_CACHE") as said:
        cached.encode(["waves", "runs"])
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        features = cached.encode(["left"])
    assert torch.equal(features.pooled, CountingEncoder().encode(["left"]).pooled)


def test_nothing_half_written_stays(tmp_path: Path) -> None:
    CachedEncoder(CountingEncoder(), tmp_path).encode(["waves"])
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".safetensors"]


def test_where_the_cache_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BUNRAKU_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("BUNRAKU_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for platform, end in (("linux", "bunraku"), ("darwin", "Library/Caches/bunraku"), ("win32", "bunraku/Cache")):
        monkeypatch.setattr("sys.platform", platform)
        assert cache_folder().as_posix().endswith(end)
