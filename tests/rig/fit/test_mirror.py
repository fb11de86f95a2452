"""Mirror planes: found at any yaw, told apart from the planes that look nearly as good, and given for bodies that have none."""

from __future__ import annotations

import numpy as np
import pytest

from bunraku.rig.fit.symmetry import lengthwise_planes, mirror_planes
from tests.rig.fit import bodies


@pytest.mark.parametrize("yaw", [0.0, 90.0, 33.0])
def test_the_plane_of_a_turned_and_moved_dog(yaw: float) -> None:
    mesh, _ = bodies.dog()
    c, s = np.cos(np.radians(yaw)), np.sin(np.radians(yaw))
    vertices = mesh.vertices.double().numpy() @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]).T + (3.0, 0.0, -2.0)
    plane = mirror_planes(vertices, mesh.faces.numpy())[0]
    assert abs((plane.yaw - yaw + 90) % 180 - 90) < 0.6
    inside = vertices @ plane.R_body_world.T
    assert plane.offset == pytest.approx((inside[:, 0].min() + inside[:, 0].max()) / 2, abs=0.02)
    assert plane.error < 0.01


def test_a_winding_body_is_seen_lengthwise() -> None:
    mesh = bodies.snake()
    along = lengthwise_planes(mesh.vertices.double().numpy(), mesh.faces.numpy())
    assert along[0].yaw == 0
    assert min(along[1].yaw, 180 - along[1].yaw) < 5
