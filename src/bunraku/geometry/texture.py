"""Images on surfaces: read once with care, looked up at the size of what is asked for, so that small details never flicker.

A pyramid of halved images stands for the mean over squares of 1, 2, 4 … texels; a lookup blends the two that fit its footprint.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt8
from PIL import Image

from bunraku.errors import BadValue
from bunraku.geometry.colour import to_linear

MOST_PIXELS = 16384 * 8192  # larger images are refused unread: a file of a few kilobytes can claim to be gigabytes
_LARGEST_SIDE = 2048  # [texel] what is larger is halved first; no picture here shows more
_LINEAR = to_linear(np.arange(256) / 255.0).astype(np.float32)


@dataclass(frozen=True, kw_only=True, eq=False)
class Texture:
    """Linear colours, level by level; level k has texels of 2ᵏ × 2ᵏ of the first."""

    levels: tuple[Float[np.ndarray, "_ _ 3"], ...]

    @property
    def texels(self) -> int:
        return self.levels[0].shape[0] * self.levels[0].shape[1]

    def lookup(self, uv: Float[np.ndarray, "P 2"], texels: Float[np.ndarray, " P"]) -> Float[np.ndarray, "P 3"]:
        """The mean linear colour around each place; `texels` of the first level are seen at once there. The image repeats beyond its edges."""
        level = np.clip(0.5 * np.log2(np.maximum(texels, 1.0)), 0, len(self.levels) - 1)
        below = np.floor(level).astype(np.int64)
        share = (level - below)[:, None]
        colour = np.zeros((len(uv), 3))
        for number in np.unique(below).tolist():
            here = below == number
            colour[here] = self._bilinear(number, uv[here])
            finer = here & (share[:, 0] > 0)
            if finer.any():
                colour[finer] += share[finer] * (self._bilinear(number + 1, uv[finer]) - colour[finer])
        return colour

    def _bilinear(self, level: int, uv: Float[np.ndarray, "P 2"]) -> Float[np.ndarray, "P 3"]:
        image = self.levels[level]
        height, width = image.shape[:2]
        place = (uv - np.floor(uv)) * (width, height) - 0.5
        low = np.floor(place).astype(np.int64)
        across, down = (place - low).astype(np.float32).T[..., None]
        left, top = low.T % np.array([[width], [height]])
        right, bottom = (left + 1) % width, (top + 1) % height
        a, b, c, d = image.reshape(-1, 3)[np.stack([top, top, bottom, bottom]) * width + np.stack([left, right, left, right])]
        upper, lower = a + across * (b - a), c + across * (d - c)
        return upper + down * (lower - upper)


def texture_from(image: bytes, name: str) -> Texture | None:
    """None, with a warning, if the image cannot be read; one of absurd size is refused."""
    pixels = decode_image(image, name)
    if pixels is None:
        return None
    levels = [_LINEAR[pixels]]
    while max(levels[-1].shape[:2]) > 1:
        levels.append(_halved(levels[-1]))
    return Texture(levels=tuple(levels))


def decode_image(image: bytes, name: str) -> UInt8[np.ndarray, "H W 3"] | None:
    """The pixels of a PNG or JPEG, at most 2048 a side. None, with a warning, if it cannot be read; one of absurd size is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit, below, speaks first
            opened = Image.open(io.BytesIO(image))
            width, height = opened.size
            if width * height > MOST_PIXELS:
                raise Image.DecompressionBombError
            shrink = -(-max(width, height) // _LARGEST_SIDE)
            return np.asarray(opened.convert("RGB") if shrink == 1 else opened.convert("RGB").reduce(shrink))
    except Image.DecompressionBombError:
        most = f"{MOST_PIXELS // 10**6} million"
        raise BadValue(f"the texture of material '{name}' claims more than {most} pixels and is not read; save it at 4096 × 4096 or less.") from None
    except Exception as problem:  # Pillow raises many kinds for broken files
        warnings.warn(f"the texture of material '{name}' cannot be read ({problem}); its base colour is shown instead.", stacklevel=2)
        return None


def _halved(image: Float[np.ndarray, "H W 3"]) -> Float[np.ndarray, "h w 3"]:
    """The mean of every two rows and columns; an odd last one counts once more."""
    for axis in (0, 1):
        if image.shape[axis] > 1:
            if image.shape[axis] % 2:
                image = np.concatenate([image, np.take(image, [-1], axis=axis)], axis=axis)
            even, odd = np.moveaxis(image, axis, 0)[::2], np.moveaxis(image, axis, 0)[1::2]
            image = np.moveaxis((even + odd) / 2, 0, axis)
    return np.ascontiguousarray(image)


def texels_per_area(
    texels: int, uv: Float[np.ndarray, "V 2"], area: Float[np.ndarray, " T"], faces: Int[np.ndarray, "T 3"]
) -> Float[np.ndarray, " T"]:
    """How many texels lie on a square metre of each face [1/m²]; 0 on faces without area."""
    a, b, c = np.moveaxis(uv[faces], 1, 0)
    uv_area = np.abs((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]) / 2
    return np.where(area > 0, uv_area * texels / np.where(area > 0, area, 1.0), 0.0)
