"""The compiled ground is its readable twin's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bunraku.film.ground_kernel import behind, behind_readable
from bunraku.film.mesh_frames import lamp_of
from bunraku.film.stage import stage_for
from bunraku.picture.shade import Lamp
from bunraku.picture.surface import surface_of
from bunraku.splats.camera import Camera
from tests.film.film_bodies import cube


@pytest.mark.parametrize("eye", [(1.0, 1.5, 5.0), (0.3, 0.2, 3.0), (-2.0, 6.0, 0.1), (0.0, -1.0, 2.0)])
@pytest.mark.parametrize("background", ["white", "navy"])
def test_twins(eye: tuple[float, float, float], background: str) -> None:
    body = cube()
    camera = Camera.look_at(eye, (0.0, 0.4, 0.0), 90, 70)
    vertices = body.mesh.vertices.double().numpy() + np.array([0.0, 0.6, 0.0])
    lamp = Lamp(lamp_of(camera), 1.0, surface_of(body.mesh), vertices)
    scene = stage_for(1.0, 5.0, background)
    for changed in (scene, replace(scene, shadow=None), replace(scene, ground=None)):
        fast, slow = behind(camera, changed, lamp), behind_readable(camera, changed, lamp)
        assert np.abs(fast - slow).max() < 2e-3  # squares' edges, where float32 places are not exact
        assert np.abs(fast - slow).mean() < 1e-5
