"""Animation samplers: what the channels of a clip say at given times. LINEAR, STEP and CUBICSPLINE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray

from bunraku.errors import FormatProblem
from bunraku.files.axes import wxyz_from_xyzw, xyzw_from_wxyz
from bunraku.files.gltf.accessors import read_numbers
from bunraku.files.gltf.document import GltfDocument, Json
from bunraku.files.gltf.nodes import Array, node_trs, trs_matrix
from bunraku.math.rotations import slerp

_WIDTHS = {"translation": 3, "rotation": 4, "scale": 3}
_COMMON_RATES = (30.0, 24.0, 25.0, 60.0, 50.0, 120.0, 100.0)  # [1/s]
_OWN_RATE = 30.0  # [1/s] for clips whose keys lie on no common grid


@dataclass(frozen=True, kw_only=True, eq=False)
class Track:
    """Channels that share one property and one row of key times: K times [s], N nodes, values (K N W).

    Channels are gathered like this because exporters let all joints share their times, and one batch is sampled faster than fifty.
    For CUBICSPLINE values are (K 3 N W): in-tangent, value, out-tangent.
    """

    nodes: tuple[int, ...]
    path: str
    interpolation: str
    times: Float[np.ndarray, " K"]
    values: Array

    def at(self, times: Float[np.ndarray, " F"]) -> Float[np.ndarray, "F N W"]:
        """Values at the given times; before the first and after the last key the clip stands still."""
        last = len(self.times) - 1
        low = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, max(last - 1, 0))
        high = np.minimum(low + 1, last)
        span = self.times[high] - self.times[low]
        t = np.clip((times - self.times[low]) / np.where(span > 0, span, 1), 0, 1)
        if self.interpolation == "CUBICSPLINE":
            return self._cubic(low, high, t[:, None, None], span[:, None, None])
        if self.interpolation == "STEP":
            return self.values[np.where(t >= 1, high, low)]
        if self.path == "rotation":
            a, b = (wxyz_from_xyzw(torch.from_numpy(self.values[i])) for i in (low, high))
            return xyzw_from_wxyz(slerp(a, b, torch.from_numpy(t)[:, None])).numpy()
        return self.values[low] * (1 - t[:, None, None]) + self.values[high] * t[:, None, None]

    def _cubic(self, low: NDArray[np.int64], high: NDArray[np.int64], t: Array, span: Array) -> Array:
        start, out, into, end = self.values[low, 1], self.values[low, 2] * span, self.values[high, 0] * span, self.values[high, 1]
        values = (2 * t**3 - 3 * t**2 + 1) * start + (t**3 - 2 * t**2 + t) * out + (-2 * t**3 + 3 * t**2) * end + (t**3 - t**2) * into
        return _unit(values) if self.path == "rotation" else values


def read_tracks(document: GltfDocument, clip: int) -> list[Track]:
    """What an animation says about nodes (morph weights are passed over)."""
    animation = document.list("animations")[clip]
    groups: dict[tuple[str, str, int], dict[int, Array]] = {}
    times: dict[int, Array] = {}
    for channel in animation["channels"]:
        target, sampler = channel["target"], animation["samplers"][channel["sampler"]]
        if "node" not in target or target["path"] not in _WIDTHS:
            continue
        path, interpolation, clock = target["path"], sampler.get("interpolation", "LINEAR"), sampler["input"]
        if clock not in times:
            times[clock] = _read_times(document, clock)
        groups.setdefault((path, interpolation, clock), {})[target["node"]] = _read_values(document, sampler, path, len(times[clock]))
    return [
        Track(nodes=tuple(values), path=path, interpolation=interpolation, times=times[clock], values=np.stack(list(values.values()), axis=-2))
        for (path, interpolation, clock), values in groups.items()
    ]


def _read_times(document: GltfDocument, index: int) -> Float[np.ndarray, " K"]:
    times = read_numbers(document, index, 1)[:, 0]
    if len(times) == 0 or (np.diff(times) < 0).any() or times[0] < 0:
        raise FormatProblem(f"'{document.path}': an animation's key times do not grow from 0.")
    return times


def _read_values(document: GltfDocument, sampler: Json, path: str, keys: int) -> Array:
    """(K W), or (K 3 W) for CUBICSPLINE."""
    values = read_numbers(document, sampler["output"], _WIDTHS[path])
    rows = 3 if sampler.get("interpolation") == "CUBICSPLINE" else 1
    if len(values) != rows * keys:
        raise FormatProblem(f"'{document.path}': an animation has {keys} key times but {len(values)} values; {rows} for each are needed.")
    if rows == 3:
        return values.reshape(-1, 3, values.shape[1])
    return _unit(values) if path == "rotation" else values


def _unit(quats: Array) -> Array:
    length = np.linalg.norm(quats, axis=-1, keepdims=True)
    return np.where(length > 1e-9, quats / np.where(length > 1e-9, length, 1), (0.0, 0.0, 0.0, 1.0))


def local_matrices(document: GltfDocument, tracks: Sequence[Track], times: Float[np.ndarray, " F"]) -> dict[int, Float[np.ndarray, "F 4 4"]]:
    """The local matrix in every frame of each node that a track moves."""
    nodes = sorted({node for track in tracks for node in track.nodes})
    rank = {node: i for i, node in enumerate(nodes)}
    still = [np.stack(parts) for parts in zip(*(node_trs(document.list("nodes")[node]) for node in nodes), strict=True)]
    moving = {path: np.repeat(values[None], len(times), axis=0) for path, values in zip(_WIDTHS, still, strict=True)}
    for track in tracks:
        moving[track.path][:, [rank[node] for node in track.nodes]] = track.at(times)
    A = trs_matrix(moving["translation"], moving["rotation"], moving["scale"])
    return {node: A[:, i] for node, i in rank.items()}


def natural_rate(tracks: Sequence[Track]) -> float:
    """The first common frame rate on whose grid all keys lie, so that sampling at it loses nothing; else 30 per second."""
    times = np.unique(np.concatenate([track.times for track in tracks]))
    for rate in _COMMON_RATES:
        frames = (times - times[0]) * rate
        if np.abs(frames - np.round(frames)).max() < 0.01:
            return rate
    return _OWN_RATE
