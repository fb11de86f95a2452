from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from bunraku.errors import BunrakuError, FileProblem, FormatProblem
from bunraku.generator.checkpoint import Model, load_model, our_name, save_model
from bunraku.generator.denoiser import Condition, Denoiser
from tests.generator.tiny import denoiser_of

CONFIG = """
_target_: kimodo.model.Kimodo
num_base_steps: 1000
cfg_type: separated
denoiser:
  _target_: kimodo.model.twostage_denoiser.TwostageDenoiser
  motion_mask_mode: concat
  motion_rep:
    _target_: kimodo.motion_rep.KimodoMotionRep
    fps: 30
    stats_path: stats
    skeleton:
      _target_: kimodo.skeleton.{skeleton}
  llm_shape: [1, 24]
  use_text_mask: false
  latent_dim: 32
  ff_size: 64
  num_layers: 2
  num_heads: 4
  activation: gelu
  norm_first: false
  num_text_tokens_override: 6
  input_first_heading_angle: true
"""

_THEIR_NAMES = {
    r"^(root|body)_net\.": r"denoiser.backbone.\1_model.",
    r"text_in\.": "embed_text.",
    r"level_in\.": "embed_timestep.time_embed.0.",
    r"level_out\.": "embed_timestep.time_embed.2.",
    r"heading_in\.": "linear_first_heading_angle.",
    r"pose_in\.": "input_linear.",
    r"pose_out\.": "output_linear.",
    r"(?<=model\.)layers\.": "seqTransEncoder.layers.",
    r"qkv\.": "self_attn.in_proj_",
    r"attention_out\.": "self_attn.out_proj.",
    r"feed_in\.": "linear1.",
    r"feed_out\.": "linear2.",
    r"attention_norm\.": "norm1.",
    r"feed_norm\.": "norm2.",
}


def released(folder: Path, skeleton: str = "SOMASkeleton30", of: Denoiser | None = None) -> Path:
    """A folder in the released layout, with random weights under the released names."""
    denoiser = denoiser_of() if of is None else of
    weights = {}
    for name, value in denoiser.state_dict().items():
        for pattern, theirs in _THEIR_NAMES.items():
            name = re.sub(pattern, theirs, name)
        weights[name] = value.clone()
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors")
    (folder / "config.yaml").write_text(CONFIG.format(skeleton=skeleton))
    for part, spread in vars(denoiser.stats).items():
        (folder / "stats" / part).mkdir(parents=True, exist_ok=True)
        np.save(folder / "stats" / part / "mean.npy", spread.mean.numpy())
        np.save(folder / "stats" / part / "std.npy", spread.std.numpy())
    return folder


def run(model: Model) -> torch.Tensor:
    torch.manual_seed(0)
    layout = model.layout
    return model.denoiser(torch.randn(1, 5, layout.width), torch.tensor([500]), Condition(text=torch.randn(1, 1, 24), heading=torch.zeros(1)))


def test_a_released_folder_runs_as_the_network_it_holds(tmp_path: Path) -> None:
    model = load_model(released(tmp_path / "Kimodo-Tiny"))
    assert (model.name, model.text_encoder, model.layout.skeleton.name) == ("Kimodo-Tiny", "llm2vec", "soma30")
    assert torch.equal(run(model), run(Model(name="", denoiser=denoiser_of(), text_encoder="none")))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_our_own_folder_comes_back(tmp_path: Path, dtype: torch.dtype) -> None:
    model = Model(name="tiny", denoiser=denoiser_of(norm="pre", qk_norm=True), text_encoder="minilm", max_seconds=7.5)
    save_model(model, tmp_path / "tiny", dtype)
    back = load_model(tmp_path / "tiny")
    assert (back.name, back.text_encoder, back.max_seconds, back.denoiser.config) == ("tiny", "minilm", 7.5, model.denoiser.config)
    assert torch.allclose(run(back), run(model), atol=1e-6 if dtype == torch.float32 else 0.1)
    assert next(back.denoiser.parameters()).dtype == torch.float32


def test_reading_a_model_draws_no_random_numbers(tmp_path: Path) -> None:
    folder = released(tmp_path)
    before = torch.get_rng_state()
    load_model(folder)
    assert torch.equal(torch.get_rng_state(), before)


def test_every_released_name_finds_its_place(shared: Path) -> None:
    names = load_file(shared / "golden" / "kimodo" / "soma30" / "model.safetensors")
    ours = denoiser_of().state_dict()
    assert {our_name(name) for name in names} == set(ours)


def truncate(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])


def other_width(folder: Path) -> None:
    np.save(folder / "stats" / "body" / "mean.npy", np.zeros(412, np.float32))


def drop_weight(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights.pop("denoiser.backbone.root_model.output_linear.bias")
    save_file(weights, folder / "model.safetensors")


def extra_weight(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, "denoiser.backbone.third_model.bias": torch.zeros(1)}, folder / "model.safetensors")


def edit(old: str, new: str) -> Callable[[Path], int]:
    return lambda folder: (folder / "config.yaml").write_text((folder / "config.yaml").read_text().replace(old, new))


DAMAGE = {
    "truncated weights": (truncate, "cut short"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "missing"),
    "no statistics": (lambda folder: (folder / "stats" / "body" / "std.npy").unlink(), "missing"),
    "statistics of another width": (other_width, "364 numbers for 'soma30'"),
    "weights of another skeleton": (edit("SOMASkeleton30", "SMPLXSkeleton22"), "another skeleton"),
    "an unknown skeleton": (edit("SOMASkeleton30", "HorseSkeleton"), "HorseSkeleton"),
    "a missing weight": (drop_weight, "root_net.pose_out.bias"),
    "a weight too many": (extra_weight, "third_model"),
    "a missing key": (edit("latent_dim: 32", ""), "latent_dim"),
    "another make": (edit("motion_mask_mode: concat", "motion_mask_mode: add"), "motion_mask_mode"),
    "no YAML": (lambda folder: (folder / "config.yaml").write_text("a: [1"), "no YAML"),
    "a list": (lambda folder: (folder / "config.yaml").write_text("- 1"), "list"),
    "damaged statistics": (lambda folder: (folder / "stats" / "body" / "std.npy").write_bytes(b"\x93NUMPY"), "NumPy"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_gets_its_sentence(tmp_path: Path, damage: str) -> None:
    folder = released(tmp_path)
    break_it, words = DAMAGE[damage]
    break_it(folder)
    with pytest.raises(BunrakuError, match=re.escape(words)) as error:
        load_model(folder)
    assert "\n" not in str(error.value)


def test_folders_that_are_no_models(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="no folder"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(FileProblem, match="neither"):
        load_model(tmp_path)


@pytest.mark.parametrize(("key", "value", "words"), [("format", 99, "Update"), ("skeleton", None, "does not describe"), ("denoiser", {}, "does not describe")])
def test_damage_to_our_own_folder_gets_its_sentence(tmp_path: Path, key: str, value: object, words: str) -> None:
    save_model(Model(name="tiny", denoiser=denoiser_of(), text_encoder="minilm"), tmp_path)
    about = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**about, key: value}))
    with pytest.raises(BunrakuError, match=words):
        load_model(tmp_path)
    (tmp_path / "model.json").write_text("{")
    with pytest.raises(FormatProblem, match="no JSON"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("folder", "name", "text_encoder"),
    [
        ("Kimodo-SOMA-RP-v1", "Kimodo-SOMA-RP-v1", "llm2vec"),
        ("Kimodo-SOMA-RP-v1.1", "Kimodo-SOMA-RP-v1.1", "llm2vec-float32"),
        ("models--nvidia--Kimodo-SOMA-SEED-v1.1/snapshots/0f3a", "Kimodo-SOMA-SEED-v1.1", "llm2vec-float32"),
    ],
)
def test_a_released_folder_tells_its_name_and_what_its_words_were(tmp_path: Path, folder: str, name: str, text_encoder: str) -> None:
    model = load_model(released(tmp_path / folder))
    assert (model.name, model.text_encoder) == (name, text_encoder)
