"""`bunraku animate`: every way in, on tiny inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunraku import api
from bunraku.cli import main
from tests.splats.puppet import puppet
from tests.test_animating import gif


@pytest.fixture
def character(tmp_path: Path) -> str:
    api.save_character(puppet(), tmp_path / "puppet.glb")
    return str(tmp_path / "puppet.glb")


def test_a_video_is_matched_kept_and_gone_on_with(character: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    film, out, run = str(gif(tmp_path / "film.gif")), str(tmp_path / "out.glb"), str(tmp_path / "run")
    asked = ["animate", character, "it waves", "--from-video", film, "-o", out, "--seconds", "0.5", "--size", "16x16", "--run", run]
    assert main([*asked, "--iterations", "2"]) == 0
    assert "4 frames at 8 fps" in capsys.readouterr().out
    assert api.load_character(out).clips == ("it waves",)
    assert list((tmp_path / "run" / "previews").glob("*.png"))
    assert main([*asked, "--iterations", "2", "--resume"]) == 0
    assert main([*asked, "--iterations", "3", "--resume"]) == 2
    assert "iterations: 3, was 2" in capsys.readouterr().err


def test_the_first_frame_is_written(character: str, tmp_path: Path) -> None:
    assert main(["animate", character, "--first-frame", str(tmp_path / "first.png"), "--size", "32x32"]) == 0
    assert (tmp_path / "first.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["it waves", "-o", "{}/o.glb"], "name one of them"),
        (["it waves"], "Name a file with -o"),
        (["it waves", "-o", "{}/o.xyz", "--prior", "ltx"], "o.xyz"),
        (["it waves", "-o", "{}/o.glb", "--prior", "sora"], "there is no prior 'sora'"),
        (["it waves", "-o", "{}/o.glb", "--prior", "ltx", "--resume"], "--resume needs the folder"),
        (["it waves", "-o", "{}/o.glb", "--from-video", "{}/none.mp4"], "none.mp4"),
        (["it waves", "-o", "{}/o.glb", "--prior", "ltx", "--iterations", "0"], "iterations is 0"),
        (["it waves", "-o", "{}/o.glb", "--prior", "ltx", "--size", "big"], "is no size"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(character: str, words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["animate", character, *(word.format(tmp_path) for word in words)]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "o.glb").exists()
