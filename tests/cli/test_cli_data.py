"""`bunraku data` as a user types it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import bunraku
from bunraku.cli import main
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.walk import walk


@pytest.fixture(scope="module")
def takes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("takes")
    bunraku.save_motion(walk(skeleton("soma30"), seconds=2.0), folder / "walk.bvh")
    (folder / "broken.bvh").write_text("HIERARCHY\n")
    (folder / "captions.csv").write_text("file,text,split\nwalk.bvh,A person walks to the left.,train\nbroken.bvh,A person breaks.,val\n")
    assert run("data", "build", "folder", folder, "--captions", folder / "captions.csv", "-o", folder / "d", "--workers", "1") == 0
    return folder


def run(*words: object) -> int:
    return main([str(word) for word in words])


def test_info_says_what_is_there_and_what_is_not(takes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("data", "info", takes / "d") == 0
    out = capsys.readouterr().out
    assert "train       1 clips" in out
    assert "left out" in out
    assert "nothing is in the split val and test" in out
    assert run("data", "info", takes / "d", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["clips"], facts["captions"], facts["empty splits"]) == (1, 1, ["val", "test"])


def test_pack_and_paraphrase(takes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("data", "pack", takes / "d", "-o", takes / "d.pack") == 0
    assert run("data", "info", takes / "d.pack") == 0
    assert "1 clips" in capsys.readouterr().out
    answer = "import json,sys\nfor line in sys.stdin: print(json.dumps({'paraphrases': ['Someone heads to the left.']}), flush=True)\n"
    (takes / "model.py").write_text(answer)
    assert run("data", "paraphrase", takes / "d", "--command", f"{sys.executable} {takes / 'model.py'}") == 0
    assert "1 paraphrases of 1 sentences" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("build", "folder", "TAKES", "-o", "x"), "needs captions"),
        (("build", "kit", "TAKES", "-o", "x"), "no kind of source"),
        (("build", "cmu", "TAKES", "-o", "x"), "is missing"),
        (("info", "TAKES"), "is no dataset"),
        (("info", "TAKES/nowhere"), "there is no dataset"),
        (("build", "folder", "TAKES", "--captions", "TAKES/captions.csv", "-o", "TAKES/d"), "already holds a finished dataset"),
    ],
)
def test_mistakes_are_one_sentence(takes: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("data", *(word.replace("TAKES", str(takes)) for word in words)) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1
