"""Films on disk, read back: frames, rate, size and colours; nothing half-written; one sentence for what cannot be."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bunraku.errors import BadValue, FileProblem
from bunraku.files.video import save_film
from bunraku.film.actors import perform
from bunraku.film.film import Film, film
from tests.film.film_bodies import cube, moved, walker

av = pytest.importorskip("av")


def small(fps: float = 10.0, frames: int = 13, size: tuple[int, int] = (64, 48)) -> Film:
    return film(perform(moved([[0.1 * i, 0.5, 0.0] for i in range(frames)], fps), cube()), size=size, camera="front")


@pytest.mark.parametrize("fps", [1.0, 10.0, 23.976, 60.0])
def test_an_mp4_has_every_frame_at_its_rate(tmp_path: Path, fps: float) -> None:
    made = small(fps)
    save_film(made, tmp_path / "a b.mp4")
    with av.open(str(tmp_path / "a b.mp4")) as container:
        stream = container.streams.video[0]
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
        assert (stream.width, stream.height, stream.codec_context.pix_fmt) == (64, 48, "yuv420p")
        assert float(stream.average_rate) == pytest.approx(fps, rel=1e-4)
        assert container.duration / 1e6 == pytest.approx(13 / fps, rel=1e-3)
    assert len(frames) == 13
    for shown, drawn in zip(frames, made.frames(), strict=True):
        assert np.abs(shown.astype(int) - drawn.astype(int)).mean() < 4
    data = (tmp_path / "a b.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")  # players on the web begin at once


def test_a_gif_has_every_frame_and_loops(tmp_path: Path) -> None:
    save_film(small(30.0), tmp_path / "a.gif")
    with Image.open(tmp_path / "a.gif") as picture:
        assert picture.n_frames == 13
        assert picture.info["loop"] == 0
        shown = []
        for frame, drawn in enumerate(small(30.0).frames()):
            picture.seek(frame)
            shown.append(picture.info["duration"])
            assert np.abs(np.asarray(picture.convert("RGB"), dtype=int) - drawn).mean() < 6
    assert sum(shown) == pytest.approx(1000 * 13 / 30, abs=10)
    assert set(shown) <= {30, 40}


def test_a_png_is_a_contact_sheet(tmp_path: Path) -> None:
    save_film(small(), tmp_path / "a.png", tiles=3)
    assert Image.open(tmp_path / "a.png").size == (3 * 67 - 3, 48)


def test_a_single_frame_is_a_film_too(tmp_path: Path) -> None:
    for name in ("a.mp4", "a.gif", "a.png"):
        save_film(small(frames=1), tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[float] = []
    save_film(small(frames=4), tmp_path / "a.mp4", on_progress=told.append)
    assert told == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("name", ["a.mp4", "a.gif", "a.png"])
def test_nothing_half_written_is_left(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).write_bytes(b"before")

    def breaks(self: Film, chosen: object = None):
        yield np.zeros((48, 64, 3), dtype=np.uint8)
        raise KeyboardInterrupt

    monkeypatch.setattr(Film, "frames", breaks)
    with pytest.raises(KeyboardInterrupt):
        save_film(small(), tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"before"


def test_what_no_film_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadValue, match="both sides must be even, such as 64x50"):
        save_film(small(size=(64, 49)), tmp_path / "a.mp4")
    save_film(small(size=(63, 49), frames=2), tmp_path / "odd.gif")
    with pytest.raises(FileProblem, match=r"name a \.mp4 or \.gif"):
        save_film(small(), tmp_path / "a.avi")
    with pytest.raises(FileProblem, match="does not exist"):
        save_film(small(), tmp_path / "nowhere" / "a.mp4")
    with pytest.raises(BadValue, match="1 to 50"):
        save_film(small(fps=60.0), tmp_path / "a.gif")
    with pytest.raises(BadValue, match="1 to 120"):
        save_film(small(fps=0.5), tmp_path / "a.mp4")
    monkeypatch.setitem(sys.modules, "av", None)
    monkeypatch.setattr("bunraku.files.video.find_spec", lambda name: None)
    with pytest.raises(FileProblem, match=r"pip install 'bunraku\[video\]'"):
        save_film(small(), tmp_path / "a.mp4")
    assert [path.name for path in tmp_path.iterdir()] == ["odd.gif"]


def test_a_walk_on_the_human(tmp_path: Path) -> None:
    save_film(film(perform(walker(0.4)), size=(64, 64)), tmp_path / "walk.gif")
    assert Image.open(tmp_path / "walk.gif").n_frames == 4
