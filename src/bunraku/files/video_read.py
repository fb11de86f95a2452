"""Videos and animated pictures as frames: MP4 and whatever else FFmpeg reads through PyAV, GIF and the like through Pillow."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image, ImageSequence, UnidentifiedImageError
from torch import Tensor

from bunraku.errors import BadValue, FileProblem, FormatProblem
from bunraku.files.disk import existing_file

MOST_PIXELS = 2_000_000_000  # over all frames: what is larger would fill the memory


@dataclass(frozen=True, kw_only=True, eq=False)
class VideoFrames:
    """F pictures, sRGB, at a steady rate."""

    pictures: UInt8[np.ndarray, "F H W 3"]
    fps: float

    def __len__(self) -> int:
        return len(self.pictures)

    def at(self, frames: int, fps: float, size: tuple[int, int]) -> Float[Tensor, "F H W 3"]:
        """The pictures shown at the first `frames` instants of a clip at another rate, scaled to width × height [px], values 0 to 1."""
        seconds = (len(self) - 1) / self.fps
        if (frames - 1) / fps > seconds + 1 / self.fps:
            raise BadValue(f"the video lasts {seconds + 1 / self.fps:.2f} s, but {frames / fps:.2f} s of it are asked for. Ask for fewer seconds.")
        shown = np.minimum(np.round(np.arange(frames) / fps * self.fps).astype(int), len(self) - 1)
        scaled = [np.asarray(Image.fromarray(self.pictures[i]).resize(size, Image.Resampling.BOX)) for i in shown]
        return torch.from_numpy(np.stack(scaled)).float() / 255


def load_video(path: str | os.PathLike[str]) -> VideoFrames:
    """All frames of a video."""
    path = existing_file(path)
    return _animated(path) if path.suffix.lower() in (".gif", ".webp", ".apng", ".png") else _film(path)


def _animated(path: Path) -> VideoFrames:
    try:
        with Image.open(path) as picture:
            _require_room(path, getattr(picture, "n_frames", 1), picture.size)
            lasting = [frame.info.get("duration", 100) or 100 for frame in ImageSequence.Iterator(picture)]
            frames = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(picture)]
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise FormatProblem(f"'{path}' cannot be read as pictures: {error}") from error
    return VideoFrames(pictures=np.stack(frames), fps=1000 * len(lasting) / sum(lasting))


def _film(path: Path) -> VideoFrames:
    if find_spec("av") is None:
        raise FileProblem(f"'{path}': reading videos needs PyAV; pip install 'bunraku[video]', or give a .gif.")
    import av
    from av.error import FFmpegError

    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                raise FormatProblem(f"'{path}' holds no pictures.")
            stream = container.streams.video[0]
            _require_room(path, stream.frames, (stream.width, stream.height))
            frames = []
            for frame in container.decode(stream):
                frames.append(frame.to_ndarray(format="rgb24"))
                _require_room(path, len(frames), (frame.width, frame.height))
            fps = float(stream.average_rate or 0)
    except FFmpegError as error:
        raise FormatProblem(f"'{path}' cannot be read as a video: {error.strerror}") from error
    if not frames or not fps > 0:
        raise FormatProblem(f"'{path}' holds no pictures at a known rate.")
    return VideoFrames(pictures=np.stack(frames), fps=fps)


def _require_room(path: Path, frames: int, size: tuple[int, int]) -> None:
    if frames * size[0] * size[1] > MOST_PIXELS:
        raise BadValue(f"'{path}' has {frames} frames of {size[0]} × {size[1]} pixels, more than memory should be filled with; scale or cut it first.")
