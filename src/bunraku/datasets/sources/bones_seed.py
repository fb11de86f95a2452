"""BONES-SEED: 288 hours of SOMA motion at 120 fps with several descriptions each, and timelines.

    SOURCE/metadata/seed_metadata_vNNN.csv                    a line per motion: filename, move_soma_uniform_path, content_… descriptions
    SOURCE/metadata/seed_metadata_vNNN_temporal_labels.jsonl  {"filename", "events": [{"start_time", "end_time", "description"} …]}
    SOURCE/soma_uniform/bvh/DATE/NAME.bvh                     the archive soma_uniform.tar, unpacked
    SOURCE/splits/{train,test_content,test_repetition}_split_paths.txt    optional, of the released benchmark: lines DATE/NAME

The mirrored half of the recordings is left out: training mirrors for itself. The archives and Parquet tables are not read: unpack
the one, and take the CSV beside the other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from bunraku.datasets.clip import About, Split
from bunraku.datasets.source import Heard, Recording
from bunraku.datasets.sources.folder import drawn_split
from bunraku.datasets.sources.table import read_table
from bunraku.errors import FileProblem, FormatProblem
from bunraku.files.bvh import load_bvh
from bunraku.files.disk import read_text
from bunraku.kinematics.motion import Motion

ABOUT = About(
    name="BONES-SEED",
    licence="BONES-SEED licence (bones.studio), accepted when it is downloaded; timeline annotations by NVIDIA CC BY 4.0",
    credits=("BONES-SEED: Skeletal Everyday Embodiment Dataset, Bones Studio, bones.studio/datasets/seed.", "SEED Timeline Annotations, NVIDIA, CC BY 4.0."),
)
SENTENCES = tuple(f"content_natural_desc_{number}" for number in range(1, 5))
LABELS = ("content_short_description", "content_short_description_2", "content_technical_description")
LABEL_WEIGHT = 0.25
MOTION_PATH = "move_soma_uniform_path"


class BonesSeed:
    """The folder of an unpacked BONES-SEED."""

    about = ABOUT

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not folder.is_dir():
            raise FileProblem(f"there is no folder '{folder}'.")
        if not (folder / "soma_uniform").is_dir():
            archives = [path.name for path in folder.glob("soma_*.tar*")]
            hint = f"unpack '{archives[0]}' there first" if archives else "the uniform SOMA motions of BONES-SEED are needed"
            raise FileProblem(f"'{folder}' has no folder 'soma_uniform'; {hint}.")
        tables = sorted((folder / "metadata").glob("seed_metadata_v*.csv"))
        if not tables:
            parquet = sorted((folder / "metadata").glob("*.parquet"))
            other = f" (there is '{parquet[0].name}'; the CSV beside it is read)" if parquet else ""
            raise FileProblem(f"'{folder / 'metadata'}' has no seed_metadata_vNNN.csv{other}.")
        self.table = tables[-1]

    def __reduce__(self) -> tuple[Any, ...]:
        return BonesSeed, (self.folder,)

    def recordings(self) -> Sequence[Recording]:
        recordings = []
        for row in self._rows:
            if not (self.folder / row[MOTION_PATH]).is_file():
                continue
            heard = [Heard(text=row[column], source="description") for column in SENTENCES if row.get(column)]
            heard += [Heard(text=row[column], source="label", weight=LABEL_WEIGHT) for column in LABELS if row.get(column)]
            recordings.append(
                Recording(
                    name=row["filename"],
                    split=self._split(row),
                    captions=tuple(heard + self._events.get(row["filename"], [])),
                    category=row.get("category", "") or row.get("content_type_of_movement", ""),
                    subject=row.get("take_actor", ""),
                    about_frames=int(row.get("move_duration_frames") or 0) // 4,
                )
            )
        if not recordings:
            raise FormatProblem(f"none of the motions that '{self.table}' names lies in '{self.folder}'; was soma_uniform.tar unpacked there?")
        return recordings

    def unusable(self) -> Sequence[tuple[str, str]]:
        absent = [row["filename"] for row in self._rows if not (self.folder / row[MOTION_PATH]).is_file()]
        known = {row["filename"] for row in self._rows} | self._mirrored
        unknown = sorted(set(self._events) - known)
        mirrored = [("mirrored copies", f"{len(self._mirrored)} motions left out: training mirrors for itself.")] if self._mirrored else []
        return [*mirrored, *((name, "described, but no such file.") for name in absent), *((name, "a timeline, but no motion.") for name in unknown)]

    def load(self, recording: Recording) -> Motion:
        row = self._by_name[recording.name]
        motion = load_bvh(self.folder / row[MOTION_PATH])
        if motion.skeleton.name not in ("soma30", "soma77"):
            raise FormatProblem(f"'{row[MOTION_PATH]}' is on '{motion.skeleton.name}' ({len(motion.skeleton)} joints), not on the uniform SOMA skeleton.")
        return motion

    def _split(self, row: dict[str, str]) -> Split:
        """The benchmark's, where its lists are there; otherwise drawn, all takes of one content together."""
        if self._tests is None:
            return drawn_split(row.get("content_name") or row["filename"])
        name = f"{row.get('take_date', '')}/{row['filename']}"
        return "test" if name in self._tests or row["filename"] in self._tests else "train"

    @cached_property
    def _tests(self) -> set[str] | None:
        lists = sorted((self.folder / "splits").glob("test_*_split_paths.txt"))
        if not lists:
            return None
        return {line.strip().removesuffix(".bvh") for path in lists for line in read_text(path).splitlines() if line.strip()}

    @cached_property
    def _all_rows(self) -> list[dict[str, str]]:
        return read_table(self.table, ("filename", MOTION_PATH, SENTENCES[0]))

    @cached_property
    def _rows(self) -> list[dict[str, str]]:
        return [row for row in self._all_rows if row["filename"] not in self._mirrored]

    @cached_property
    def _by_name(self) -> dict[str, dict[str, str]]:
        return {row["filename"]: row for row in self._rows}

    @cached_property
    def _mirrored(self) -> set[str]:
        return {row["filename"] for row in self._all_rows if row.get("is_mirror", "").lower() in ("1", "true", "yes")}

    @cached_property
    def _events(self) -> dict[str, list[Heard]]:
        """Timelines by motion: what happens from when to when."""
        paths = sorted((self.folder / "metadata").glob("seed_metadata_v*_temporal_labels.jsonl"))
        if not paths:
            return {}
        events = {}
        for number, line in enumerate(read_text(paths[-1]).splitlines(), start=1):
            try:
                row = json.loads(line)
                timeline = [(str(e["description"]).strip(), float(e["start_time"]), float(e["end_time"])) for e in row["events"]]
            except (ValueError, KeyError, TypeError) as error:
                raise FormatProblem(f"'{paths[-1]}', line {number}: {type(error).__name__}: {error}; a timeline of events is needed.") from error
            heard = [Heard(text=text, start=start, stop=stop, source="timeline") for text, start, stop in timeline if stop > start and text]
            events[str(row["filename"])] = heard
        return events
