"""The frames of many clips at hand: cut, mirrored, turned and encoded a batch at a time, on the device that trains.

A frame takes 264 bytes: ten hours are 280 MB and lie in the device's memory; what is larger stays mapped from disk and is read as needed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bunraku.datasets.features import batch_features, mirror_features
from bunraku.datasets.rows import QUAT_STEPS
from bunraku.datasets.store import Dataset
from bunraku.generator.features import FeatureLayout, shift_features, turn_features
from bunraku.training.moving import moved

RESIDENT = 8 << 30  # bytes: what is larger stays on disk


class FrameTable:
    """All frames of some clips of a dataset."""

    def __init__(self, dataset: Dataset, clips: Sequence[int], layout: FeatureLayout, device: torch.device) -> None:
        self.layout, self.device = layout, device
        parts = [dataset.records(clip) for clip in clips]
        lengths = [len(part) for part in parts]
        self.frames = sum(lengths)
        self.first = np.full(len(dataset.clips), -1)  # the row here of each clip's first frame
        self.first[list(clips)] = np.cumsum([0, *lengths[:-1]])
        self._parts: list[np.ndarray] | None = None
        self._table: dict[str, Tensor] = {}
        if sum(part.nbytes for part in parts) > RESIDENT:
            self._parts, self._starts = parts, np.cumsum([0, *lengths])
        else:
            self._table = {name: torch.from_numpy(np.concatenate([part[name] for part in parts])).to(device) for name in _FIELDS}

    def cut(
        self, first: Int[Tensor, " B"], frames: int, mirrored: Bool[Tensor, " B"], yaw: Float[Tensor, " B"]
    ) -> Float[Tensor, "B F D"]:
        """Stretches of one length as features: from row `first` of the table, seen in the mirror where asked, their smoothed root
        starting above the origin, then turned by `yaw` [rad]."""
        rows = self._rows(first, frames)
        quats = rows["quats"].float() / QUAT_STEPS
        quats = quats / quats.norm(dim=-1, keepdim=True)
        features = batch_features(self.layout, rows["root"], rows["smooth"], quats, rows["contacts"] != 0)
        if bool(mirrored.any()):
            features = torch.where(moved(mirrored, self.device)[:, None, None], mirror_features(self.layout, features), features)
        start = features[:, :1, [0, 2]]
        features = shift_features(self.layout, features, -start.expand(-1, frames, -1))
        return turn_features(self.layout, features, moved(yaw.float(), self.device)[:, None].expand(-1, frames))

    def _rows(self, first: Tensor, frames: int) -> dict[str, Tensor]:
        if self._parts is None:
            at = moved(first, self.device)[:, None] + torch.arange(frames, device=self.device)
            return {name: column[at] for name, column in self._table.items()}
        pieces = []
        for row in first.tolist():
            part = int(np.searchsorted(self._starts, row, side="right")) - 1
            offset = row - int(self._starts[part])
            pieces.append(self._parts[part][offset : offset + frames])
        records = np.stack(pieces)
        return {name: moved(np.ascontiguousarray(records[name]), self.device) for name in _FIELDS}


_FIELDS = ("root", "smooth", "quats", "contacts")
