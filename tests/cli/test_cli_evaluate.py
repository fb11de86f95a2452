"""`bunraku evaluate` as a user types it: options arrive, the report is there, and mistakes are said in a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import bunraku
from bunraku.cli import main
from bunraku.datasets.build import build
from bunraku.datasets.clip import About
from bunraku.datasets.source import Heard, Recording
from bunraku.generator.checkpoint import Model, save_model
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.walk import walk
from tests.generator.tiny import denoiser_of


class TwoWalks:
    about = About(name="two walks", licence="CC0-1.0", credits=("Made from formulas.",))

    def recordings(self) -> list[Recording]:
        return [Recording(name=name, split="test", captions=(Heard(text=f"{name}."),), about_frames=100) for name in ("strolls", "strides")]

    def unusable(self) -> list[tuple[str, str]]:
        return []

    def load(self, recording: Recording) -> Motion:
        return walk(bunraku.skeleton("soma30"), seconds=3.2, speed=0.8 if recording.name == "strolls" else 1.4)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    place = tmp_path_factory.mktemp("evaluate and ü")
    build(TwoWalks(), place / "data", workers=1)
    for name in ("soma30", "g1"):
        save_model(Model(name=f"tiny-{name}", denoiser=denoiser_of(name), text_encoder="none"), place / name)
    return place


@pytest.fixture(autouse=True)
def _one_report_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    report = bunraku.check(bunraku.walk(bunraku.skeleton("soma30"), seconds=0.5))
    monkeypatch.setattr("bunraku.generator.generate.check", lambda _: report)


def test_a_report_is_written(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [place / "soma30", "--data", place / "data", "-o", tmp_path / "report", "--suite", "text,root/path_2dpos", "--cases", 1, "--text-cases", "all"]
    assert main(["evaluate", *map(str, [*words, "--steps", 1, "--sheets", 1, "--seed", 5, "--device", "cpu"])]) == 0
    said = capsys.readouterr()
    assert "constraints/withtext (1 cases)" in said.out
    assert "report.md" in said.out
    assert "no retriever comes with this version" in said.err
    data = json.loads((tmp_path / "report" / "report.json").read_text())
    assert (data["model"], data["settings"]["seed"], data["settings"]["text_cases"]) == ("tiny-soma30", 5, None)
    assert data["sampling"].startswith("dpm, 1 steps")
    assert {group["name"]: group["cases"] for group in data["groups"]}["text"] == 2
    assert "random clip" in data["notes"]  # there is no training data
    assert (tmp_path / "report" / "cases" / "text" / "0000.json").is_file()
    assert len(list((tmp_path / "report" / "sheets").iterdir())) == 1


BAD: dict[str, tuple[list[str], str]] = {
    "no data": (["MODEL", "-o", "OUT"], "one of the arguments --data --benchmark is required"),
    "both": (["MODEL", "-o", "OUT", "--data", "DATA", "--benchmark", "DATA"], "not allowed with argument"),
    "no dataset": (["MODEL", "-o", "OUT", "--data", "MODEL"], "is no dataset"),
    "no model": (["nobody", "-o", "OUT", "--data", "DATA"], "there is no model 'nobody'"),
    "empty split": (["MODEL", "-o", "OUT", "--data", "DATA", "--split", "val"], "no clips in the split 'val'"),
    "another skeleton": (["G1", "-o", "OUT", "--data", "DATA"], "moves 'g1'"),
    "unknown family": (["MODEL", "-o", "OUT", "--data", "DATA", "--suite", "text,wings"], "no suite or family 'wings'"),
    "empty suite": (["MODEL", "-o", "OUT", "--data", "DATA", "--suite", ","], "there is nothing to evaluate"),
    "text cases": (["MODEL", "-o", "OUT", "--data", "DATA", "--text-cases", "many"], "--text-cases is a number, or all; got 'many'"),
    "report": (["MODEL", "-o", "FILE", "--data", "DATA"], "cannot be used"),
    "tmr": (["MODEL", "-o", "OUT", "--data", "DATA", "--tmr", "MODEL"], "describes a generator"),
    "steps": (["MODEL", "-o", "OUT", "--data", "DATA", "--steps", "0"], "0 steps cannot be taken"),
    "benchmark": (["MODEL", "-o", "OUT", "--benchmark", "DATA"], "holds no released test cases"),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_are_one_line_and_leave_no_report(place: Path, tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, said = BAD[case]
    (tmp_path / "file").write_text("")
    named = {"MODEL": place / "soma30", "G1": place / "g1", "DATA": place / "data", "OUT": tmp_path / "out", "FILE": tmp_path / "file"}
    try:
        status = main(["evaluate", *(str(named.get(word, word)) for word in words)])
    except SystemExit as stop:
        status = int(stop.code or 0)
    assert status == 2
    err = capsys.readouterr().err
    assert said in err, err
    assert not (tmp_path / "out" / "report.json").exists()
