"""The command as a user types it: every subcommand on small files, exit codes, one sentence per mistake, nothing half-written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bunraku
from bunraku.cli import main
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.walk import walk


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a folder with spaces and ü")
    motion = walk(skeleton("soma30"), seconds=1.0)
    for name in ("walk.npz", "walk.bvh", "walk.glb"):
        bunraku.save_motion(motion, folder / name)
    return folder


def run(*words: object) -> int:
    return main([str(word) for word in words])


@pytest.mark.parametrize("name", ["walk.npz", "walk.bvh"])
def test_info_says_what_a_motion_is(files: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("info", files / name) == 0
    out = capsys.readouterr().out
    assert "soma30" in out
    assert "left_foot: LeftFoot" in out
    assert run("info", files / name, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["frames"] == 30
    assert facts["joints"] == 30
    assert facts["prompt"] == "A person walks forward."


def test_info_says_what_a_character_is(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("info", files / "walk.glb", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["kind"] == "character"
    assert facts["animations"] == ["A person walks forward."]
    assert facts["vertices"] > 100


@pytest.mark.parametrize("suffix", ["npz", "bvh", "glb", "gltf", "usda"])
def test_convert_to_every_format_and_back(files: Path, tmp_path: Path, suffix: str) -> None:
    assert run("convert", files / "walk.npz", tmp_path / f"out.{suffix}") == 0
    assert run("convert", tmp_path / f"out.{suffix}", tmp_path / "back.npz") == 0
    before, after = (bunraku.load_motion(path) for path in (files / "walk.npz", tmp_path / "back.npz"))
    assert after.fps == pytest.approx(before.fps)
    p, q = (bunraku.forward_kinematics(motion).p_world_joint for motion in (before, after))
    order = [after.skeleton.index[name] for name in before.skeleton.joints]
    assert (p - q[:, order]).norm(dim=-1).max() < 1e-4


def test_convert_resamples_and_changes_the_skeleton(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("convert", files / "walk.npz", tmp_path / "w.npz", "--fps", 60, "--skeleton", "soma77") == 0
    assert "59 frames at 60 fps, 77 joints" in capsys.readouterr().out


def test_what_a_file_does_not_say_can_be_said(files: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.bvh"  # no side-car: rate and unit are the file's own
    foreign.write_bytes((files / "walk.bvh").read_bytes())
    assert run("convert", foreign, tmp_path / "w.npz", "--input-fps", 60, "--unit", 0.02) == 0
    plain, said = bunraku.load_motion(foreign), bunraku.load_motion(tmp_path / "w.npz")
    assert (len(said), said.fps) == (len(plain), 60)
    assert (said.root_position - 2 * plain.root_position).abs().max() < 1e-5


@pytest.mark.parametrize("to", ["soma77", "smplx22", "g1"])
def test_retarget_to_the_library(files: Path, tmp_path: Path, to: str) -> None:
    out = tmp_path / ("w.csv" if to == "g1" else "w.npz")
    assert run("retarget", files / "walk.bvh", "--to", to, "-o", out) == 0
    assert bunraku.load_motion(out).skeleton.name == to


def test_retarget_to_a_character_writes_into_its_own_document(files: Path, tmp_path: Path) -> None:
    bunraku.save_character(bunraku.mannequin(skeleton("smplx22")), tmp_path / "hero.glb")
    assert run("retarget", files / "walk.npz", "--to", tmp_path / "hero.glb", "-o", tmp_path / "hero walks.glb") == 0
    hero = bunraku.load_character(tmp_path / "hero walks.glb")
    assert list(hero.clips) == ["A person walks forward."]
    assert set(hero.skeleton.joints) == set(skeleton("smplx22").joints)


def test_check_prints_a_table_json_and_an_exit_code(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", files / "walk.npz") == 0
    assert "skate" in capsys.readouterr().out
    assert run("check", files / "walk.npz", "--json") == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    assert metrics["frames"] == 30
    assert run("check", files / "walk.npz", "--fail-on", "speed>100") == 0
    assert run("check", files / "walk.npz", "--fail-on", "speed<100") == 1


def test_check_says_which_of_several_animations_it_measured(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hero = bunraku.load_character(files / "walk.glb")
    bunraku.save_character(hero, tmp_path / "two.glb", bunraku.walk(hero.skeleton, seconds=2.0), clip="second")
    assert run("check", tmp_path / "two.glb") == 0
    assert "'A person walks forward.', the first of 2" in capsys.readouterr().err
    assert run("check", tmp_path / "two.glb", "--clip", "second", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["notes"].get("clip") is None
    assert said["metrics"]["duration"] == pytest.approx(2.0)


BAD = {
    "missing": (["info", "nowhere.bvh"], "no file"),
    "suffix": (["info", "note.txt"], "no known suffix"),
    "folder": (["info", "."], "folder"),
    "no suffix out": (["convert", "walk.npz", "out"], "no known suffix"),
    "read only": (["convert", "walk.npz", "out.fbx"], "read only"),
    "skeleton": (["convert", "walk.npz", "out.npz", "--skeleton", "soma31"], "no built-in skeleton|neither"),
    "fps": (["convert", "walk.npz", "out.npz", "--fps", "-3"], "positive"),
    "absurd fps": (["convert", "walk.npz", "out.npz", "--fps", "1e12"], "frames"),
    "absurd input fps": (["convert", "walk.bvh", "out.npz", "--input-fps", "1e300"], "no frame rate"),
    "ground": (["check", "walk.npz", "--ground", "nan"], "floor"),
    "long name": (["info", "n" * 300 + ".npz"], "too long"),
    "long name out": (["convert", "walk.npz", "n" * 300 + ".npz"], "too long"),
    "null character": (["info", "a\0b.npz"], "null"),
    "line break": (["info", "a\nb.npz"], "no file"),
    "clip": (["convert", "walk.glb", "out.npz", "--clip", "dance"], "dance"),
    "folder out": (["convert", "walk.npz", "no/such/folder/out.npz"], "does not exist"),
    "roles": (["check", "walk.npz", "--roles", "walk.npz"], "JSON|text"),
    "limit": (["check", "walk.npz", "--fail-on", "skates>3"], "did you mean 'skate'"),
    "truncated": (["info", "half.glb"], "half.glb"),
    "empty": (["info", "empty.bvh"], "empty.bvh"),
    "csv without hinges": (["convert", "walk.npz", "out.csv"], "g1|hinge"),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_get_one_sentence_and_touch_nothing(files: Path, case: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    (files / "note.txt").write_text("hello")
    (files / "half.glb").write_bytes((files / "walk.glb").read_bytes()[:1000])
    (files / "empty.bvh").write_text("")
    before = {path: path.read_bytes() for path in files.iterdir()}
    words, said = BAD[case]
    assert run(*words) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("bunraku: ")
    assert captured.err.count("\n") == 1
    assert any(part in captured.err for part in said.split("|")), captured.err
    assert {path: path.read_bytes() for path in files.iterdir()} == before


def test_wrong_arguments_get_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in ((["convert", "a.bvh", "b.bvh", "--fps", "many"], "invalid float value: 'many'"), (["info"], "required"), (["dance"], "invalid choice")):
        with pytest.raises(SystemExit) as stopped:
            run(*words)
        assert stopped.value.code == 2
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1
        assert said in captured.err
        assert captured.out == ""


def test_too_little_memory_is_said(files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def hungry(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("bunraku.api.describe", hungry)
    assert run("info", files / "walk.npz") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_debug_shows_where_an_error_arose() -> None:
    with pytest.raises(bunraku.BunrakuError):
        run("--debug", "info", "nowhere.bvh")


def test_help_answers_at_once_and_imports_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-X", "importtime", "-m", "bunraku.cli", "--help"], capture_output=True, text=True, check=True)
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines() if "|" in line}
    assert loaded.isdisjoint({"torch", "numpy", "scipy", "rich", "jaxtyping", "PIL"})
    for command in ("info", "convert", "retarget", "check"):
        assert command in done.stdout


def test_a_closed_pipe_is_no_error(files: Path) -> None:
    command = f"'{sys.executable}' -m bunraku.cli check '{files / 'walk.npz'}' | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env={**os.environ, "COLUMNS": "100"})
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
