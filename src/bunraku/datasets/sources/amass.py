"""AMASS motion with HumanML3D's sentences.

HumanML3D's folder has `index.csv` (source_path, start_frame, end_frame, new_name) and `texts/000000.txt`, one sentence a line:
`caption#tokens#start#end`, the last two in seconds of the window, both 0 for all of it. A window is a range of frames of an AMASS
recording after that was thinned out to about 20 fps (every n-th frame, n = the whole part of fps / 20) and, for five collections,
after its first second or so was cut off. Names with an M are mirrored copies, which we make ourselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path, PurePosixPath
from typing import Any

from bunraku.datasets.clip import About, Split
from bunraku.datasets.source import Heard, Recording
from bunraku.datasets.sources.folder import drawn_split
from bunraku.datasets.sources.table import read_table
from bunraku.errors import BunrakuError, FileProblem, FormatProblem
from bunraku.files.amass import load_amass
from bunraku.files.archive import Archive
from bunraku.files.disk import read_text
from bunraku.kinematics.motion import Motion

ABOUT = About(
    name="AMASS with HumanML3D captions",
    licence="AMASS: non-commercial scientific research only (amass.is.tue.mpg.de/license.html), and that of each collection in it; captions MIT",
    credits=(
        "AMASS: Archive of Motion Capture as Surface Shapes. Mahmood, Ghorbani, Troje, Pons-Moll, Black. ICCV 2019.",
        "HumanML3D: Generating Diverse and Natural 3D Human Motions from Text. Guo et al., CVPR 2022 (MIT).",
    ),
)
RATE = 20  # [frames per second] of HumanML3D's frame numbers, where the recording's rate allows
_LEAD = {"Eyes_Japan_Dataset": 3.0, "MPI_HDM05": 3.0, "TotalCapture": 1.0, "MPI_Limits": 1.0, "Transitions_mocap": 0.5}  # [s] cut off by HumanML3D


@dataclass(frozen=True, kw_only=True)
class _Window:
    name: str  # of HumanML3D: "000042"
    start: int  # frames at about 20 fps
    stop: int


class AmassWithTexts:
    """A tree of AMASS .npz files, and HumanML3D's folder."""

    about = ABOUT

    def __init__(self, folder: Path, texts: Path) -> None:
        self.folder, self.texts = folder, texts
        for path in (folder, texts / "texts"):
            if not path.is_dir():
                raise FileProblem(f"there is no folder '{path}'; an AMASS tree and a HumanML3D folder with index.csv and texts/ are needed.")

    def __reduce__(self) -> tuple[Any, ...]:
        return AmassWithTexts, (self.folder, self.texts)

    def recordings(self) -> Sequence[Recording]:
        recordings = []
        for source, windows in self._windows.items():
            path = self._file(source)
            if path is None:
                continue
            try:
                second = self._seconds_per_frame(path)
            except BunrakuError:
                continue  # listed in `unusable`
            heard = [caption for window in windows for caption in self._captions(window, source, second)]
            splits = {self._splits[w.name] for w in windows if w.name in self._splits}
            split: Split = "test" if "test" in splits else "val" if "val" in splits else "train" if splits else drawn_split(source)
            collection = source.split("/")[0]
            recordings.append(Recording(name=source, split=split, captions=tuple(heard), subject=collection, about_frames=path.stat().st_size // 1000))
        if not recordings:
            such = next(iter(self._windows))
            raise FormatProblem(f"none of the recordings that '{self.texts / 'index.csv'}' names, such as '{such}', lies in '{self.folder}'.")
        return recordings

    def unusable(self) -> Sequence[tuple[str, str]]:
        rows = []
        for source, windows in self._windows.items():
            path = self._file(source)
            if path is None:
                rows.append((source, f"{len(windows)} captioned windows, but no such recording."))
                continue
            try:
                self._seconds_per_frame(path)
            except BunrakuError as error:
                rows.append((source, str(error)))
        return rows

    def load(self, recording: Recording) -> Motion:
        path = self._file(recording.name)
        assert path is not None
        return load_amass(path)

    def _file(self, source: str) -> Path | None:
        """The recording, as SMPL+H files are named or as SMPL-X files are."""
        stem = PurePosixPath(source).name.removesuffix("_poses")
        for parent in (PurePosixPath(source).parent, PurePosixPath(source.replace(" ", "_")).parent):
            for name in (f"{stem}_poses.npz", f"{stem}_stageii.npz", f"{stem.replace(' ', '_')}_stageii.npz", f"{stem}.npz"):
                path = self.folder / parent / name
                if path.is_file():
                    return path
        return None

    def _seconds_per_frame(self, path: Path) -> float:
        archive = Archive(path)
        rate = next((archive.scalar(key) for key in ("mocap_frame_rate", "mocap_framerate") if key in archive), None)
        if rate is None or not rate > 0:
            raise FormatProblem(f"'{path}' does not say its frame rate, so that the frames of its captions mean nothing.")
        return max(int(rate / RATE), 1) / rate

    def _captions(self, window: _Window, source: str, second: float) -> list[Heard]:
        path = self.texts / "texts" / f"{window.name}.txt"
        if not path.is_file():
            return []
        lead = next((lead for name, lead in _LEAD.items() if name in source), 0.0) * RATE * second
        first, last = lead + window.start * second, lead + window.stop * second if window.stop >= 0 else float("inf")
        captions = []
        for number, line in enumerate(read_text(path).splitlines(), start=1):
            if not line.strip():
                continue
            parts = line.split("#")
            try:
                start, stop = (0.0 if part.strip().lower() == "nan" else float(part) for part in parts[2:4])
            except ValueError as error:
                raise FormatProblem(f"'{path}', line {number}: 'caption#tokens#start#end' is needed, got '{line:.60}'.") from error
            if not (isfinite(start) and isfinite(stop)):
                start = stop = 0.0
            part = (first + start, min(first + stop, last)) if stop > start else (first, last)
            captions.append(Heard(text=parts[0].strip(), start=part[0], stop=part[1], source="humanml3d"))
        return captions

    @cached_property
    def _windows(self) -> dict[str, list[_Window]]:
        """HumanML3D's windows by AMASS recording, as a path below the tree without suffix."""
        path = self.texts / "index.csv"
        windows: dict[str, list[_Window]] = {}
        for line, row in enumerate(read_table(path, ("source_path", "start_frame", "end_frame", "new_name")), start=2):
            source = row["source_path"].removeprefix("./").removeprefix("pose_data/").removesuffix(".npy")
            if source.startswith("humanact12"):
                continue  # not of AMASS
            try:
                window = _Window(name=Path(row["new_name"]).stem, start=int(row["start_frame"]), stop=int(row["end_frame"]))
            except ValueError as error:
                raise FormatProblem(f"'{path}', line {line}: start_frame and end_frame are whole numbers; got {row}.") from error
            if not window.name.startswith("M"):
                windows.setdefault(source, []).append(window)
        if not windows:
            raise FormatProblem(f"'{path}' lists no recording of AMASS.")
        return windows

    @cached_property
    def _splits(self) -> dict[str, Split]:
        """HumanML3D's own split, where its train.txt, val.txt and test.txt are there."""
        splits: dict[str, Split] = {}
        for split in ("train", "val", "test"):
            path = self.texts / f"{split}.txt"
            if path.is_file():
                splits |= dict.fromkeys(read_text(path).split(), split)  # type: ignore[arg-type]
        return splits
