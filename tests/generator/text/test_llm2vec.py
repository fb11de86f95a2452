"""LLM2Vec on tiny random models of the released classes: who sees whom, what is pooled, and what is said when something is missing."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from text_samples import write_adapter, write_tiny_llama

from bunraku.errors import BadValue, FileProblem, FormatProblem
from bunraku.generator.text import llm2vec
from bunraku.generator.text.llm2vec import Llm2Vec, both_ways, read_both_ways
from bunraku.generator.text.lora import merge, read_adapter, run_beside, stacked

transformers = pytest.importorskip("transformers", reason="the extra 'llm2vec' is not installed")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llm2vec")
    write_tiny_llama(folder)
    return folder


@pytest.fixture(scope="module")
def llama(tiny: Path) -> Any:
    return transformers.LlamaModel.from_pretrained(tiny / "base").eval()


def tiny_encoder(folder: Path, **options: Any) -> Llm2Vec:
    return Llm2Vec(adapters=(folder / "mntp", folder / "supervised"), device="cpu", **{"dtype": torch.float32} | options)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_every_token_sees_all_others(tiny: Path, attention: str) -> None:
    llama = transformers.LlamaModel.from_pretrained(tiny / "base", attn_implementation=attention).eval()
    ids = list(range(3, 11))
    plain = read_both_ways(llama, [ids])[0]
    for j in range(len(ids)):  # whichever token is exchanged, every token's features move
        changed = read_both_ways(llama, [[*ids[:j], 20, *ids[j + 1 :]]])[0]
        assert bool(((changed - plain).abs().amax(1) > 1e-6).all())
    with torch.no_grad():
        causal = llama(input_ids=torch.tensor([ids])).last_hidden_state[0]
    assert not torch.allclose(causal[0], plain[0], atol=1e-3)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_padding_is_ignored_and_a_batch_is_its_single_texts(tiny: Path, attention: str, dtype: torch.dtype) -> None:
    llama = transformers.LlamaModel.from_pretrained(tiny / "base", attn_implementation=attention, dtype=dtype).eval()
    rows = [[3, 4, 5, 6, 7, 8, 9], [9, 8], [5]]
    tolerance = 2e-6 if dtype == torch.float32 else 0.05
    for row, together in zip(rows, read_both_ways(llama, rows), strict=True):
        torch.testing.assert_close(together, read_both_ways(llama, [row])[0], atol=tolerance, rtol=tolerance)


def test_left_padding_under_transformers_own_two_way_switch_gives_the_same(llama: Any) -> None:
    """LLM2Vec pads in front. transformers ≥ 5.2 turns a Llama two-way by `is_causal=False`: an independent referee of our mask."""
    rows = [[3, 4, 5, 6, 7], [9, 8]]
    ids, present = torch.tensor([rows[0], [0, 0, 0, *rows[1]]]), torch.tensor([[1] * 5, [0, 0, 0, 1, 1]])
    referee = copy.deepcopy(llama)
    referee.config.is_causal = False
    with torch.no_grad():
        theirs = referee(input_ids=ids, attention_mask=present).last_hidden_state
    for ours, expected in zip(read_both_ways(llama, rows), (theirs[0], theirs[1, 3:]), strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_the_mask_hides_padding_only() -> None:
    mask = both_ways(torch.tensor([[True, True, False]]), torch.float32)
    assert mask.shape == (1, 1, 3, 3)
    assert (mask[0, 0] == 0).tolist() == [[True, True, False]] * 3


def test_the_texts_own_tokens_are_pooled(tiny: Path) -> None:
    """By hand, as LLM2Vec pools: the mean over the text and <|eot_id|>, the header before it being read only."""
    encoder = tiny_encoder(tiny)
    features = encoder.encode(["a person walks", ""])
    model = transformers.LlamaModel.from_pretrained(tiny / "base").eval()
    merge(model, stacked([read_adapter(tiny / "mntp"), read_adapter(tiny / "supervised")]))
    tokens = ["<|begin_of_text|>", "<|start_header_id|>", "user", "<|end_header_id|>", "A", "person", "walks", ".", "<|eot_id|>"]
    ids = [encoder._tokenizer.token_to_id(token) for token in tokens]
    expected = read_both_ways(model, [ids])[0][-5:]
    torch.testing.assert_close(features.tokens[0], expected)
    torch.testing.assert_close(features.pooled[0], expected.mean(0))
    assert features.mask.sum(1).tolist() == [5, 0]
    assert not features.pooled[1].any()


@pytest.mark.parametrize("batch", [2, 8])
def test_batched_is_single(tiny: Path, batch: int) -> None:
    texts = ["a person walks", "waves", "runs slowly then waves", "left", "a person runs left then right slowly"]
    single, batched = tiny_encoder(tiny).encode(texts), tiny_encoder(tiny, batch=batch).encode(texts)
    torch.testing.assert_close(batched.pooled, single.pooled, atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(batched.tokens, single.tokens, atol=5e-6, rtol=1e-5)


def test_adapters_beside_the_weights_do_what_merged_ones_do(tiny: Path) -> None:
    """What quantised weights need: nothing can be added to them."""
    adapter = stacked([read_adapter(tiny / "mntp"), read_adapter(tiny / "supervised")])
    merged, beside, plain = (transformers.LlamaModel.from_pretrained(tiny / "base").eval() for _ in range(3))
    merge(merged, adapter)
    run_beside(beside, adapter)
    rows = [[3, 4, 5, 6]]
    torch.testing.assert_close(read_both_ways(beside, rows)[0], read_both_ways(merged, rows)[0], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(read_both_ways(plain, rows)[0], read_both_ways(merged, rows)[0], atol=1e-2)


@pytest.mark.oracle
def test_peft_merges_to_the_same_weights(tiny: Path) -> None:
    peft = pytest.importorskip("peft")
    theirs = peft.PeftModel.from_pretrained(transformers.LlamaModel.from_pretrained(tiny / "base"), tiny / "mntp").merge_and_unload()
    ours = transformers.LlamaModel.from_pretrained(tiny / "base")
    merge(ours, read_adapter(tiny / "mntp"))
    for name, weight in ours.state_dict().items():
        torch.testing.assert_close(weight, theirs.state_dict()[name], msg=name)


def test_the_release_type_is_bfloat16_and_results_are_float32(tiny: Path) -> None:
    half, full = tiny_encoder(tiny, dtype=torch.bfloat16), tiny_encoder(tiny)
    features = half.encode(["a person walks"])
    assert features.pooled.dtype == features.tokens.dtype == torch.float32
    torch.testing.assert_close(features.pooled, full.encode(["a person walks"]).pooled, atol=0.1, rtol=0.1)
    assert half.name.endswith("-bfloat16")
    assert half.name != full.name


def test_names_and_widths_need_no_model(tiny: Path) -> None:
    encoder = tiny_encoder(tiny)
    assert encoder.width == 32
    assert encoder.name == tiny_encoder(tiny).name
    assert "_model" not in vars(encoder)


def test_the_name_tells_the_weights(tiny: Path, tmp_path: Path) -> None:
    write_adapter(tmp_path / "other", base=str(tiny / "base"))
    other = Llm2Vec(adapters=(tiny / "mntp", tmp_path / "other"), device="cpu", dtype=torch.float32)
    assert other.name != tiny_encoder(tiny).name


def test_a_long_prompt_loses_words_at_its_end_with_a_warning(tiny: Path) -> None:
    with pytest.warns(UserWarning, match="a prompt of more than 400 tokens is read only up to '…"):
        features = tiny_encoder(tiny).encode(["a person walks then waves " * 100])
    assert int(features.mask.sum()) == int(500 * 400 / 501) + 1  # of 500 words and a full stop; and <|eot_id|>


def test_models_are_found_as_the_release_finds_them(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, source in zip(llm2vec.ADAPTERS, ("mntp", "supervised"), strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(tiny / source)
    monkeypatch.setenv("TEXT_ENCODERS_DIR", str(tmp_path))
    assert Llm2Vec(device="cpu", dtype=torch.float32).name == tiny_encoder(tiny).name


@pytest.mark.usefixtures("unchecked_shapes")
def test_what_is_missing_is_said(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileProblem, match=r"has no adapter_config\.json"):
        Llm2Vec(adapters=(tiny / "base",))
    with pytest.raises(BadValue, match=r"with batch ≥ 1 and an adapter; got None, torch.float32, 0"):
        tiny_encoder(tiny, batch=0)
    monkeypatch.setattr(llm2vec, "find_spec", lambda package: None if package == "bitsandbytes" else object())
    with pytest.raises(FileProblem, match="4-bit weights need the package 'bitsandbytes', which is not installed; run: pip install bitsandbytes accelerate"):
        tiny_encoder(tiny, bits=4)
    monkeypatch.setattr(llm2vec, "find_spec", lambda package: None)
    with pytest.raises(FileProblem, match=r"'transformers', which is not installed; run: pip install 'bunraku\[llm2vec\]'"):
        tiny_encoder(tiny)


def test_another_model_or_tokenizer_is_refused(tiny: Path, tmp_path: Path) -> None:
    write_adapter(tmp_path / "mntp", base=str(tmp_path / "base"))
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "model.safetensors").write_bytes(b"no weights")
    (tmp_path / "base" / "config.json").write_text(json.dumps({"model_type": "mistral", "hidden_size": 8}))
    with pytest.raises(FormatProblem, match="describes a 'mistral' model"):
        _ = Llm2Vec(adapters=(tmp_path / "mntp",), device="cpu").width
    (tmp_path / "base" / "config.json").write_bytes((tiny / "base" / "config.json").read_bytes())
    text = (tiny / "mntp" / "tokenizer.json").read_text()
    (tmp_path / "base" / "tokenizer.json").write_text(text.replace("<|eot_id|>", "<|end_of_turn|>"))
    with pytest.raises(FormatProblem, match=r"does not know <\|eot_id\|>; it is not the tokenizer of Llama-3-Instruct"):
        Llm2Vec(adapters=(tmp_path / "mntp",), device="cpu").encode(["waves"])
    (tmp_path / "base" / "tokenizer.json").write_text(text)
    with pytest.raises(FormatProblem, match=r"the language model in .* cannot be loaded"):
        Llm2Vec(adapters=(tmp_path / "mntp",), device="cpu").encode(["waves"])


def test_missing_weights_are_refused(tiny: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(tiny, tmp_path / "copy")
    path = tmp_path / "copy" / "base" / "model.safetensors"
    weights = {name: value for name, value in load_file(path).items() if "layers.1" not in name}
    save_file(weights, path, metadata={"format": "pt"})
    encoder = Llm2Vec(base=tmp_path / "copy" / "base", adapters=(tiny / "mntp",), device="cpu")
    with pytest.raises(FormatProblem, match=r"lack 'layers\.1\.input_layernorm\.weight' and 8 others"):
        encoder.encode(["waves"])
    assert "LOAD REPORT" not in capfd.readouterr().err  # said once, by us
