"""Baked light: brighter where the lamp shines, darker below, never more than the colour itself."""

from __future__ import annotations

from dataclasses import replace

import torch

from bunraku.splats.baked_light import lit_at_rest
from tests.film.film_bodies import cube


def test_the_form_of_a_body_in_one_colour_can_be_seen() -> None:
    body = cube()
    lit = lit_at_rest(body)
    colours, normals = lit.mesh.colours, body.mesh.normals
    assert colours is not None
    assert normals is not None
    assert float(colours.min()) > 0.2
    assert float(colours.max()) <= 1
    above, left, right, below = (float(colours[normals[:, axis] * side > 0.99].mean()) for axis, side in ((1, 1), (0, 1), (0, -1), (1, -1)))
    assert above > left > right > below
    assert torch.equal(lit.mesh.vertices, body.mesh.vertices)


def test_colours_of_its_own_stay_its_own() -> None:
    body = cube()
    red = replace(body, mesh=replace(body.mesh, colours=torch.tensor([1.0, 0.0, 0.2]).expand(len(body.mesh.vertices), 3).clone()))
    colours = lit_at_rest(red).mesh.colours
    assert colours is not None
    assert torch.allclose(colours[:, 2], 0.2 * colours[:, 0])
    assert float(colours[:, 1].max()) == 0
