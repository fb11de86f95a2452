"""Colours of points on a mesh: factor × vertex colour × texture, by face, and what is missing is said."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from PIL import Image

from bunraku.geometry.appearance import appearance_of
from bunraku.geometry.colour import to_linear
from bunraku.geometry.mesh import Material, Mesh


def image(colour: tuple[int, int, int]) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (4, 4), colour).save(file, "PNG")
    return file.getvalue()


def two_faces(**fields: object) -> Mesh:
    corners = torch.tensor([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    return Mesh(vertices=corners, faces=torch.tensor([[0, 1, 2], [0, 2, 3]]), **fields)  # type: ignore[arg-type]


def colours(mesh: Mesh) -> np.ndarray:
    middle = np.full((2, 3), 1 / 3)
    return appearance_of(mesh).colour(np.array([0, 1]), middle, np.full(2, 0.01))


def test_factors_vertices_and_textures_multiply() -> None:
    shade = torch.tensor([[0.2, 0.4, 0.6]]).expand(4, 3)
    materials = (Material(base_color=(0.5, 1.0, 1.0, 1.0), image=image((128, 64, 255))), Material(base_color=(0.1, 0.2, 0.3, 1.0)))
    mesh = two_faces(colours=shade, uvs=torch.rand(4, 2), face_materials=torch.tensor([0, 1]), materials=materials)
    texture = to_linear(np.array([128, 64, 255]) / 255)
    expected = np.array([np.array([0.5, 1, 1]) * texture, [0.1, 0.2, 0.3]]) * [0.2, 0.4, 0.6]
    np.testing.assert_allclose(colours(mesh), expected, atol=1e-6)


def test_vertex_colours_run_between_corners() -> None:
    mesh = two_faces(colours=torch.tensor([[0.0, 0, 0], [0.3, 0, 0], [0.6, 0, 0], [0.9, 0, 0]]), materials=(Material(),))
    np.testing.assert_allclose(colours(mesh)[:, 0], [0.3, 0.5], atol=1e-6)


def test_without_materials_it_is_grey() -> None:
    np.testing.assert_allclose(colours(two_faces()), 0.6)


@pytest.mark.parametrize(("picture", "uvs", "word"), [(b"junk", torch.rand(4, 2), "cannot be read"), (image((9, 9, 9)), None, "no uvs")])
def test_a_missing_texture_is_said_and_the_base_colour_shown(picture: bytes, uvs: torch.Tensor | None, word: str) -> None:
    mesh = two_faces(uvs=uvs, materials=(Material(name="skin", base_color=(0.1, 0.2, 0.3, 1.0), image=picture),))
    with pytest.warns(UserWarning, match=word):
        assert colours(mesh)[0] == pytest.approx([0.1, 0.2, 0.3])


def test_textures_that_no_face_wears_are_not_read() -> None:
    materials = (Material(), Material(image=b"junk"))
    colours(two_faces(uvs=torch.rand(4, 2), materials=materials))
