"""A dataset on disk, opened: a table of clips, and their frames mapped into memory, read only when asked for.

    DIR/dataset.json        what it is, its body and frame rate, how many frames each shard holds, what was left out and why
    DIR/clips.jsonl         one clip per line: its captions, and where its frames lie
    DIR/shards/0000.frames  records of `rows.record_type`
    DIR/stats/              means and spreads of the features of the train split

A packed file (`packed.py`) opens as the same thing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from bunraku.datasets.clip import About, ClipInfo, Split, clip_from_json
from bunraku.datasets.draft import BUILDING, CLIPS, MANIFEST, VERSION, shard_path
from bunraku.datasets.rows import PoseRows, from_records, record_type
from bunraku.errors import BadValue, FileProblem, FormatProblem
from bunraku.files.disk import read_text
from bunraku.generator.features import FeatureLayout
from bunraku.generator.stats import Stats, load_stats
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, Provenance
from bunraku.kinematics.skeleton import Skeleton


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the frames of a clip lie."""

    shard: int
    first: int  # record


class Dataset:
    """Clips of one skeleton at one frame rate. Sent to another process as its path, and opened there."""

    def __init__(
        self,
        folder: Path,
        manifest: Mapping[str, Any],
        clips: Sequence[ClipInfo],
        places: Sequence[Place],
        shards: Sequence[np.ndarray],
        stats: Stats | None = None,
    ) -> None:
        self.folder, self.clips, self.places = folder, tuple(clips), tuple(places)
        self.skeleton: Skeleton = skeleton(manifest["skeleton"])
        self.fps = float(manifest["fps"])
        self.about = About(**{**manifest["about"], "credits": tuple(manifest["about"]["credits"])})
        self.left_out: tuple[tuple[str, str], ...] = tuple((str(name), str(why)) for name, why in manifest.get("left_out", []))
        self.manifest = dict(manifest)
        self._shards, self._stats = shards, stats

    def __reduce__(self) -> tuple[Any, ...]:
        return open_dataset, (self.folder,)

    def __repr__(self) -> str:
        return f"Dataset({os.fspath(self.folder)!r}, {len(self.clips)} clips, {self.hours:.2f} h)"

    def __len__(self) -> int:
        return len(self.clips)

    @property
    def hours(self) -> float:
        return sum(clip.frames for clip in self.clips) / self.fps / 3600

    @cached_property
    def layout(self) -> FeatureLayout:
        return FeatureLayout(skeleton=self.skeleton, fps=self.fps)

    @cached_property
    def stats(self) -> Stats:
        return load_stats(self.folder / "stats", self.layout) if self._stats is None else self._stats

    def records(self, clip: int, frames: range | None = None) -> np.ndarray:
        """The stored records of a clip's frames, not copied."""
        info, place = self._clip(clip), self.places[clip]
        frames = range(info.frames) if frames is None else frames
        if frames.step != 1 or not 0 <= frames.start < frames.stop <= info.frames:
            raise BadValue(f"clip '{info.name}' has {info.frames} frames; the range {frames.start}:{frames.stop} is not within it.")
        return self._shards[place.shard][place.first + frames.start : place.first + frames.stop]

    def rows(self, clip: int, frames: range | None = None) -> PoseRows:
        """Frames of a clip as tensors of their own."""
        return from_records(self.records(clip, frames))

    def motion(self, clip: int, frames: range | None = None) -> Motion:
        """Frames of a clip as a motion, with the contacts that were found in the whole clip."""
        info = self._clip(clip)
        prompt = info.captions[0].text if info.captions else None
        provenance = Provenance(prompt=prompt, source=f"{self.about.name}: {info.name}", notes=dict(info.notes))
        return self.rows(clip, frames).motion(self.skeleton, self.fps, provenance)

    def features(self, clip: int, frames: range | None = None) -> Float[Tensor, "F D"]:
        """What a denoiser sees of these frames (`features.crop_features`)."""
        from bunraku.datasets.features import crop_features

        info = self._clip(clip)
        return crop_features(self, clip, range(info.frames) if frames is None else frames)

    def of_split(self, split: Split) -> list[int]:
        """The numbers of the clips of a split."""
        return [number for number, clip in enumerate(self.clips) if clip.split == split]

    def number_of(self, name: str) -> int:
        """The number of the clip with this name."""
        if name not in self._numbers:
            raise BadValue(f"'{self.folder}' has no clip '{name}'; it has {len(self.clips)}, such as '{self.clips[0].name}'.")
        return self._numbers[name]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {clip.name: number for number, clip in enumerate(self.clips)}

    def _clip(self, clip: int) -> ClipInfo:
        if not 0 <= clip < len(self.clips):
            raise BadValue(f"'{self.folder}' has {len(self.clips)} clips, numbered from 0; there is no clip {clip}.")
        return self.clips[clip]


def open_dataset(folder: str | os.PathLike[str]) -> Dataset:
    """A dataset's folder or packed file. Nothing but the table of clips is read."""
    folder = Path(folder)
    if folder.is_file():
        from bunraku.datasets.packed import open_packed

        return open_packed(folder)
    if not folder.is_dir():
        raise FileProblem(f"there is no dataset '{folder}'; build one with `bunraku data build`.")
    if not (folder / MANIFEST).is_file():
        if (folder / BUILDING).exists():
            raise FileProblem(f"the dataset '{folder}' is not finished; run the command that builds it again.")
        raise FileProblem(f"'{folder}' is no dataset: it has no {MANIFEST}. Build one with `bunraku data build`.")
    manifest = read_manifest(read_text(folder / MANIFEST), f"'{folder / MANIFEST}'")
    return assemble(folder, manifest, read_text(folder / CLIPS).splitlines())


def assemble(folder: Path, manifest: Mapping[str, Any], lines: Sequence[str]) -> Dataset:
    """The dataset of a manifest and a table of clips, its shards mapped into memory."""
    return Dataset(folder, manifest, *read_clips(lines, manifest, f"'{folder / CLIPS}'"), _map_shards(folder, manifest))


def read_manifest(text: str, where: str) -> dict[str, Any]:
    try:
        manifest = json.loads(text)
        known = manifest["bunraku"] == "dataset"
        _ = manifest["about"]["name"], manifest["about"]["licence"], manifest["about"]["credits"], manifest["skeleton"], manifest["fps"]
        shards = [int(frames) for frames in manifest["shards"]]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatProblem(f"{where} is no manifest of a dataset ({type(error).__name__}: {error}); build the dataset again.") from error
    if not known or manifest["version"] != VERSION:
        raise FormatProblem(f"{where} is of version {manifest.get('version')}; this bunraku reads version {VERSION}. Build the dataset again.")
    return {**manifest, "shards": shards}


def read_clips(lines: Sequence[str], manifest: Mapping[str, Any], where: str) -> tuple[list[ClipInfo], list[Place]]:
    clips, places = [], []
    for number, line in enumerate(lines, start=1):
        here = f"{where}, line {number},"
        try:
            plain = json.loads(line)
            place = Place(shard=int(plain["shard"]), first=int(plain["first"]))
        except (ValueError, KeyError, TypeError) as error:
            raise FormatProblem(f"{here} is damaged ({type(error).__name__}: {error}); build the dataset again.") from error
        clip = clip_from_json(plain, here)
        if not (0 <= place.shard < len(manifest["shards"]) and 0 <= place.first <= manifest["shards"][place.shard] - clip.frames):
            raise FormatProblem(f"{here} says that '{clip.name}' lies beyond the end of its shard; build the dataset again.")
        clips.append(clip)
        places.append(place)
    if len({clip.name for clip in clips}) < len(clips):
        raise FormatProblem(f"{where} names a clip twice; build the dataset again.")
    return clips, places


def _map_shards(folder: Path, manifest: Mapping[str, Any]) -> list[np.ndarray]:
    kind = record_type(len(skeleton(manifest["skeleton"])))
    shards = []
    for number, frames in enumerate(manifest["shards"]):
        path = shard_path(folder, number)
        if not path.is_file() or path.stat().st_size < frames * kind.itemsize:
            raise FormatProblem(f"'{path}' is missing or shorter than the {frames} frames it should hold; copy or build the dataset again.")
        shards.append(np.memmap(path, dtype=kind, mode="r", shape=(frames,)) if frames else np.zeros(0, dtype=kind))
    return shards
