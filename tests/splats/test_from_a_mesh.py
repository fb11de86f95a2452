"""The door from meshes to splats: any unit, with and without fitting, and a sentence for what cannot be done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import bunraku
from bunraku.errors import BadValue
from bunraku.geometry.mesh import Material, Mesh
from bunraku.splats import from_mesh
from tests.splats.puppet import puppet


@pytest.mark.parametrize(("scale", "shift"), [(1e-4, 0.0), (1e4, 3e4), (1.0, 5.0)])
def test_the_unit_does_not_matter(scale: float, shift: float) -> None:
    body = puppet()
    plain = from_mesh(body, views=3, count=150, iterations=3)
    scaled = from_mesh(replace(body.mesh, vertices=body.mesh.vertices * scale + shift), views=3, count=150, iterations=3)
    torch.testing.assert_close((scaled.means - shift) / scale, plain.means, atol=3e-3, rtol=0)
    torch.testing.assert_close(scaled.factors.norm(dim=(1, 2)) / scale, plain.factors.norm(dim=(1, 2)), atol=3e-3, rtol=0)


def test_vertices_without_faces_do_not_matter() -> None:
    body = puppet().mesh
    more = replace(body, vertices=torch.cat([body.vertices, torch.full((1, 3), 1e6)]))
    plain, strayed = (from_mesh(mesh, views=2, count=50, iterations=2) for mesh in (body, more))
    assert torch.equal(plain.means, strayed.means)
    assert torch.equal(plain.sh, strayed.sh)


def test_progress_grows_to_one() -> None:
    told: list[float] = []
    from_mesh(puppet(), views=3, count=50, iterations=2, on_progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1
    assert len(told) == 5


def test_without_views_it_is_the_closed_form() -> None:
    closed, unfitted, fitted = (from_mesh(puppet(), views=views, count=100, iterations=steps) for views, steps in ((0, 9), (5, 0), (5, 2)))
    assert torch.equal(closed.means, unfitted.means)
    assert not torch.equal(closed.means, fitted.means)


def test_what_cannot_become_splats() -> None:
    body = puppet().mesh
    for given, word in (
        ({"views": -1}, "views"),
        ({"views": 10**6}, "views"),
        ({"count": 0}, "ask for 1 to"),
        ({"iterations": -2}, "steps"),
    ):
        with pytest.raises(BadValue, match=word):
            from_mesh(body, **given)
    with pytest.raises(BadValue, match="no faces"):
        from_mesh(Mesh(vertices=torch.rand(4, 3), faces=torch.zeros(0, 3, dtype=torch.long)), views=0)
    with pytest.raises(BadValue, match="one point"):
        from_mesh(replace(body, vertices=torch.ones_like(body.vertices)), views=0)
    with pytest.raises(BadValue, match="with area"):
        from_mesh(replace(body, vertices=body.vertices * torch.tensor([0.0, 0.0, 1.0])), views=0)


def test_a_broken_texture_is_said_once() -> None:
    body = puppet().mesh
    skin = replace(body, uvs=torch.rand(len(body.vertices), 2), face_materials=None, materials=(Material(name="skin", image=b"junk"),))
    with pytest.warns(UserWarning, match="'skin' cannot be read") as told:
        from_mesh(skin, views=2, count=20, iterations=1)
    assert len(told) == 1


def test_the_doors_of_the_package(tmp_path: Path) -> None:
    body = puppet()
    splats = bunraku.splats_of(body, views=0, count=60)
    bunraku.save_splats(splats, tmp_path / "puppet.ply")
    torch.testing.assert_close(bunraku.load_splats(tmp_path / "puppet.ply").means, splats.means)
    bunraku.save_character(body, tmp_path / "puppet.glb")
    assert len(bunraku.splats_of(tmp_path / "puppet.glb", views=0, count=60)) == len(splats)
