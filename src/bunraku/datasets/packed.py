"""A dataset in one small file, to be carried to another machine and opened there with nothing but torch and NumPy.

A ZIP of `dataset.json`, `clips.jsonl`, `stats/…` and `frames/0000.xz` …, one member for each shard. Frames are rounded and coded as
second differences in time, low and high bytes apart, by LZMA. Rounding: joint turns as rotation vectors away from rest in steps of
0.0002 rad, places in steps of 0.05 mm. `measure_packed` says how far joints end from where they were; docs/lab.md has the numbers of CMU.
"""

from __future__ import annotations

import io
import json
import lzma
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from bunraku.datasets.clip import clip_to_json
from bunraku.datasets.draft import CLIPS, MANIFEST
from bunraku.datasets.rows import QUAT_STEPS, from_records, record_type
from bunraku.datasets.store import Dataset, read_clips, read_manifest
from bunraku.errors import FormatProblem
from bunraku.files.disk import existing_file, write_atomically
from bunraku.generator.stats import Spread, Stats, stats_tensors
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import exp_quat, log_quat, quat_conjugate, quat_multiply

TURN_STEP = 2e-4  # [rad] feet that stand seem to slide by the rounding of their legs: by 0.3 cm/s at this step, by 0.6 at twice of it
PLACE_STEP = 5e-5  # [m]
SHARD_FRAMES = 1 << 16
WIDTH = 4  # bytes of a number before it is compressed; the upper ones are nearly always 0
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 4, "lp": 0, "pb": 0}]
_BROKEN = (zipfile.BadZipFile, lzma.LZMAError, EOFError, OSError, ValueError, KeyError, NotImplementedError)


def pack(dataset: Dataset, path: str | os.PathLike[str], *, on_progress: Callable[[float], None] | None = None) -> None:
    """Writes the dataset as one file."""
    path = Path(path)
    groups = list(_groups(dataset))

    def write(temporary: Path) -> None:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
            lines, shards = [], []
            for shard, clips in enumerate(groups):
                rows, first = [], 0
                for clip in clips:
                    rows.append(dataset.records(clip))
                    lines.append(json.dumps(clip_to_json(dataset.clips[clip]) | {"shard": shard, "first": first}, ensure_ascii=False))
                    first += len(rows[-1])
                shards.append(first)
                archive.writestr(_member(shard), _encode(dataset.skeleton, rows))
                if on_progress is not None:
                    on_progress((shard + 1) / len(groups))
            manifest = {**dataset.manifest, "shards": shards}
            archive.writestr(CLIPS, "\n".join(lines) + "\n", zipfile.ZIP_DEFLATED)
            archive.writestr(MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=1), zipfile.ZIP_DEFLATED)
            for name, values in stats_tensors(dataset.stats).items():
                stream = io.BytesIO()
                np.save(stream, values.cpu().numpy())
                archive.writestr(f"stats/{name}.npy", stream.getvalue())

    write_atomically(path, write)


def open_packed(path: str | os.PathLike[str]) -> Dataset:
    """The dataset in a packed file. A shard is unpacked into memory when the first of its clips is asked for."""
    path = existing_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = read_manifest(archive.read(MANIFEST).decode(), f"'{path}': {MANIFEST}")
            clips, places = read_clips(archive.read(CLIPS).decode().splitlines(), manifest, f"'{path}': {CLIPS}")
            stats = _read_stats(archive)
    except _BROKEN as error:
        raise FormatProblem(f"'{path}' is no whole packed dataset ({error}); copy it again, or make it with `bunraku data pack`.") from error
    lengths: list[list[int]] = [[] for _ in manifest["shards"]]
    for clip, place in zip(clips, places, strict=True):
        lengths[place.shard].append(clip.frames)
    return Dataset(path, manifest, clips, places, _Unpacked(path, manifest, lengths), stats)


class _Unpacked(Sequence):
    """The shards of a packed file, each unpacked once."""

    def __init__(self, path: Path, manifest: dict[str, Any], lengths: list[list[int]]) -> None:
        self._path, self._lengths, self._body = path, lengths, skeleton(manifest["skeleton"])
        self._shards: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self._lengths)

    def __getitem__(self, shard: int) -> np.ndarray:  # type: ignore[override]
        if shard not in self._shards:
            try:
                with zipfile.ZipFile(self._path) as archive:
                    self._shards[shard] = _decode(self._body, archive.read(_member(shard)), self._lengths[shard])
            except _BROKEN as error:
                raise FormatProblem(f"'{self._path}': the frames of shard {shard} are damaged ({error}); copy or pack the dataset again.") from error
        return self._shards[shard]


def measure_packed(original: Dataset, packed: Dataset, clips: Sequence[int]) -> tuple[float, float]:
    """How far joints are from where they were [m]: the mean over joints and frames, and the worst."""
    total, count, worst = 0.0, 0, 0.0
    for clip in clips:
        p, q = (forward_kinematics(dataset.motion(clip)).p_world_joint for dataset in (original, packed))
        away = (p - q).norm(dim=-1)
        total, count, worst = total + float(away.sum()), count + away.numel(), max(worst, float(away.max()))
    return total / max(count, 1), worst


# --- frames as bytes ---------------------------------------------------------------------------------------------------


def _encode(body: Skeleton, clips: Sequence[np.ndarray]) -> bytes:
    turns, places, contacts = [], [], []
    for records in clips:
        rows = from_records(records)
        away = log_quat(quat_multiply(quat_conjugate(body.rest_quats), rows.quats)).flatten(1)
        ground = torch.cat([rows.root_position, rows.smooth_xz], dim=1)
        turns.append(_differences(torch.round(away / TURN_STEP).to(torch.int32)))
        places.append(_differences(torch.round(ground.double() / PLACE_STEP).to(torch.int32)))
        contacts.append(records["contacts"] != 0)
    planes = [*_planes(torch.cat(turns)), *_planes(torch.cat(places)), np.packbits(np.concatenate(contacts).T).tobytes()]
    packed = [lzma.compress(plane, format=lzma.FORMAT_RAW, filters=_FILTERS) for plane in planes]
    return np.array([len(plane) for plane in packed], dtype="<u4").tobytes() + b"".join(packed)


def _decode(body: Skeleton, data: bytes, lengths: Sequence[int]) -> np.ndarray:
    frames = sum(lengths)
    head = 4 * (2 * WIDTH + 1)
    sizes = np.frombuffer(data[:head], dtype="<u4").tolist()
    planes, start = [], head
    for size in sizes:
        planes.append(lzma.decompress(data[start : start + size], format=lzma.FORMAT_RAW, filters=_FILTERS))
        start += size
    turns = _from_planes(planes[:WIDTH], frames, 3 * len(body))
    places = _from_planes(planes[WIDTH:-1], frames, 5)
    contacts = np.unpackbits(np.frombuffer(planes[-1], dtype=np.uint8), count=4 * frames).reshape(4, frames).T
    records, first = np.zeros(frames, dtype=record_type(len(body))), 0
    for length in lengths:
        here = slice(first, first + length)
        away = _sums(turns[here]).float().unflatten(-1, (-1, 3)) * TURN_STEP
        quats = quat_multiply(body.rest_quats, exp_quat(away))
        ground = _sums(places[here]).double().numpy() * PLACE_STEP
        records["quats"][here] = np.rint(quats.numpy() * QUAT_STEPS).astype(np.int16)
        records["root"][here], records["smooth"][here] = ground[:, :3], ground[:, 3:]
        first += length
    records["contacts"] = contacts
    return records


def _differences(values: Int[Tensor, "F n"]) -> Int[Tensor, "F n"]:
    """Second differences in time; before the first frame all is 0."""
    before = torch.zeros_like(values[:1])
    return torch.diff(torch.diff(values, dim=0, prepend=before), dim=0, prepend=before)


def _sums(differences: Int[Tensor, "F n"]) -> Int[Tensor, "F n"]:
    return differences.long().cumsum(dim=0).cumsum(dim=0)


def _planes(values: Int[Tensor, "N n"]) -> list[bytes]:
    """Bytes of one significance together, value after value, each in time; small numbers of either sign have zeros above the lowest."""
    folded = (values.long() << 1) ^ (values.long() >> 63)
    if int(folded.max()) >= 1 << (8 * WIDTH):
        raise FormatProblem("a clip moves further from frame to frame than a packed dataset can hold; leave it out.")
    rows = folded.T.contiguous().numpy().astype("<u4")
    return [rows.view(np.uint8).reshape(-1, WIDTH)[:, byte].tobytes() for byte in range(WIDTH)]


def _from_planes(planes: Sequence[bytes], frames: int, values: int) -> Int[Tensor, "N n"]:
    folded = sum(np.frombuffer(plane, dtype=np.uint8).astype(np.int64) << (8 * byte) for byte, plane in enumerate(planes))
    folded = torch.from_numpy(np.asarray(folded).reshape(values, frames).T.copy())
    return (folded >> 1) ^ -(folded & 1)


def _groups(dataset: Dataset) -> Iterator[list[int]]:
    """Clip numbers, so many together that a shard has about SHARD_FRAMES."""
    group: list[int] = []
    for clip, info in enumerate(dataset.clips):
        group.append(clip)
        if sum(dataset.clips[c].frames for c in group) >= SHARD_FRAMES or info is dataset.clips[-1]:
            yield group
            group = []


def _member(shard: int) -> str:
    return f"frames/{shard:04d}.xz"


def _read_stats(archive: zipfile.ZipFile) -> Stats:
    spreads = {}
    for name in ("global_root", "local_root", "body"):
        rows = [torch.from_numpy(np.load(io.BytesIO(archive.read(f"stats/{name}.{kind}.npy")), allow_pickle=False)) for kind in ("mean", "std")]
        spreads[name] = Spread(mean=rows[0], std=rows[1])
    return Stats(**spreads)
