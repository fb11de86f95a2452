"""Splats in closed form: few enough, flat on the surface, of its colours, without holes and without showing the other side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bunraku.errors import BadValue
from bunraku.geometry.appearance import appearance_of
from bunraku.geometry.colour import to_srgb
from bunraku.geometry.mesh import Material, Mesh
from bunraku.geometry.primitives import ellipsoid
from bunraku.splats import Splats, render
from bunraku.splats.harmonics import C0
from bunraku.splats.seed import seed_splats, spacing_of
from bunraku.splats.views import draw_mesh, random_views
from tests.splats.puppet import BLUE, RED, puppet


def seeded(mesh: Mesh, count: int = 600, seed: int = 0) -> Splats:
    return seed_splats(mesh, appearance_of(mesh), count, seed)


def colours(splats: Splats) -> np.ndarray:
    return (0.5 + C0 * splats.sh[:, 0]).numpy()


@pytest.mark.parametrize("count", [1, 7, 600])
def test_never_more_than_were_asked_for(count: int) -> None:
    assert 0.9 * count <= len(seeded(puppet().mesh, count)) <= count


def test_the_seed_decides() -> None:
    first, again, other = (seeded(puppet().mesh, 200, seed) for seed in (1, 1, 2))
    assert torch.equal(first.means, again.means)
    assert torch.equal(first.factors, again.factors)
    assert not torch.equal(first.means, other.means)


def test_discs_lie_flat_just_below_the_surface() -> None:
    ball = ellipsoid(torch.zeros(3), torch.ones(3), segments=40, rings=30)
    splats, spacing = seeded(ball, 1000), spacing_of(ball, 1000)
    depth = (1 - splats.means.norm(dim=1)) / spacing
    assert depth.min() > 0
    assert depth.max() < 1.2
    thin = splats.factors.norm(dim=1)
    assert (thin[:, 2] < 0.4 * thin[:, :2].amax(1)).all()
    outward = torch.nn.functional.normalize(splats.means, dim=1)
    along = (torch.nn.functional.normalize(splats.factors[:, :, 2], dim=1) * outward).sum(1)
    assert along.min() > 0.98
    nearest = torch.cdist(splats.means, splats.means).fill_diagonal_(9).amin(1) / spacing
    assert nearest.std() < 0.25 * nearest.mean()


def test_colours_stay_apart() -> None:
    red, blue = (to_srgb(np.array(colour)) for colour in (RED, BLUE))
    found = colours(seeded(puppet().mesh, 800))
    distance = np.minimum(np.linalg.norm(found - red, axis=1), np.linalg.norm(found - blue, axis=1))
    assert (distance < 0.02).mean() > 0.97


def test_a_thin_board_keeps_its_sides() -> None:
    corners = torch.tensor([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    board = Mesh(
        vertices=torch.cat([corners + torch.tensor([0, 0, 0.02]), corners]),
        faces=torch.tensor([[0, 1, 2], [0, 2, 3], [6, 5, 4], [7, 6, 4]]),
        face_materials=torch.tensor([0, 0, 1, 1]),
        materials=(Material(base_color=(*RED, 1.0)), Material(base_color=(*BLUE, 1.0))),
    )
    splats = seeded(board, 400)
    is_red = torch.from_numpy(colours(splats)[:, 0] > 0.5)
    assert splats.means[is_red, 2].min() > splats.means[~is_red, 2].max()


def test_no_light_comes_through() -> None:
    mesh = puppet().mesh
    splats, appearance, cameras = seeded(mesh, 3000), appearance_of(mesh), random_views(mesh.vertices, 3, 0, size=64)
    for number in range(3):
        inside = draw_mesh(mesh.vertices, appearance, cameras[number]).alpha > 0.999
        assert render(splats, cameras[number]).alpha[inside].min() > 0.95


def test_what_cannot_be_covered() -> None:
    mesh = puppet().mesh
    for count in (0, -3, 10**9):
        with pytest.raises(BadValue, match="ask for 1 to"):
            seeded(mesh, count)
    with pytest.raises(BadValue, match="with area"):
        seeded(replace(mesh, vertices=mesh.vertices * torch.tensor([0.0, 0.0, 1.0])))
