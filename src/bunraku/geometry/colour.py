"""sRGB display values to linear light and back. Materials and vertex colours are linear; images and splats are sRGB."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def to_linear(srgb: Float[np.ndarray, "*batch"]) -> Float[np.ndarray, "*batch"]:
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def to_srgb(linear: Float[np.ndarray, "*batch"]) -> Float[np.ndarray, "*batch"]:
    linear = linear.clip(0, 1)
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
