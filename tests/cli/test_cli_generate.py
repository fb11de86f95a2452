"""`bunraku generate` as a user types it: every option arrives, files are named and filled, and mistakes touch nothing."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import bunraku
from bunraku.cli import main
from bunraku.evaluate.report import Report
from bunraku.generator.checkpoint import Model, save_model
from bunraku.kinematics.motion import Motion
from bunraku.timeline import RootPath
from tests.generator.tiny import denoiser_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models and ü")
    for name in ("soma30", "g1"):
        save_model(Model(name=f"tiny-{name}", denoiser=denoiser_of(name), text_encoder="none", max_seconds=2.0), folder / name)
    (folder / "half").mkdir()
    for part in ("model.json", "model.safetensors"):
        data = (folder / "soma30" / part).read_bytes()
        (folder / "half" / part).write_bytes(data if part == "model.json" else data[: len(data) // 2])
    bunraku.save_motion(bunraku.walk(bunraku.skeleton("soma77"), seconds=1.0), folder / "walk.npz")
    bunraku.save_character(bunraku.mannequin(bunraku.skeleton("smplx22")), folder / "hero.glb")
    bunraku.timeline.save_constraints([RootPath(frames=torch.tensor([20]), xz=torch.tensor([[0.0, 0.8]]))], folder / "c.json", form="kimodo")
    (folder / "broken.json").write_text('[{"type": "root2d", "frame_indices": [3]}]')
    prompts = [{"text": "walks.", "seconds": 0.5}, {"text": "waves.", "seconds": 0.3}]
    scene = {"bunraku_timeline": 1, "prompts": prompts, "seed": 9, "samples": 2, "steps": 2, "guidance": {"text": 1.5}}
    (folder / "scene.json").write_text(json.dumps(scene))
    return folder


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _one_report_for_all(request: pytest.FixtureRequest, report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measuring takes longer than drawing here; tests that look at reports are marked."""
    if request.node.get_closest_marker("reports") is None:
        monkeypatch.setattr("bunraku.generator.generate.check", lambda _: report)


@pytest.fixture(scope="module")
def report(folder: Path) -> Report:
    return bunraku.check(bunraku.load_motion(folder / "walk.npz"))


def run(folder: Path, *words: object, model: str = "soma30", steps: int | None = 1, raw: bool = True) -> int:
    more = [*(["--steps", steps] if steps else []), *(["--no-cleanup"] if raw else [])]
    return main(["generate", *map(str, [*words, "--model", folder / model, *more])])


def made(name: str) -> Motion:
    return bunraku.load_motion(name)


@pytest.mark.reports
def test_words_become_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "A person walks.", "waves.@0.5", "-o", "w.npz", "--seconds", "0.7", "--seed", 3, raw=False) == 0
    motion = made("w.npz")
    assert (len(motion), motion.skeleton.name) == (36, "soma77")
    about = motion.provenance
    assert (about.prompt, about.seed, about.model, about.version) == ("A person walks. waves.", 3, "tiny-soma30", bunraku.__version__)
    said = capsys.readouterr()
    assert "w.npz: 36 frames at 30 fps, 77 joints of 'soma77'" in said.out
    assert "note: text: the words were not read: the text encoder is 'none'" in said.err


@pytest.mark.parametrize(("out", "model"), [("w.bvh", "soma30"), ("w.glb", "soma30"), ("w.csv", "g1"), ("w.npz", "g1")])
def test_the_suffix_chooses_the_format(folder: Path, out: str, model: str) -> None:
    assert run(folder, "walks.", "-o", out, "--seconds", 0.3, model=model) == 0
    motion = made(out)
    assert len(motion) == 9
    assert motion.provenance.prompt == "walks." or out.endswith(".glb")


def test_waiting_threads_leave_the_processor_to_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    assert run(folder, "a", "-o", "w.npz", "--seconds", 0.1) == 0
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
    monkeypatch.delenv("OMP_WAIT_POLICY")
    assert run(folder, "a", "-o", "w.npz", "--seconds", 0.1) == 0
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"


def test_samples_become_files_with_seeds_that_count_on(folder: Path) -> None:
    exact = ("--seconds", 0.4, "--precision", "float32")  # in bfloat16 a batch of another size is rounded otherwise
    assert run(folder, "walks.", "-o", "w.npz", "--samples", 3, "--seed", 5, *exact) == 0
    assert sorted(path.name for path in Path().iterdir()) == ["w_00.npz", "w_01.npz", "w_02.npz"]
    assert [made(f"w_0{i}.npz").provenance.seed for i in range(3)] == [5, 6, 7]
    assert run(folder, "walks.", "-o", "alone.npz", "--seed", 7, *exact) == 0
    assert (made("alone.npz").quats - made("w_02.npz").quats).abs().max() < 1e-4


@pytest.mark.reports
def test_the_best_of_several_is_one_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "walks.", "-o", "w.npz", "--samples", 2, "--best", "--seconds", 0.4) == 0
    assert [path.name for path in Path().iterdir()] == ["w.npz"]
    assert "kept seed" in capsys.readouterr().out


def test_a_timeline_says_all_and_options_outweigh_it(folder: Path) -> None:
    assert run(folder, "--timeline", folder / "scene.json", "-o", "w.npz", steps=None) == 0
    motion = made("w_01.npz")
    assert (len(motion), motion.provenance.seed) == (24, 10)
    assert motion.provenance.notes["sampling"] == "dpm, 2 steps, guidance separated (text 1.5, constraints 2)"
    options = ["--samples", 1, "--seed", 1, "--solver", "ddim", "--guidance-text", 3, "--guidance-constraint", 4]
    assert run(folder, "--timeline", folder / "scene.json", "-o", "v.npz", *options) == 0
    motion = made("v.npz")
    assert motion.provenance.seed == 1
    assert motion.provenance.notes["sampling"] == "ddim, 1 steps, guidance separated (text 3, constraints 4)"


def test_constraints_are_met_and_counted(folder: Path) -> None:
    assert run(folder, "walks.", "-o", "w.npz", "--constraints", folder / "c.json", "--seconds", 1) == 0
    assert made("w.npz").provenance.notes["constraints used"] == "1"


def test_a_motion_goes_on(folder: Path) -> None:
    assert run(folder, "stops.", "-o", "w.npz", "--continue", folder / "walk.npz", "--seconds", 0.5) == 0
    motion, old = made("w.npz"), made(str(folder / "walk.npz"))
    assert len(motion) == 45
    assert (motion.quats[:30] - old.quats).abs().max() < 1e-5


def test_heading_and_loop_arrive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {}
    real = bunraku.generate

    def listening(timeline, **more):  # type: ignore[no-untyped-def]
        asked.update(more, timeline=timeline)
        return real(timeline, **more)

    monkeypatch.setattr("bunraku.api.generate", listening)
    assert run(folder, "turns.", "-o", "w.npz", "--heading", 90, "--loop", "--seconds", 0.3, "--device", "cpu", "--precision", "bfloat16") == 0
    assert asked["timeline"].heading == pytest.approx(math.pi / 2)
    assert asked["timeline"].loop
    assert asked["cleanup"] is False
    assert next(asked["model"].model.denoiser.root_net.layers.parameters()).dtype == torch.bfloat16


@pytest.mark.parametrize("to", ["smplx22", "hero.glb"])
def test_the_result_can_be_put_on_another_body(folder: Path, to: str) -> None:
    assert run(folder, "walks.", "-o", "w.glb", "--to", folder / to if "." in to else to, "--seconds", 0.3) == 0
    assert set(made("w.glb").skeleton.joints) == set(bunraku.skeleton("smplx22").joints)


BAD: dict[str, tuple[list[str], str]] = {
    "no prompt": ([], "there is no prompt"),
    "suffix": (["walks.", "-o", "w.txt"], "no known suffix"),
    "folder out": (["walks.", "-o", "no/w.npz"], "does not exist"),
    "fbx": (["walks.", "-o", "w.fbx"], "read only"),
    "csv of soma": (["walks.", "-o", "w.csv"], "g1|hinge"),
    "time": (["walks.@0"], "cannot last 0 seconds"),
    "absurd time": (["walks.@1e9"], "cannot last 1e+09 seconds"),
    "seconds": (["walks.", "--seconds", "nan"], "cannot last nan seconds"),
    "samples": (["walks.", "--samples", "0"], "samples is 0"),
    "seed": (["walks.", "--seed", "-3"], "seed is -3"),
    "steps": (["walks.", "--steps", "0"], "0 steps cannot"),
    "guidance": (["walks.", "--guidance-text", "inf"], "weight of the text is inf"),
    "heading": (["walks.", "--heading", "nan"], "heading is nan"),
    "model": (["walks.", "--model", "nowhere"], "there is no model 'nowhere'. There is"),
    "truncated": (["walks.", "--model", "half"], "complete safetensors"),
    "no constraints": (["walks.", "--constraints", "nowhere.json"], "no file"),
    "broken constraints": (["walks.", "--constraints", "broken.json"], "smooth_root_2d"),
    "outside": (["walks.@0.2", "--constraints", "c.json"], "outside the clip"),
    "two sources": (["walks.", "--timeline", "scene.json"], "not from both"),
    "no timeline": (["--timeline", "nowhere.json"], "no file"),
    "encoder": (["walks.", "--text-encoder", "runes"], "no text encoder 'runes'"),
    "device": (["walks.", "--device", "abacus"], "no device"),
    "to": (["walks.", "--to", "octopus"], "neither a library skeleton"),
    "continue": (["walks.", "--continue", "nowhere.npz"], "no file"),
    "solver": (["walks.", "--solver", "euler"], "invalid choice"),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_get_one_sentence_and_touch_nothing(folder: Path, case: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    words, said = BAD[case]
    words = [*words, *([] if "-o" in words else ["-o", "w.npz"]), *([] if "--model" in words else ["--model", "soma30"])]
    try:
        status = main(["generate", *words])
    except SystemExit as stopped:
        status = stopped.code
    assert status == 2
    err = capsys.readouterr().err
    assert err.startswith("bunraku: ")
    assert err.count("\n") == 1
    assert any(part in err for part in said.split("|")), err
    assert sorted(folder.rglob("*")) == before


def test_without_a_model_the_sentence_says_how_to_name_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "walks.", "-o", "w.npz"]) == 2
    assert "Name one with --model" in capsys.readouterr().err


def test_what_a_prompt_lost_is_said_once(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bunraku.generator.ready.Generator._encoder", Wordy())
    assert run(folder, "walks " * 9, "-o", "w.npz", "--samples", 2, "--seconds", 0.2, "--text-encoder", "wordy") == 0
    err = capsys.readouterr().err
    assert err.count("text slots") == 1
    assert err.startswith("bunraku: warning: the prompt 'walks")
    assert "text slots" in made("w_01.npz").provenance.notes["cut text"]


class Wordy:
    """An encoder with one token a word."""

    def encode(self, texts: list[str]) -> object:
        from bunraku.generator.text.encoder import TextFeatures

        words = max(len(text.split()) for text in texts)
        mask = torch.ones(len(texts), words, dtype=torch.bool)
        return TextFeatures(tokens=torch.ones(len(texts), words, 24), mask=mask, pooled=torch.ones(len(texts), 24))


def test_importing_stays_light_and_the_timeline_is_reached_by_name() -> None:
    code = "import sys, bunraku; assert 'torch' not in sys.modules; bunraku.timeline.load_constraints; bunraku.timeline.Prompt"
    subprocess.run([sys.executable, "-c", code], check=True)
