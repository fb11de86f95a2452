"""`bunraku render` as a user types it: what it makes of each kind of file, and one sentence per mistake."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

import bunraku
from bunraku.cli import main
from bunraku.errors import BadValue
from tests.film.film_bodies import walker

SMALL = ("--size", "48x40")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("to be filmed")
    motion = walker(0.5)
    bunraku.save_motion(motion, folder / "walk.npz")
    bunraku.save_motion(motion, folder / "walk.bvh")
    bunraku.save_motion(bunraku.retarget(motion, "smplx22"), folder / "walk.glb")
    bunraku.save_character(bunraku.mannequin(bunraku.skeleton("cmu23")), folder / "still.glb")
    (folder / "empty.npz").write_bytes(b"")
    return folder


def render(*words: object) -> int:
    return main(["render", *map(str, words)])


@pytest.mark.parametrize("suffix", ["mp4", "gif", "png"])
def test_every_format(files: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    if suffix == "mp4":
        pytest.importorskip("av")
    assert render(files / "walk.npz", "-o", tmp_path / f"a.{suffix}", *SMALL) == 0
    assert f"a.{suffix}: 5 frames at 10 fps, 48 × 40 px, performed by 'SOMA body'" in capsys.readouterr().out
    assert (tmp_path / f"a.{suffix}").stat().st_size > 500


@pytest.mark.parametrize("camera", ["follow", "front", "side", "three-quarter", "orbit"])
def test_every_camera(files: Path, tmp_path: Path, camera: str) -> None:
    assert render(files / "walk.bvh", "-o", tmp_path / "a.png", *SMALL, "--camera", camera, "--frames", 2, "--background", "navy") == 0
    assert Image.open(tmp_path / "a.png").size == (2 * 51 - 3, 40)


def test_a_character_s_own_animation_and_a_motion_on_a_character(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(files / "walk.glb", "-o", tmp_path / "a.gif", *SMALL, "--clip", 0) == 0
    assert "5 frames at 10 fps" in capsys.readouterr().out
    assert render(files / "walk.npz", "--character", files / "still.glb", "-o", tmp_path / "b.gif", *SMALL) == 0
    assert "performed by 'still'" in capsys.readouterr().out


def test_a_still_character_turns_round(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(files / "still.glb", "-o", tmp_path / "a.png", *SMALL) == 0
    assert "300 frames at 30 fps" in capsys.readouterr().out
    assert Image.open(tmp_path / "a.png").size == (4 * 51 - 3, 2 * 43 - 3)


def test_another_frame_rate_lasts_as_long(files: Path, tmp_path: Path) -> None:
    assert render(files / "walk.npz", "-o", tmp_path / "a.gif", *SMALL, "--fps", 25) == 0
    with Image.open(tmp_path / "a.gif") as picture:
        assert picture.n_frames == 11  # nothing is invented beyond the last frame, at 0.4 s


def test_splats(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bunraku.film import splat_frames

    quick = splat_frames.from_mesh
    monkeypatch.setattr(splat_frames, "from_mesh", lambda character, on_progress=None: quick(character, views=0, count=300))
    assert render(files / "walk.glb", "-o", tmp_path / "a.png", *SMALL, "--splats", "--frames", 2) == 0
    assert Image.open(tmp_path / "a.png").size == (2 * 51 - 3, 40)


def test_python_has_the_same_door(files: Path, tmp_path: Path) -> None:
    made = bunraku.render(files / "walk.npz", tmp_path / "a.gif", files / "still.glb", camera="side", size=(40, 40))
    assert len(made) == 5
    assert made.performance.character.name == "still"
    motion = bunraku.load_motion(files / "walk.npz")
    assert len(bunraku.render(motion, tmp_path / "b.png", size=(40, 40), frames=2)) == 5
    character = bunraku.load_character(files / "still.glb")
    assert bunraku.render(character, tmp_path / "c.png", size=(40, 40), frames=2).performance.character is character


def test_python_says_what_is_wrong(files: Path, tmp_path: Path) -> None:
    motion = bunraku.load_motion(files / "walk.npz")
    broken = motion.root_position.clone()
    broken[2, 1] = float("nan")
    with pytest.raises(BadValue, match="not finite at frame 2"):
        bunraku.render(replace(motion, root_position=broken), tmp_path / "a.gif")
    with pytest.raises(BadValue, match="a film has no 'colour'; it has camera, size"):
        bunraku.render(motion, tmp_path / "a.gif", colour="red")  # type: ignore[call-arg]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--size", "0x48"), "0 × 48 pixels cannot be made; each side needs 16 to 4096"),
        (("--size", "9999999x48"), "each side needs 16 to 4096"),
        (("--size", "big"), "'big' is no size"),
        (("--size", "47x33"), "both sides must be even, such as 48x34"),
        (("--camera", "top"), "no camera 'top'; choose follow"),
        (("--background", "nothing"), "'nothing' is no colour"),
        (("--fps", "0"), "0 frames per second cannot be made"),
        (("--fps", "1e9"), "choose 1 to 120"),
        (("--fps", "nan"), "choose 1 to 120"),
        (("--clip", "run"), "holds one motion|numbered from 0"),
        (("--character", "nowhere.glb"), "no file 'nowhere.glb'"),
        (("--character", "walk.npz"), "walk.npz"),
    ],
)
def test_mistakes_cost_one_sentence(files: Path, tmp_path: Path, words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    import re

    pytest.importorskip("av")
    assert render(files / "walk.npz", "-o", tmp_path / "a.mp4", *words) == 2
    error = capsys.readouterr().err
    assert re.search(sentence, error)
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("source", "target", "sentence"),
    [
        ("empty.npz", "a.gif", "empty.npz"),
        ("nothing.bvh", "a.gif", "no file"),
        ("walk.npz", "a.avi", "name a .mp4 or .gif"),
        ("walk.npz", "no/folder/a.gif", "does not exist"),
        ("walk.npz", "a", "no suffix of a film"),
    ],
)
def test_files_that_cannot_be(files: Path, tmp_path: Path, source: str, target: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(files / source, "-o", tmp_path / target) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("tiles", ["0", "1000"])
def test_sheets_of_no_or_too_many_pictures(files: Path, tmp_path: Path, tiles: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(files / "walk.npz", "-o", tmp_path / "a.png", "--frames", tiles) == 2
    assert "1 to 64 pictures" in capsys.readouterr().err
