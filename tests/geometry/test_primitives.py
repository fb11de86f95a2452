"""Primitives: closed, turned outwards, of the volume that geometry says."""

from __future__ import annotations

from dataclasses import replace
from math import pi

import pytest
import torch

from bunraku.errors import BadValue
from bunraku.geometry.mesh import Material, Mesh
from bunraku.geometry.primitives import box, capsule, ellipsoid, loft, merge, vertex_normals
from bunraku.math.rotations import exp_matrix

P = torch.tensor
R = exp_matrix(P([0.3, -0.8, 0.5], dtype=torch.float64))


def d(*values: float) -> torch.Tensor:
    return P(values, dtype=torch.float64)


LINE = d(0, 0, 0, 0, 0.01, 0, 0, 0.99, 0, 0, 1, 0).reshape(4, 3)
SOLIDS = {
    "capsule": (lambda: capsule(d(1, 2, 3), d(1.4, 2.9, 3.1), 0.2, 0.2, segments=64, rings=24), pi * 0.04 * d(0.4, 0.9, 0.1).norm() + 4 / 3 * pi * 0.008),
    "capsule in pieces": (lambda: capsule(d(0, 0, 0), d(0, 1, 0), 0.2, 0.2, segments=64, rings=24, spans=7), pi * 0.04 + 4 / 3 * pi * 0.008),
    "upright": (lambda: capsule(d(0, 0, 0), d(0, 1, 0), 0.2, 0.2, segments=64, rings=24), pi * 0.04 + 4 / 3 * pi * 0.008),
    "downward": (lambda: capsule(d(0, 1, 0), d(0, 0, 0), 0.2, 0.2, segments=64, rings=24), pi * 0.04 + 4 / 3 * pi * 0.008),
    "ellipsoid": (lambda: ellipsoid(d(1, 2, 3), d(0.5, 0.3, 0.2), R, segments=64, rings=63), 4 / 3 * pi * 0.03),
    "box": (lambda: box(d(1, 2, 3), d(0.5, 0.3, 0.2), R), 0.03),
    "ball from a box": (lambda: box(d(0, 0, 0), d(1, 1, 1), rounding=0.5, grid=48), pi / 6),
    "loft": (lambda: loft(LINE, d(0, 0.3, 0.3, 0), d(0, 0.2, 0.2, 0), d(1, 0, 0), segments=96), pi * 0.06 * (0.98 + 0.02 / 3)),
}


def volume(mesh: Mesh) -> float:
    a, b, c = mesh.vertices[mesh.faces].unbind(1)
    return float((a * torch.linalg.cross(b, c)).sum() / 6)


@pytest.mark.parametrize("name", SOLIDS)
def test_volume_is_positive_and_right(name: str) -> None:
    make, expected = SOLIDS[name]
    assert volume(make()) == pytest.approx(float(expected), rel=0.01)


@pytest.mark.parametrize("name", SOLIDS)
def test_closed_and_consistently_turned(name: str) -> None:
    mesh = SOLIDS[name][0]()
    welded = torch.unique((mesh.vertices * 1e6).round().long(), dim=0, return_inverse=True)[1][mesh.faces]
    welded = welded[(welded[:, 0] != welded[:, 1]) & (welded[:, 1] != welded[:, 2]) & (welded[:, 2] != welded[:, 0])]
    edges = torch.cat([welded[:, [0, 1]], welded[:, [1, 2]], welded[:, [2, 0]]]).tolist()
    assert len(set(map(tuple, edges))) == len(edges)
    assert {(b, a) for a, b in edges} == set(map(tuple, edges))


@pytest.mark.parametrize("name", SOLIDS)
def test_normals_are_unit_and_point_outwards(name: str) -> None:
    mesh = SOLIDS[name][0]()
    assert mesh.normals is not None
    assert torch.allclose(mesh.normals.norm(dim=-1), torch.ones(len(mesh.vertices), dtype=torch.float64))
    centre = (mesh.vertices.amax(0) + mesh.vertices.amin(0)) / 2
    assert ((mesh.vertices - centre) * mesh.normals).sum(-1).min() > 0


def test_a_tapered_capsule_touches_both_balls_and_leaves_neither() -> None:
    start, end = d(0, 0, 0), d(1, 0, 0)
    points = capsule(start, end, 0.3, 0.1, segments=24, rings=12).vertices
    assert (points - start).norm(dim=-1).min() == pytest.approx(0.3, abs=1e-12)
    assert (points - end).norm(dim=-1).min() == pytest.approx(0.1, abs=1e-12)
    assert points[:, 0].min() == pytest.approx(-0.3)
    assert points[:, 0].max() == pytest.approx(1.1)


def test_a_capsule_without_length_is_a_ball() -> None:
    points = capsule(d(1, 1, 1), d(1, 1, 1), 0.2, 0.2).vertices
    assert torch.allclose((points - d(1, 1, 1)).norm(dim=-1), d(0.2).expand(len(points)))


def test_a_rounded_box_stays_in_its_box_and_loses_its_corners() -> None:
    size = d(0.6, 0.4, 0.2)
    points = box(d(0, 0, 0), size, rounding=0.05, grid=8).vertices
    assert torch.allclose(points.amax(0), size / 2)
    assert torch.allclose(points.amin(0), -size / 2)
    corner = (size / 2 - 0.05).norm() + 0.05
    assert points.norm(dim=-1).max() == pytest.approx(float(corner), abs=0.001)


def test_merge_keeps_every_face_and_its_material() -> None:
    red, blue = Material(name="red"), Material(name="blue")
    parts = [replace(box(d(x, 0, 0), d(1, 1, 1)), materials=(material,)) for x, material in ((0, red), (2, blue), (4, red))]
    both = merge(parts)
    assert both.materials == (red, blue)
    assert both.face_materials is not None
    per_box = len(parts[0].faces)
    assert both.face_materials.tolist() == [0] * per_box + [1] * per_box + [0] * per_box
    assert volume(both) == pytest.approx(3.0)
    assert both.vertices[both.faces[per_box : 2 * per_box]].mean((0, 1))[0] == pytest.approx(2.0)


def test_merging_nothing_is_refused() -> None:
    with pytest.raises(BadValue, match="nothing to merge"):
        merge([])


def test_a_vertex_without_faces_gets_a_normal() -> None:
    normals = vertex_normals(d(0, 0, 0, 1, 0, 0, 0, 1, 0, 9, 9, 9).reshape(4, 3), P([[0, 1, 2]]))
    assert normals.tolist() == [[0, 0, 1]] * 3 + [[0, 1, 0]]
