"""The CMU motion capture database as packed with captions: `motions_30fps.npz`, `skeletons.json`, `sequences.csv` and two files of captions.

Sentences are HumanML3D's (of a window of a sequence, or of a part of it) and KIT-ML's (of a whole sequence). CMU's own index, a few
words per sequence, is turned into short sentences that are drawn less often.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bunraku.datasets.clip import SPLITS, About
from bunraku.datasets.labels import label_sentence
from bunraku.datasets.source import FPS, Heard, Recording
from bunraku.errors import FileProblem, FormatProblem
from bunraku.files.archive import Archive
from bunraku.files.disk import read_text
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, Provenance
from bunraku.math.rotations import euler_to_quat

ABOUT = About(
    name="CMU motion capture with captions",
    licence="CMU: free for research and commercial projects, may be included in products, the data itself may not be resold; captions MIT",
    credits=(
        "The data used in this project was obtained from mocap.cs.cmu.edu. The database was created with funding from NSF EIA-0196217.",
        "Motion files: BVH conversion by B. Hahne (cgspeed.com).",
        "Captions: HumanML3D (Guo et al., CVPR 2022, MIT) and KIT Motion-Language (Plappert et al., 2016; annotations by way of TMR, MIT).",
    ),
)
LABEL_WEIGHT = 0.25
_DEGREES, _ROOT = 0.02, 1e-4  # units of the packed angles [deg] and of the packed root positions [m]


class CmuPack:
    """A folder with the packed database."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        needed = ("motions_30fps.npz", "skeletons.json", "sequences.csv")
        missing = [name for name in needed if not (folder / name).is_file()]
        if missing:
            raise FileProblem(f"'{folder}' is not the packed CMU database: '{missing[0]}' is missing; it has {', '.join(needed)} and captions_*.jsonl.")

    about = ABOUT

    def __reduce__(self) -> tuple[Any, ...]:
        return CmuPack, (self.folder,)

    # --- what there is -------------------------------------------------------------------------------------------------

    def recordings(self) -> Sequence[Recording]:
        captions = self._captions
        recordings = []
        for row in self._sequences.values():
            name = row["seq"]
            if name not in self._ranges:
                continue
            if row["split"] not in SPLITS:
                raise FormatProblem(f"'{self.folder / 'sequences.csv'}': sequence '{name}' has the split '{row['split']}'; train, val or test is needed.")
            label = label_sentence(row["cmu_description"], row["cmu_subject_category"])
            heard = captions.get(name, []) + ([Heard(text=label, source="index", weight=LABEL_WEIGHT)] if label else [])
            first, last = self._ranges[name]
            recordings.append(
                Recording(
                    name=name,
                    split=row["split"],  # type: ignore[arg-type]
                    captions=tuple(heard),
                    category=row["cmu_subject_category"],
                    subject=row["subject"],
                    about_frames=last - first,
                )
            )
        return recordings

    def unusable(self) -> Sequence[tuple[str, str]]:
        unheard = sorted(set(self._captions) - set(self._ranges))
        unseen = sorted(set(self._sequences) - set(self._ranges))
        unlisted = sorted(set(self._ranges) - set(self._sequences))
        rows = [(name, f"{len(self._captions[name])} captions, but no motion.") for name in unheard]
        rows += [(name, "listed in sequences.csv, but no motion.") for name in unseen if name not in unheard]
        return rows + [(name, "motion, but not listed in sequences.csv.") for name in unlisted]

    @cached_property
    def _sequences(self) -> dict[str, dict[str, str]]:
        text = read_text(self.folder / "sequences.csv")
        rows = list(csv.DictReader(text.splitlines()))
        needed = {"seq", "subject", "split", "cmu_description", "cmu_subject_category"}
        if not rows or not needed <= set(rows[0]):
            raise FormatProblem(f"'{self.folder / 'sequences.csv'}' needs the columns {', '.join(sorted(needed))} and at least one row.")
        return {row["seq"]: row for row in rows}

    @cached_property
    def _captions(self) -> dict[str, list[Heard]]:
        """Sentences by sequence; the same sentence of the same frames once."""
        found: dict[str, dict[tuple[str, float, float, bool], Heard]] = defaultdict(dict)
        for name in ("humanml3d", "kitml"):
            path = self.folder / f"captions_{name}.jsonl"
            if not path.is_file():
                continue
            for number, line in enumerate(read_text(path).splitlines(), start=1):
                try:
                    window = json.loads(line)
                    for row in window["captions"]:
                        heard = _heard(window, row, name)
                        found[window["seq"]].setdefault((heard.text, heard.start, heard.stop, heard.mirrored), heard)
                except (ValueError, KeyError, TypeError) as error:
                    raise FormatProblem(f"'{path}', line {number}: {type(error).__name__}: {error}; a window with captions is needed.") from error
        return {sequence: list(rows.values()) for sequence, rows in found.items()}

    # --- motion --------------------------------------------------------------------------------------------------------

    def load(self, recording: Recording) -> Motion:
        first, last = self._ranges[recording.name]
        angles, root = self._frames
        degrees = angles[:, first:last].T.reshape(last - first, -1, 3) * _DEGREES
        return Motion(
            skeleton=self._bodies[recording.subject],
            fps=FPS,
            root_position=torch.from_numpy(root[:, first:last].T * _ROOT).float(),
            quats=euler_to_quat("zyx", torch.from_numpy(np.radians(degrees)).float()),
            provenance=Provenance(source=f"CMU {recording.name}"),
        )

    @cached_property
    def _archive(self) -> Archive:
        return Archive(self.folder / "motions_30fps.npz")

    @cached_property
    def _ranges(self) -> dict[str, tuple[int, int]]:
        names, offsets = self._archive.array("ids").tolist(), self._archive.array("offsets").tolist()
        return dict(zip(names, pairwise(offsets), strict=False))

    @cached_property
    def _frames(self) -> tuple[np.ndarray, np.ndarray]:
        """All angles (69, N) and root positions (3, N), their steps summed up; row by row, as sums need 64 bits."""
        high, low, steps = (self._archive.array(name) for name in ("rot_hi", "rot_lo", "root_delta"))
        angles = np.empty(high.shape, dtype=np.int16)
        for row in range(len(high)):
            step = ((high[row].astype(np.uint16) << 8) | low[row]).view(np.int16)
            angles[row] = (np.cumsum(step, dtype=np.int64) + 9000) % 18000 - 9000
        return angles, np.cumsum(steps, axis=1, dtype=np.int64).astype(np.int32)

    @cached_property
    def _bodies(self) -> dict[str, Any]:
        """Every subject's skeleton."""
        plain, body = json.loads(read_text(self.folder / "skeletons.json")), skeleton("cmu23")
        return {
            subject: replace(
                body,
                name=f"cmu subject {subject}",
                offsets=torch.tensor(bones["offsets"], dtype=torch.float32),
                tips={body.index[joint]: tuple(tip) for joint, tip in bones["end_sites"].items() if joint in body.index},
            )
            for subject, bones in plain["subjects"].items()
        }


def _heard(window: dict[str, Any], row: dict[str, Any], source: str) -> Heard:
    start, stop = float(window["start"]), float(window["end"])
    if "span" in row:
        stop = min(stop, start + float(row["span"][1]))
        start += float(row["span"][0])
    return Heard(text=str(row["text"]).strip(), start=start, stop=stop, mirrored=bool(window.get("mirrored", False)), source=source)
