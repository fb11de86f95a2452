"""Textures: the right texel, the mean over a footprint, and images that cannot or must not be read."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from bunraku.errors import BadValue
from bunraku.geometry.colour import to_linear
from bunraku.geometry.texture import decode_image, texture_from


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


def test_the_middle_of_a_texel_is_its_colour() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, size=(5, 7, 3))
    texture = texture_from(png(pixels), "skin")
    assert texture is not None
    row, column = 3, 2
    found = texture.lookup(np.array([[(column + 0.5) / 7, (row + 0.5) / 5], [(column + 0.5) / 7 - 2, (row + 0.5) / 5 + 1]]), np.ones(2))
    np.testing.assert_allclose(found, np.tile(to_linear(pixels[row, column] / 255.0), (2, 1)), atol=1e-6)


def test_fine_stripes_become_grey_where_many_are_seen_at_once() -> None:
    stripes = np.zeros((64, 64, 3))
    stripes[:, ::2] = 255
    texture = texture_from(png(stripes), "stripes")
    assert texture is not None
    place = np.random.default_rng(0).uniform(size=(50, 2))
    assert np.abs(texture.lookup(place, np.full(50, 16.0)) - 0.5).max() < 1e-6
    assert texture.lookup(place, np.full(50, 0.1)).std() > 0.2


def test_levels_blend() -> None:
    texture = texture_from(png(np.random.default_rng(1).integers(0, 256, size=(16, 16, 3))), "noise")
    assert texture is not None
    place = np.array([[0.3, 0.6]])
    a, b, c = (texture.lookup(place, np.array([texels])) for texels in (4.0, 8.0, 16.0))
    np.testing.assert_allclose(b, (a + c) / 2, atol=1e-6)
    np.testing.assert_allclose(texture.lookup(place, np.array([1e9])), texture.levels[-1].reshape(1, 3), atol=1e-6)


def test_images_of_any_kind_are_read() -> None:
    grey = Image.new("LA", (3, 2), (128, 7))
    file = io.BytesIO()
    grey.save(file, "PNG")
    pixels = decode_image(file.getvalue(), "skin")
    assert pixels is not None
    assert pixels.shape == (2, 3, 3)
    assert (pixels == 128).all()
    large = decode_image(png(np.full((10, 5000, 3), 9)), "skin")
    assert large is not None
    assert large.shape[1] <= 2048


def test_a_bomb_is_refused_unread() -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    with pytest.raises(BadValue, match="'skin' claims more than"):
        texture_from(bomb, "skin")


def test_what_is_no_image_is_said_and_left_out() -> None:
    with pytest.warns(UserWarning, match="'skin' cannot be read"):
        assert texture_from(b"not an image", "skin") is None
    broken = png(np.zeros((50, 50, 3)))[:60]
    with pytest.warns(UserWarning, match="'skin' cannot be read"):
        assert texture_from(broken, "skin") is None
