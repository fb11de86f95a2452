"""From names to encoders."""

from __future__ import annotations

from pathlib import Path

import pytest
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


@pytest.mark.parametrize("name", ["clip", "", "MiniLM-L6"])
def test_unknown_names_list_the_choices(name: str) -> None:
    with pytest.raises(BadValue, match=f"there is no text encoder '{name}'; choose minilm, llm2vec, none, a folder"):
        text_encoder(name)
