"""`bunraku train`: a tiny run from the command line, resumed, its model used; what is wrong with a call in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunraku.cli import main
from bunraku.training.run_folder import read_log
from tests.training.small_data import small_dataset

TINY = [
    *("--set", "denoiser.backbone.width=32", "--set", "feed_width=64", "--set", "layers=1", "--set", "heads=4", "--set", "text_slots=8"),
    *("--set", "batch=4", "--set", "steps=4", "--set", "checkpoint_every=2", "--set", "log_every=1", "--set", "compiled=no"),
    *("--set", "precision=float32", "--set", "lengths=20,30", "--set", "text_encoder=none"),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(tmp_path_factory.mktemp("cli")) / "walks"
    small_dataset(folder)
    return folder


def test_a_run_is_trained_gone_on_with_and_used(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["train", "generator", "small", "--data", str(data), "-o", str(tmp_path / "run"), "--device", "cpu", *TINY]
    assert main([*run, "--minutes", "0.0001"]) == 0
    assert "not at its end: go on with --resume" in capsys.readouterr().out
    assert main([*run, "--resume"]) == 0
    told = capsys.readouterr()
    assert told.out == f"{tmp_path / 'run'}/model: trained\n"
    assert "step 4 of 4: loss " in told.err
    assert [row["step"] for row in read_log(tmp_path / "run")][-1] == 4
    drawn = ["generate", "", "-o", str(tmp_path / "drawn.npz"), "--model", str(tmp_path / "run" / "model"), "--seconds", "1", "--steps", "2"]
    assert main(drawn) == 0
    assert (tmp_path / "drawn.npz").is_file()
    again = ["train", "generator", "small", "--data", str(data), "-o", str(tmp_path / "next"), "--device", "cpu", *TINY]
    assert main([*again, "--begin-with", str(tmp_path / "run" / "model")]) == 0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["dancer", "small"], "there is no training of 'dancer'; choose generator"),
        (["generator", "huge"], "there is no generator of size 'huge'; choose tiny, small, base, large."),
        (["generator", "small", "--set", "batch=x"], "batch=x: a whole number is needed."),
        (["generator", "small", "--ablation", "no-legs"], "there is no ablation 'no-legs'; choose full, one-stage"),
        (["tmr", "small", "--ablation", "one-stage"], "ablations are of generators; leave --ablation out for 'tmr'."),
        (["tmr", "small", "--begin-with", "data"], "there is no model 'data'."),
        (["generator", "small", "--minutes", "0"], "a run of 0 minutes does nothing; give more than 0, or leave it out."),
        (["generator", "small", "--minutes", "nan"], "a run of nan minutes does nothing; give more than 0, or leave it out."),
        (["generator", "small", "--device", "abacus"], "'abacus' is no device; use cpu, cuda, cuda:1 or auto."),
        (["generator", "small", "--begin-with", "/nowhere"], "there is no model '/nowhere'."),
    ],
)
def test_calls_that_cannot_be_run_get_a_sentence(changes: list[str], sentence: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *changes, "--data", str(data), "-o", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert told.startswith("bunraku: ")
    assert sentence in told
    assert not (tmp_path / "run").exists()


def test_a_dataset_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "generator", "small", "--data", str(tmp_path / "none"), "-o", str(tmp_path / "run")]) == 2
    assert "there is no dataset" in capsys.readouterr().err
