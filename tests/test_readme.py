"""README's promises: the example runs, and then every command and the Python lines run as printed."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest

from bunraku.cli import main, parser
from bunraku.generator.checkpoint import Model, save_model
from tests.generator.tiny import walker

TAKES_HOURS = ("data", "train", "evaluate", "--prior", "--from-video")  # commands with one of these words are only parsed
ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `make demo` has just been run."""
    folder = tmp_path_factory.mktemp("newcomer")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["01_retarget_a_walk.py", str(folder / "demo")])
        runpy.run_path(str(ROOT / "examples" / "01_retarget_a_walk.py"))
    return folder


def test_the_demo_writes_what_it_says(demo: Path) -> None:
    assert {path.name for path in (demo / "demo").iterdir()} >= {"walk.bvh", "walk.glb", "walk.png", "walk-g1.csv"}


def test_commands_and_lines_work_as_printed(demo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(demo)
    commands = [shlex.split(command, comments=True) for command in re.findall(r"^bunraku (.*)$", README, flags=re.M)]
    runnable = [command for command in commands if not set(command) & set(TAKES_HOURS)]
    assert len(runnable) >= 9
    save_model(Model(name="random", denoiser=walker(), text_encoder="none"), demo / "CHECKPOINT")
    for command in runnable:
        assert main(command) == 0, command
    for command in commands:
        assert parser().parse_args(command), command
    lines = re.search(r"```python\n(.*?)```", README, flags=re.S)
    assert lines is not None
    exec(lines[1], {})
    assert "cm/s" in capsys.readouterr().out
    assert (demo / "demo" / "performed.png").stat().st_size > 10_000


def test_the_second_example(demo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["02_read_any_motion.py", str(demo / "demo" / "walk.bvh"), str(demo / "cut.npz")])
    runpy.run_path(str(ROOT / "examples" / "02_read_any_motion.py"))
    assert "highest left hand" in capsys.readouterr().out
    assert (demo / "cut.npz").exists()


def test_it_is_short() -> None:
    assert README.count("\n") <= 140
