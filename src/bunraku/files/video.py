"""Films on disk: MP4 through PyAV, GIF and contact sheets (PNG) through Pillow. Nothing half-written is left behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from bunraku.errors import BadValue, FileProblem
from bunraku.files.disk import require_writable, write_atomically
from bunraku.film.film import Film
from bunraku.film.tiles import film_sheet

Progress = Callable[[float], None] | None
FASTEST = {".mp4": 120.0, ".gif": 50.0}  # [frames per second] viewers slow a GIF down whose frames last less than 0.02 s
SLOWEST = 1.0
_QUALITY = {"crf": "19", "preset": "veryfast"}
_BT601, _LIMITED = 6, 1  # how libswscale turns RGB into YUV; players would otherwise guess by the size
_PALETTE_FRAMES = 8


def film_suffix(path: str | os.PathLike[str]) -> str:
    """.mp4, .gif or .png; raises for anything else, where nothing can be written, and where the extra for it is missing."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".mp4", ".gif", ".png"):
        raise FileProblem(f"'{path}' has no suffix of a film; name a .mp4 or .gif, or a .png for a contact sheet.")
    if suffix == ".mp4" and find_spec("av") is None:
        raise FileProblem(f"'{path}': writing MP4 needs PyAV; pip install 'bunraku[video]', or name a .gif.")
    require_writable(path)
    return suffix


def check_rate(fps: float, suffix: str) -> None:
    """Raises if a film cannot have so many frames per second."""
    fastest = FASTEST.get(suffix, FASTEST[".mp4"])
    if not SLOWEST <= fps <= fastest:
        raise BadValue(f"a {suffix} of {fps:g} frames per second cannot be made; choose {SLOWEST:g} to {fastest:g}, such as 30.")


def save_film(film: Film, path: str | os.PathLike[str], *, tiles: int = 8, on_progress: Progress = None) -> None:
    """Draws and writes all frames of a film, or for a .png `tiles` of them."""
    suffix = film_suffix(path)
    if suffix == ".png":
        sheet = film_sheet(film, tiles, on_progress)
        write_atomically(path, lambda temporary: sheet.save(temporary, format="PNG", optimize=True))
        return
    check_rate(film.fps, suffix)
    write = _write_mp4 if suffix == ".mp4" else _write_gif
    write_atomically(path, lambda temporary: write(film, temporary, on_progress))


def _counted(film: Film, on_progress: Progress) -> Iterator[UInt8[np.ndarray, "H W 3"]]:
    for done, frame in enumerate(film.frames(), start=1):
        yield frame
        if on_progress is not None:
            on_progress(done / len(film))


def _write_mp4(film: Film, path: Path, on_progress: Progress) -> None:
    width, height = film.camera.width, film.camera.height
    if width % 2 or height % 2:
        raise BadValue(f"an .mp4 of {width} × {height} pixels cannot be made; both sides must be even, such as {width + width % 2}x{height + height % 2}.")
    import av

    with av.open(str(path), "w", format="mp4", options={"movflags": "faststart"}) as container:
        stream: Any = container.add_stream("libx264", rate=Fraction(film.fps).limit_denominator(1001), options=_QUALITY)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.codec_context.colorspace, stream.codec_context.color_range = _BT601, _LIMITED
        for image in _counted(film, on_progress):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())


def _write_gif(film: Film, path: Path, on_progress: Progress) -> None:
    palette = _palette(film)
    frames = (Image.fromarray(image).quantize(palette=palette, dither=Image.Dither.NONE) for image in _counted(film, on_progress))
    first = next(frames)
    first.save(path, format="GIF", save_all=True, append_images=frames, duration=_durations(len(film), film.fps), loop=0, disposal=1)


def _palette(film: Film) -> Image.Image:
    """256 colours for the whole film: one palette for all frames, so that what stands still does not flicker."""
    chosen = sorted({round(i) for i in np.linspace(0, len(film) - 1, _PALETTE_FRAMES)})
    return Image.fromarray(np.concatenate(list(film.frames(chosen)))).quantize(256, method=Image.Quantize.MEDIANCUT)


def _durations(frames: int, fps: float) -> list[int]:
    """How long each frame is shown [ms]: a GIF counts hundredths of a second, and the whole must not drift."""
    ends = [round(100 * (frame + 1) / fps) for frame in range(frames)]
    return [10 * (end - start) for start, end in zip([0, *ends], ends, strict=False)]
