"""From the host to the device without waiting: an ordinary copy would hold the host until the GPU has done all it was given before."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def moved(values: Tensor | np.ndarray, device: torch.device) -> Tensor:
    """The same numbers on the device."""
    tensor = torch.from_numpy(values) if isinstance(values, np.ndarray) else values
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" and tensor.device.type == "cpu" else tensor.to(device)
