"""What lies inside a mesh: volumes of known solids, open ones, and parts that are joined or left out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from bunraku.geometry.mesh import Mesh
from bunraku.geometry.primitives import ellipsoid, merge
from bunraku.rig.fit.inside import Volume, both_sides, solid


def ball(x: float = 0.0, radius: float = 1.0) -> Mesh:
    return ellipsoid(torch.tensor([x, 0.0, 0.0]), torch.full((3,), radius), segments=40, rings=25)


def filled(mesh: Mesh) -> Volume:
    return solid(mesh.vertices.double().numpy(), mesh.faces.numpy())


def size(volume: Volume) -> float:
    return len(volume.points) * volume.cell**3


def test_a_ball_has_its_volume_and_depth() -> None:
    volume = filled(ball())
    # cells that the surface touches count: half a cell more on every side
    assert size(volume) == pytest.approx(4 / 3 * math.pi * (1 + volume.cell / 2) ** 3, rel=0.03)
    assert volume.depth.max() == pytest.approx(1, abs=1.5 * volume.cell)
    assert not volume.leaked


def test_an_open_ball_is_filled_and_says_so() -> None:
    mesh = ball()
    closed, keep = size(filled(mesh)), torch.rand(len(mesh.faces), generator=torch.Generator().manual_seed(1)) > 0.1
    volume = filled(Mesh(vertices=mesh.vertices, faces=mesh.faces[keep]))
    assert volume.leaked
    assert size(volume) == pytest.approx(closed, rel=0.1)


def test_a_ball_inside_a_ball_is_inside_and_flipped_faces_do_not_matter() -> None:
    whole = filled(ball())
    assert size(filled(merge([ball(), ball(radius=0.4)]))) == size(whole)
    mesh = ball()
    assert size(filled(Mesh(vertices=mesh.vertices, faces=mesh.faces.flip(1)))) == size(whole)


def test_near_parts_are_joined_and_far_ones_left_out() -> None:
    near = filled(merge([ball(), ball(1.55, 0.5)]))
    assert near.left_out == 0
    assert np.ptp(near.points[:, 0]) == pytest.approx(3.05, abs=0.1)
    far = filled(merge([ball(), ball(4.0, 0.5)]))
    assert far.left_out == 1
    assert np.ptp(far.points[:, 0]) == pytest.approx(2.0, abs=0.2)


def test_what_one_side_holds_is_gone() -> None:
    volume = filled(merge([ball(), ball(1.3, 0.4)]))
    shared, share = both_sides(volume, 0.0)
    assert np.ptp(shared.points[:, 0]) < 2.2
    assert 0.9 < share < 0.99
