"""Weights from skin to splats: exact at vertices, linear between them, those of the nearest face elsewhere."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bunraku.errors import BadValue
from bunraku.splats import carry_rig, carry_weights, deform, random_splats
from tests.splats.puppet import bent, puppet


def test_on_the_mesh_they_are_the_meshs() -> None:
    body = puppet(torch.float64)
    torch.testing.assert_close(carry_weights(body.mesh.vertices, body.mesh, body.rig.weights), body.rig.weights)
    corners = body.mesh.faces
    share = torch.rand(len(corners), 3, dtype=torch.float64)
    share = share / share.sum(1, keepdim=True)
    points = (share[:, :, None] * body.mesh.vertices[corners]).sum(1)
    expected = (share[:, :, None] * body.rig.weights[corners]).sum(1)
    torch.testing.assert_close(carry_weights(points, body.mesh, body.rig.weights), expected, atol=1e-9, rtol=0)


@settings(max_examples=15)
@given(seed=st.integers(0, 1000))
def test_rows_sum_to_one_and_stay_between_the_corners(seed: int) -> None:
    body = puppet()
    points = random_splats(20, seed).means
    weights = carry_weights(points, body.mesh, body.rig.weights)
    torch.testing.assert_close(weights.sum(1), torch.ones(20))
    assert (weights >= 0).all()


def test_arms_add_up_to_nothing() -> None:
    body = puppet(torch.float64)
    rig = carry_rig(random_splats(30, 0).to(dtype=torch.float64), body)
    torch.testing.assert_close(rig.arms.sum(1), torch.zeros(30, 3, dtype=torch.float64), atol=1e-12, rtol=0)
    assert (rig.arms[rig.weights == 0] == 0).all()


def test_what_does_not_fit() -> None:
    body = puppet()
    with pytest.raises(BadValue, match="one row for each"):
        carry_weights(torch.zeros(1, 3), body.mesh, body.rig.weights[1:])
    splats = random_splats(5, 0)
    with pytest.raises(BadValue, match="at rest"):
        carry_rig(deform(splats, carry_rig(splats, body), bent(body)), body)
