"""The picture of a fit: three views and the names, with joints drawn where they are."""

from __future__ import annotations

import numpy as np
import pytest

from bunraku.kinematics.library import skeleton
from bunraku.picture.fit_sheet import fit_sheet
from bunraku.rig.mannequin import mannequin

ORANGE, BLUE = (200, 70, 20), (20, 80, 170)


@pytest.mark.parametrize("unit", [1.0, 1e-4, 1e4])
def test_views_names_and_sides(unit: float) -> None:
    body = skeleton("smplx22")
    mesh = mannequin(body).mesh
    small = type(body)(name="small", joints=body.joints, parents=body.parents, offsets=body.offsets * unit, rest_quats=body.rest_quats)
    picture = fit_sheet(type(mesh)(vertices=mesh.vertices * unit, faces=mesh.faces), small, title="a body", notes=("one", "two"), tile=200)
    assert picture.width > 3 * 200
    assert picture.height > 200 + 30
    front = np.asarray(picture)[-200:, :200]
    left, right = (np.argwhere((front == colour).all(-1))[:, 1] for colour in (ORANGE, BLUE))
    assert left.min() > 90 > 0  # seen from the front the left is on the right
    assert right.max() < 110
    assert ((front < 250).all(-1)).mean() > 0.05  # the body itself


def test_marks_are_drawn() -> None:
    body = skeleton("smplx22")
    mesh = mannequin(body).mesh
    plain, marked = (np.asarray(fit_sheet(mesh, body, tile=200, marks=marks)) for marks in (None, np.array([[0.0, 1.0, 0.0]])))
    assert (plain != marked).any()
