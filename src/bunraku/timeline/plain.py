"""Numbers as people would type them: the shortest decimals that give the same float32 back."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor


def shortest(values: Tensor) -> Any:
    """The nested lists of a tensor, 0.1 rather than 0.10000000149011612."""
    array = values.detach().cpu().numpy()
    if array.dtype != np.float32:
        return array.tolist()
    typed = [float(text) for text in array.ravel().astype(str).tolist()]
    return np.asarray(typed, dtype=np.float64).reshape(array.shape).tolist()
