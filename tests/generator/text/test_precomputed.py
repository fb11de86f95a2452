"""Embeddings from a file: found as written or tidied, and what is said of what is missing or broken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from text_samples import CountingEncoder

from bunraku.errors import BadValue, BunrakuError, FileProblem, FormatProblem
from bunraku.generator.text.precomputed import Precomputed, write_embeddings

TEXTS = ["A person walks.", "waves", "Runs slowly then waves."]


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_what_is_written_is_read(tmp_path: Path, suffix: str) -> None:
    path, encoder = tmp_path / f"texts{suffix}", CountingEncoder()
    write_embeddings(path, encoder, [*TEXTS, "", " waves "])
    read = Precomputed(path)
    assert (read.name, read.width) == ("counting-1", 6)
    asked = ["waves", "", "A person walks."]
    ours, theirs = read.encode(asked), encoder.encode(asked)
    assert torch.equal(ours.pooled, theirs.pooled)
    assert torch.equal(ours.tokens, theirs.tokens)
    assert torch.equal(ours.mask, theirs.mask)


def test_a_text_is_found_through_its_tidied_form(tmp_path: Path) -> None:
    write_embeddings(tmp_path / "t.npz", CountingEncoder(), TEXTS)
    read = Precomputed(tmp_path / "t.npz")
    assert torch.equal(read.encode(["a PERSON  walks", "Waves."]).pooled, read.encode(["A person walks.", "waves"]).pooled)


def test_a_vector_alone_stands_as_the_one_token(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", texts=np.array(["walks", "waves"]), pooled=np.eye(2, 5))
    features = Precomputed(tmp_path / "v.npz").encode(["waves", "walks"])
    assert features.tokens.shape == (2, 1, 5)
    assert torch.equal(features.tokens[:, 0], features.pooled)
    assert features.pooled.argmax(1).tolist() == [1, 0]
    assert Precomputed(tmp_path / "v.npz").name.startswith("file-")


def test_missing_prompts_are_listed(tmp_path: Path) -> None:
    write_embeddings(tmp_path / "t.npz", CountingEncoder(), TEXTS)
    with pytest.raises(BadValue, match=r"holds 3 embeddings, but none of 'jumps', 'Sits down\.'; add them with the encoder 'counting-1'"):
        Precomputed(tmp_path / "t.npz").encode(["waves", "jumps", "Sits down."])
    with pytest.raises(BadValue, match=r"'4' and 2 more;"):
        Precomputed(tmp_path / "t.npz").encode([str(i) for i in range(7)])


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"texts": np.array(["a"])}, "has no array 'pooled'"),
        ({"pooled": np.ones((1, 4))}, "has no array 'texts'"),
        ({"texts": np.array(["a", "b"]), "pooled": np.ones((1, 4))}, r"'pooled' has the shape \(1, 4\); one row for each of 2 texts"),
        ({"texts": np.array(["a"]), "pooled": np.full((1, 4), np.nan)}, "is not finite"),
        ({"texts": np.array(["a"]), "pooled": np.ones((1, 4)), "tokens": np.ones((3, 4)), "counts": np.array([2])}, "add up to 2"),
        ({"texts": np.array(["a"]), "pooled": np.ones((1, 4)), "tokens": np.ones((2, 3)), "counts": np.array([2])}, r"'tokens' has the shape \(2, 3\)"),
        ({"texts": np.array(["a"], dtype=object), "pooled": np.ones((1, 4))}, "pickled"),
    ],
)
def test_broken_npz(tmp_path: Path, arrays: dict[str, np.ndarray], said: str) -> None:
    np.savez(tmp_path / "t.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(FormatProblem, match=said):
        Precomputed(tmp_path / "t.npz")


def test_broken_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    save_file({"pooled": torch.ones(1, 4)}, path)
    with pytest.raises(FormatProblem, match="has no JSON list 'texts'"):
        Precomputed(path)
    save_file({"vectors": torch.ones(1, 4)}, path, metadata={"texts": '["a"]'})
    with pytest.raises(FormatProblem, match=r"has no array 'pooled' \(it has: vectors\)"):
        Precomputed(path)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(FormatProblem, match="may be truncated"):
        Precomputed(path)


def test_paths(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="there is no file"):
        Precomputed(tmp_path / "none.npz")
    with pytest.raises(BunrakuError, match=r"they end in \.npz or \.safetensors"):
        write_embeddings(tmp_path / "t.json", CountingEncoder(), TEXTS)
    with pytest.raises(BadValue, match="there is no text to embed"):
        write_embeddings(tmp_path / "t.npz", CountingEncoder(), ["", " "])
