"""Videos are read as they were written: how many frames, how fast, in which colours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bunraku.errors import BunrakuError
from bunraku.files.video_read import load_video


def pictures(count: int = 6) -> list[np.ndarray]:
    """A grey that grows from frame to frame, left half red."""
    made = []
    for i in range(count):
        picture = np.full((16, 32, 3), 40 + 30 * i, dtype=np.uint8)
        picture[:, :16] = (200, 20, 20)
        made.append(picture)
    return made


def write(path: Path, frames: list[np.ndarray], fps: int = 10) -> Path:
    if path.suffix == ".gif":
        first, *others = (Image.fromarray(frame) for frame in frames)
        first.save(path, save_all=True, append_images=others, duration=1000 // fps, loop=0)
        return path
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=fps)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 32, 16, "yuv420p", 4_000_000
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    return path


@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_frames_rate_and_colours_come_back(suffix: str, tmp_path: Path) -> None:
    found = load_video(write(tmp_path / f"film{suffix}", pictures()))
    assert len(found) == 6
    assert found.fps == pytest.approx(10)
    away = np.abs(found.pictures.astype(int) - np.stack(pictures()))
    assert away.mean() < 6


def test_another_rate_and_size(tmp_path: Path) -> None:
    found = load_video(write(tmp_path / "film.gif", pictures()))
    half = found.at(3, 5.0, (16, 8))
    assert tuple(half.shape) == (3, 8, 16, 3)
    assert [round(float(frame[4, 12, 0]) * 255) for frame in half] == [40, 100, 160]
    with pytest.raises(BunrakuError, match="Ask for fewer seconds"):
        found.at(10, 5.0, (16, 8))


@pytest.mark.parametrize("name", ["film.mp4", "film.gif"])
@pytest.mark.parametrize("content", [b"", b"nonsense" * 20])
def test_what_is_no_video_gets_its_sentence(name: str, content: bytes, tmp_path: Path) -> None:
    if name.endswith(".mp4"):
        pytest.importorskip("av")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BunrakuError, match=name):
        load_video(tmp_path / name)
    with pytest.raises(BunrakuError, match="missing"):
        load_video(tmp_path / "missing.mp4")
