"""What a source of motion is to the converter: a list of recordings, and a way to read one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bunraku.datasets.clip import About, Caption, Split
from bunraku.kinematics.motion import Motion

FPS = 30.0  # of every dataset


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A caption as its source gives it: in seconds of the recording, whatever its frame rate."""

    text: str
    start: float = 0.0  # [s]
    stop: float = float("inf")  # [s]; beyond the end: to the end
    mirrored: bool = False
    source: str = ""
    weight: float = 1.0

    def on_frames(self, frames: int) -> Caption:
        """In frames of the dataset; may be empty, where it lies beyond the recording."""
        start, stop = (round(min(max(seconds, 0.0) * FPS, frames)) for seconds in (self.start, self.stop))
        return Caption(text=self.text, start=start, stop=stop, mirrored=self.mirrored, source=self.source, weight=self.weight)


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One recording, before anything of it is read."""

    name: str  # unique in its source
    split: Split
    captions: tuple[Heard, ...]
    category: str = ""
    subject: str = ""
    about_frames: int = 0  # how long it roughly is, for the progress bar and to begin with the longest


@runtime_checkable
class Source(Protocol):
    """Sources are sent to worker processes: they hold paths, and read when asked."""

    @property
    def about(self) -> About: ...

    def recordings(self) -> Sequence[Recording]:
        """All of them, in the order they should have in the dataset."""
        ...

    def unusable(self) -> Sequence[tuple[str, str]]:
        """What the source lists but cannot be converted: (name, why). Captions without motion, and the reverse."""
        ...

    def load(self, recording: Recording) -> Motion:
        """The motion of one recording on its own body, at its own frame rate."""
        ...
