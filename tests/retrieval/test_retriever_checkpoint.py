"""Retrievers on disk: the same numbers come back, and damage is said in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from test_contrast import FEATURES, retriever, text_of

import bunraku
from bunraku.retrieval.checkpoint import load_retriever, save_retriever
from bunraku.retrieval.model import embed_motions, embed_texts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_retriever(retriever(), tmp_path / "tmr")
    return tmp_path / "tmr"


def test_a_retriever_comes_back(folder: Path) -> None:
    before, after = retriever().eval(), load_retriever(folder)
    assert torch.equal(embed_motions(before, FEATURES), embed_motions(after, FEATURES))
    assert torch.equal(embed_texts(before, text_of(["walks"])), embed_texts(after, text_of(["walks"])))
    assert (after.name, after.text_encoder, after.config, after.layout.skeleton.name) == ("tmr", "minilm", before.config, "soma30")
    assert not after.training
    assert not any(weight.requires_grad for weight in after.parameters())


def test_half_precision_is_nearly_the_same_and_half_as_large(folder: Path, tmp_path: Path) -> None:
    save_retriever(retriever(), tmp_path / "half", dtype=torch.float16)
    sizes = [(place / "model.safetensors").stat().st_size for place in (folder, tmp_path / "half")]
    assert sizes[1] < 0.6 * sizes[0]
    near = (embed_motions(load_retriever(folder), FEATURES) * embed_motions(load_retriever(tmp_path / "half"), FEATURES)).sum(-1)
    assert near.min() > 0.9999


def edited(folder: Path, **changes: object) -> None:
    about = json.loads((folder / "model.json").read_text()) | changes
    (folder / "model.json").write_text(json.dumps(about))


def test_damage_is_said(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(bunraku.BunrakuError, match=r"holds no model\.json; a retriever is a folder"):
        load_retriever(tmp_path)
    edited(folder, kind="generator", denoiser={})
    with pytest.raises(bunraku.BunrakuError, match="describes a generator"):
        load_retriever(folder)
    edited(folder, kind="retriever", format=9)
    with pytest.raises(bunraku.BunrakuError, match="format 9"):
        load_retriever(folder)
    edited(folder, format=1, skeleton="g1")
    with pytest.raises(bunraku.BunrakuError, match="209 numbers are needed for 'g1'"):
        load_retriever(folder)
    edited(folder, skeleton="soma30", retriever={"wings": 2})
    with pytest.raises(bunraku.BunrakuError, match="does not describe a retriever"):
        load_retriever(folder)


def test_weights_of_another_retriever_are_refused(folder: Path) -> None:
    edited(folder, retriever=vars(retriever().config) | {"latent": 20})
    with pytest.raises(bunraku.BunrakuError, match=r"other numbers .* for the weights 'motion_trunk\.out\.weight'"):
        load_retriever(folder)
    edited(folder, retriever=vars(retriever().config) | {"text_layers": 2})
    with pytest.raises(bunraku.BunrakuError, match=r"lacks the weights 'text_trunk.layers.1"):
        load_retriever(folder)
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])
    with pytest.raises(bunraku.BunrakuError, match="no complete safetensors file"):
        load_retriever(folder)
