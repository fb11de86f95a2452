"""Splats: their shapes, their frames, and the random ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bunraku.errors import BadValue
from bunraku.splats import Splats, random_splats


def test_covariance_and_opacity_follow_from_their_parameters() -> None:
    splats = random_splats(5, 0, degree=2)
    assert len(splats) == 5
    assert splats.degree == 2
    torch.testing.assert_close(splats.covariances, splats.covariances.transpose(-1, -2))
    assert (torch.linalg.eigvalsh(splats.covariances) > 0).all()
    torch.testing.assert_close(torch.logit(splats.opacities), splats.opacity_logits)
    assert repr(splats) == "Splats(5 splats, degree 2)"


def test_frames_are_chosen_where_there_are_some() -> None:
    still = random_splats(4, 0)
    moving = replace(still, means=still.means + torch.arange(6.0)[:, None, None])
    assert moving.batch == (6,)
    assert len(moving) == 4
    assert torch.equal(moving[2].means, still.means + 2)
    assert moving[2].factors is still.factors
    assert moving[1:4].batch == (3,)
    assert "6 frames of 4 splats" in repr(moving)
    once = replace(moving, factors=still.factors[None])
    assert once[5].factors.shape == (4, 3, 3)
    with pytest.raises(BadValue, match="no frames"):
        still[0]


def test_the_same_seed_gives_the_same_splats() -> None:
    first, again, other = random_splats(50, 3), random_splats(50, 3), random_splats(50, 4)
    assert torch.equal(first.means, again.means)
    assert not torch.equal(first.means, other.means)
    assert first.means.norm(dim=-1).max() <= 1
    assert len(random_splats(0, 0)) == 0
    for n, degree in ((-1, 0), (3, 4)):
        with pytest.raises(BadValue, match="random splats"):
            random_splats(n, 0, degree=degree)


def test_another_precision_and_a_change_to_every_tensor() -> None:
    splats = random_splats(3, 0)
    assert splats.to(dtype=torch.float64).sh.dtype == torch.float64
    assert all(value.requires_grad for value in vars(splats.map(lambda value: value.clone().requires_grad_())).values())


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(
    "change",
    [
        {"means": torch.zeros(4, 2)},
        {"means": torch.zeros(3)},
        {"factors": torch.zeros(4, 3)},
        {"factors": torch.zeros(5, 3, 3)},
        {"opacity_logits": torch.zeros(4, 1)},
        {"opacity_logits": torch.tensor(0.0)},
        {"sh": torch.zeros(4, 3)},
        {"sh": torch.zeros(4, 2, 3)},
        {"sh": torch.zeros(3, 1, 3)},
    ],
)
def test_wrong_shapes_are_named(change: dict[str, torch.Tensor]) -> None:
    with pytest.raises(BadValue, match="N splats need means"):
        replace(random_splats(4, 0), **change)


@pytest.mark.usefixtures("unchecked_shapes")
def test_frames_must_fit_together() -> None:
    with pytest.raises(BadValue, match="do not fit together"):
        Splats(means=torch.zeros(2, 4, 3), factors=torch.zeros(3, 4, 3, 3), opacity_logits=torch.zeros(4), sh=torch.zeros(4, 1, 3))
