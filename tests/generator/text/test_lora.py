"""Low-rank adapters: merged, run beside, stacked; and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from text_samples import write_adapter
from torch import nn

from bunraku.errors import FormatProblem
from bunraku.generator.text.lora import LowRank, merge, read_adapter, run_beside, stacked


def tiny_model() -> nn.Module:
    torch.manual_seed(3)
    return nn.ModuleDict({"one": nn.Linear(5, 7), "two": nn.Linear(7, 4, bias=False)})


def run(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model.get_submodule("two")(torch.tanh(model.get_submodule("one")(x)))


def random_adapter(rank: int) -> dict[str, LowRank]:
    return {
        "one": LowRank(down=torch.randn(rank, 5), up=torch.randn(7, rank)),
        "two": LowRank(down=torch.randn(rank, 7), up=torch.randn(4, rank)),
    }


def test_beside_and_merged_agree_and_stacking_is_merging_twice() -> None:
    first, second, x = random_adapter(2), {"two": random_adapter(3)["two"]}, torch.randn(6, 5)
    twice, once, beside, plain = (tiny_model() for _ in range(4))
    merge(twice, first)
    merge(twice, second)
    merge(once, stacked([first, second]))
    run_beside(beside, stacked([first, second]))
    torch.testing.assert_close(run(once, x), run(twice, x))
    torch.testing.assert_close(run(beside, x), run(twice, x))
    torch.testing.assert_close(run(beside, x), run(twice, x))  # hooks that have moved their matrices still agree
    assert not torch.allclose(run(plain, x), run(twice, x), atol=0.1)


def test_the_scale_is_alpha_over_rank(tmp_path: Path) -> None:
    write_adapter(tmp_path, base="x", rank=4, alpha=8)
    raw = load_file(tmp_path / "adapter_model.safetensors")
    name = "base_model.model.layers.1.self_attn.v_proj"
    expected = 2 * raw[f"{name}.lora_B.weight"] @ raw[f"{name}.lora_A.weight"]
    added = read_adapter(tmp_path)["layers.1.self_attn.v_proj"]
    torch.testing.assert_close(added.up @ added.down, expected)
    write_adapter(tmp_path, base="x", rank=4, alpha=8, use_rslora=True)  # alpha / sqrt(rank)
    raw = load_file(tmp_path / "adapter_model.safetensors")
    added = read_adapter(tmp_path)["layers.1.self_attn.v_proj"]
    torch.testing.assert_close(added.up @ added.down, 4 * raw[f"{name}.lora_B.weight"] @ raw[f"{name}.lora_A.weight"])


def test_merging_rounds_once_to_the_weights_type() -> None:
    model, adapter = tiny_model().bfloat16(), random_adapter(2)
    exact = tiny_model().bfloat16().get_submodule("one").weight.float() + adapter["one"].up @ adapter["one"].down
    merge(model, adapter)
    assert torch.equal(model.get_submodule("one").weight, exact.bfloat16())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"use_dora": True}, "sets use_dora to True"),
        ({"bias": "all"}, "sets bias to 'all'"),
        ({"peft_type": "LOHA"}, "sets peft_type to 'LOHA'"),
        ({"r": None}, "does not describe a LoRA adapter"),
        ({"r": 5}, "needs lora_A and lora_B of rank 5"),
    ],
)
def test_other_adapters_are_refused(tmp_path: Path, settings: dict[str, object], said: str) -> None:
    write_adapter(tmp_path, base="x", **settings)
    with pytest.raises(FormatProblem, match=said):
        read_adapter(tmp_path)


def test_tensors_that_are_no_lora_are_refused(tmp_path: Path) -> None:
    write_adapter(tmp_path, base="x")
    save_file({"base_model.model.norm.weight": torch.ones(3)}, tmp_path / "adapter_model.safetensors")
    with pytest.raises(FormatProblem, match=r"a tensor 'base_model\.model\.norm\.weight' that is no part of plain LoRA"):
        read_adapter(tmp_path)


def test_an_adapter_of_another_model_is_refused() -> None:
    with pytest.raises(FormatProblem, match="a layer 'three' of 4 × 5, which this base model does not have"):
        merge(tiny_model(), {"three": LowRank(down=torch.randn(1, 5), up=torch.randn(4, 1))})
    with pytest.raises(FormatProblem, match="a layer 'one' of 4 × 5"):
        run_beside(tiny_model(), {"one": LowRank(down=torch.randn(1, 5), up=torch.randn(4, 1))})
