"""The command that replays recorded runs of the release: on the recordings where they are, and on a folder of our own making."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from bunraku.generator.parity import main

FOLDERS = ("soma30", "soma30-mixed", "g1-mixed")


@pytest.mark.parametrize("name", FOLDERS)
def test_recorded_runs_of_the_release_are_repeated(shared: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(shared / "golden" / "kimodo" / name)]) == 0
    assert capsys.readouterr().out.endswith("35 of 35 agree\n")


def copied(source: Path, target: Path) -> Path:
    """A copy that may be written to."""
    for path in source.rglob("*"):
        if path.is_file():
            (target / path.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
            (target / path.relative_to(source)).write_bytes(path.read_bytes())
    return target


@pytest.mark.parametrize("recording", ["representation", "denoiser", "constrained"])
def test_what_differs_is_found(shared: Path, tmp_path: Path, recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copied(shared / "golden" / "kimodo" / "g1-mixed", tmp_path)
    tensors = load_file(folder / f"{recording}.safetensors")
    name = next(name for name in tensors if name.endswith("root_positions") and name != "root_positions")
    save_file({**tensors, name: tensors[name] + 2e-4}, folder / f"{recording}.safetensors")
    assert main([str(folder)]) == 1
    assert "DIFFERS" in capsys.readouterr().out


def test_a_wrong_weight_is_found(shared: Path, tmp_path: Path) -> None:
    folder = copied(shared / "golden" / "kimodo" / "g1-mixed", tmp_path)
    tensors = load_file(folder / "model.safetensors")
    tensors["denoiser.backbone.body_model.output_linear.bias"] += 1e-3
    save_file(tensors, folder / "model.safetensors")
    assert main([str(folder)]) == 1


def test_a_folder_without_recordings_and_a_recording_without_tensors_get_a_sentence(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copied(shared / "golden" / "kimodo" / "g1-mixed", tmp_path)
    for path in folder.glob("*.safetensors"):
        if path.name != "model.safetensors":
            path.unlink()
    assert main([str(folder)]) == 2
    assert "no recording" in capsys.readouterr().err
    save_file({"x": torch.zeros(1)}, folder / "denoiser.safetensors")
    assert main([str(folder)]) == 2
    assert "lacks the tensor" in capsys.readouterr().err
    (folder / "run.json").write_text(json.dumps({"lengths": [3]}))
    assert main([str(folder)]) == 2
    assert "ddim_steps" in capsys.readouterr().err


def test_usage() -> None:
    assert main([]) == 2
