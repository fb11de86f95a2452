"""A part of 100STYLE: walks and runs in a style, by one actor, packed like the CMU database but with other angles.

The labels are not sentences; they are made from style and gait: "A person walks forward, angrily."
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bunraku.datasets.clip import About
from bunraku.datasets.source import FPS, Heard, Recording
from bunraku.datasets.sources.folder import drawn_split
from bunraku.datasets.sources.table import read_table
from bunraku.errors import FileProblem, FormatProblem
from bunraku.files.archive import Archive
from bunraku.kinematics.motion import Motion, Provenance
from bunraku.kinematics.roles import infer_roles
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import euler_to_quat

ABOUT = About(
    name="100STYLE (part)",
    licence="CC BY 4.0",
    credits=("100STYLE dataset by I. Mason, S. Starke, T. Komura (2022), ianxmason.com/100style, CC BY 4.0. Changes: resampled, put on another skeleton.",),
)
_MANNERS = {
    "Aeroplane": "with arms spread like an aeroplane",
    "Angry": "angrily",
    "Chicken": "like a chicken",
    "Drunk": "as if drunk",
    "InTheDark": "as if in the dark, feeling the way with the hands",
    "KarateChop": "while making karate chops",
}
_DEGREES, _ROOT = 0.02, 1e-4


class Style100Pack:
    """A folder with `motions_30fps.npz` and `clips.csv`."""

    about = ABOUT

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        missing = [name for name in ("motions_30fps.npz", "clips.csv") if not (folder / name).is_file()]
        if missing:
            raise FileProblem(f"'{folder}' is not the packed part of 100STYLE: '{missing[0]}' is missing.")

    def __reduce__(self) -> tuple[Any, ...]:
        return Style100Pack, (self.folder,)

    def recordings(self) -> Sequence[Recording]:
        recordings = []
        for row in self._table:
            if row["id"] not in self._ranges:
                continue
            manner = _MANNERS.get(row["style"], f"in the style '{row['style']}'")
            text = f"A person {row['gait_phrase']} {manner}."
            first, last = self._kept(row)
            recordings.append(
                Recording(
                    name=row["id"],
                    split=drawn_split(row["id"]),
                    captions=(Heard(text=text, source="labels", weight=0.5),),
                    category=row["style"],
                    subject="100STYLE",
                    about_frames=last - first,
                )
            )
        return recordings

    def unusable(self) -> Sequence[tuple[str, str]]:
        return [(row["id"], "listed in clips.csv, but no motion.") for row in self._table if row["id"] not in self._ranges]

    def load(self, recording: Recording) -> Motion:
        """From the first to the last suggested frame: before and after, the actor waits."""
        row = next(row for row in self._table if row["id"] == recording.name)
        first, last = (self._ranges[recording.name][0] + frame for frame in self._kept(row))
        high, low, steps = (self._archive.array(name)[:, :last] for name in ("rot_hi", "rot_lo", "root_delta"))
        turns = np.cumsum(((high.astype(np.uint16) << 8) | low).view(np.int16), axis=1, dtype=np.int64)[:, first:]
        degrees = ((turns + 9000) % 18000 - 9000).T.reshape(last - first, -1, 3) * _DEGREES
        root = np.cumsum(steps, axis=1, dtype=np.int64)[:, first:].T * _ROOT
        return Motion(
            skeleton=self._body,
            fps=FPS,
            root_position=torch.from_numpy(root).float(),
            quats=euler_to_quat("yxz", torch.from_numpy(np.radians(degrees)).float()),
            provenance=Provenance(source=f"100STYLE {recording.name}"),
        )

    def _kept(self, row: dict[str, str]) -> tuple[int, int]:
        """Half-open range within the recording."""
        first, last = self._ranges[row["id"]]
        try:
            start, stop = int(float(row["suggested_first_frame"] or 0)), int(float(row["suggested_last_frame"] or last - first - 1)) + 1
        except ValueError as error:
            raise FormatProblem(f"'{self.folder / 'clips.csv'}': the suggested frames of '{row['id']}' are no numbers ({error}).") from error
        return max(start, 0), min(stop, last - first)

    @cached_property
    def _table(self) -> list[dict[str, str]]:
        return read_table(self.folder / "clips.csv", ("id", "style", "gait_phrase", "suggested_first_frame", "suggested_last_frame"))

    @cached_property
    def _archive(self) -> Archive:
        return Archive(self.folder / "motions_30fps.npz")

    @cached_property
    def _ranges(self) -> dict[str, tuple[int, int]]:
        return dict(zip(self._archive.array("ids").tolist(), pairwise(self._archive.array("offsets").tolist()), strict=False))

    @cached_property
    def _body(self) -> Skeleton:
        joints = tuple(self._archive.array("joints").tolist())
        body = Skeleton(
            name="100style",
            joints=joints,
            parents=tuple(self._archive.array("parents").tolist()),
            offsets=torch.from_numpy(self._archive.array("bone_offsets_m")).float(),
        )
        return replace(body, roles=infer_roles(body))
