"""Reads the recorded numbers of the release, for tests that compare with them when they are there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch


def tensors(path: Path) -> dict[str, torch.Tensor]:
    """The float32 tensors of a safetensors file: 8 bytes of length, a JSON header, then the numbers."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__":
            assert entry["dtype"] == "F32"
            first, end = entry["data_offsets"]
            numbers = np.frombuffer(data[start + first : start + end], np.float32).copy()
            tensors[name] = torch.from_numpy(numbers).reshape(entry["shape"])
    return tensors
