"""Anybody's own motion: a folder of BVH, GLB, NPZ … files and one CSV of captions.

The CSV has a first line that names its columns, and a line per sentence:

    file,text,start,end,split,category
    walks/slow.bvh,A person walks slowly.,,,train,walk
    kick.glb,A person kicks with the left leg.,1.2,2.0,,

`file` is a path below the folder; `start` and `end` are seconds (empty: the whole clip); `split` is train, val or test (empty: drawn
from the file's name, one in ten for val and one in ten for test). Only `file` and `text` are needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bunraku.datasets.clip import SPLITS, About, Split
from bunraku.datasets.source import Heard, Recording
from bunraku.datasets.sources.table import read_table, seconds
from bunraku.errors import FileProblem, FormatProblem
from bunraku.files.formats import FORMATS, load_motion
from bunraku.kinematics.motion import Motion

MOTION_FILES = tuple(suffix for suffix, known in FORMATS.items() if "motion" in known.loads)


@dataclass(frozen=True, kw_only=True)
class MotionFolder:
    """Files below `folder` with the captions of `captions`."""

    folder: Path
    captions: Path
    about: About

    @staticmethod
    def of(folder: Path, captions: Path, licence: str = "", credits: tuple[str, ...] = ()) -> MotionFolder:
        if not folder.is_dir():
            raise FileProblem(f"'{folder}' is no folder; a folder of motion files is needed.")
        return MotionFolder(folder=folder, captions=captions, about=About(name=folder.resolve().name, licence=licence or "not stated", credits=credits))

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("folder", "captions", "about")}

    def recordings(self) -> Sequence[Recording]:
        recordings = []
        for file, rows in self._rows.items():
            if not (self.folder / file).is_file():
                continue
            splits = {row["split"] for _, row in rows if row.get("split")}
            if len(splits) > 1 or not splits <= set(SPLITS):
                named = " and ".join(sorted(splits))
                raise FormatProblem(f"'{self.captions}' puts '{file}' into the split {named}; one of {', '.join(SPLITS)} is needed for each file.")
            heard = [self._heard(line, row) for line, row in rows if row["text"]]
            category = next((row["category"] for _, row in rows if row.get("category")), "")
            split: Split = next(iter(splits), drawn_split(file))  # type: ignore[assignment]
            recordings.append(
                Recording(name=file, split=split, captions=tuple(heard), category=category, about_frames=(self.folder / file).stat().st_size // 1000)
            )
        if not recordings:
            raise FormatProblem(f"none of the files that '{self.captions}' names lies in '{self.folder}'; `file` is a path below that folder.")
        return recordings

    def unusable(self) -> Sequence[tuple[str, str]]:
        without = [(file, f"{len(rows)} captions, but no such file.") for file, rows in self._rows.items() if not (self.folder / file).is_file()]
        files = sorted(path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.name.lower().endswith(MOTION_FILES))
        return without + [(file, "a motion without captions.") for file in files if file not in self._rows]

    def load(self, recording: Recording) -> Motion:
        return load_motion(self.folder / recording.name)

    def _heard(self, line: int, row: dict[str, str]) -> Heard:
        start = seconds(row.get("start", ""), self.captions, line, 0.0)
        stop = seconds(row.get("end", ""), self.captions, line, float("inf"))
        if stop <= start:
            raise FormatProblem(f"'{self.captions}', line {line}: the caption ends at {stop:g} s, before it starts at {start:g} s.")
        return Heard(text=row["text"], start=start, stop=stop, source="folder")

    @cached_property
    def _rows(self) -> dict[str, list[tuple[int, dict[str, str]]]]:
        """Rows by file, each with its line in the CSV."""
        rows: dict[str, list[tuple[int, dict[str, str]]]] = {}
        for line, row in enumerate(read_table(self.captions, ("file", "text")), start=2):
            if row["file"]:
                rows.setdefault(Path(row["file"]).as_posix(), []).append((line, row))
        return rows


def drawn_split(name: str) -> Split:
    """Eight in ten train, one val, one test: the same for a name wherever and whenever it is asked."""
    tenth = int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % 10
    return "test" if tenth == 0 else "val" if tenth == 1 else "train"
