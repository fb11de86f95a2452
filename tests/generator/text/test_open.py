"""From names to encoders."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from text_samples import CountingEncoder

from bunraku.errors import BadValue, FileProblem
from bunraku.generator.text.cache import CachedEncoder
from bunraku.generator.text.encoder import NoText
from bunraku.generator.text.open import text_encoder
from bunraku.generator.text.precomputed import Precomputed, write_embeddings
from bunraku.generator.text.service import TextService


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUNRAKU_CACHE", str(tmp_path / "cache"))


def test_none() -> None:
    encoder = text_encoder("none", width=4096)
    assert isinstance(encoder, NoText)
    assert encoder.width == 4096


def test_a_file(tmp_path: Path) -> None:
    write_embeddings(tmp_path / "t.npz", CountingEncoder(), ["waves"])
    assert isinstance(text_encoder(str(tmp_path / "t.npz")), Precomputed)


def test_an_address() -> None:
    assert isinstance(text_encoder("http://127.0.0.1:9/"), CachedEncoder)
    assert isinstance(text_encoder("https://example.org/texts", cached=False), TextService)


def test_minilm_is_cached(tmp_path: Path) -> None:
    try:
        encoder = text_encoder("minilm")
    except FileProblem as error:
        pytest.skip(str(error))
    assert encoder.encode(["A person walks."]).width == 384
    assert len(list((tmp_path / "cache" / "text" / encoder.name).iterdir())) == 1


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match=r"has no model\.safetensors"):
        text_encoder(str(tmp_path))


@pytest.mark.parametrize("name", ["clip", "", "MiniLM-L6", "llm2vec-3bit"])
def test_unknown_names_list_the_choices(name: str) -> None:
    choices = "minilm, llm2vec, llm2vec-float32, llm2vec-8bit, llm2vec-4bit, none, a folder"
    with pytest.raises(BadValue, match=f"there is no text encoder '{name}'; choose {choices}"):
        text_encoder(name)


@pytest.mark.parametrize(
    ("name", "made"),
    [("llm2vec", {}), ("llm2vec-float32", {"dtype": torch.float32}), ("llm2vec-8bit", {"bits": 8}), ("llm2vec-4bit", {"bits": 4})],
)
def test_llm2vec_is_made_as_its_name_says(name: str, made: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    def recorded(**options: object) -> NoText:
        asked.append(options)
        return NoText(4096)

    monkeypatch.setattr("bunraku.generator.text.llm2vec.Llm2Vec", recorded)
    text_encoder(name, device="cpu")
    assert asked == [{"device": "cpu", **made}]
