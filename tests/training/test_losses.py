"""The terms of the loss: zero for the truth, where the paper puts them, blind to padding, equal however a batch is shared."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

import bunraku
from bunraku.generator.features import FeatureLayout, encode
from bunraku.generator.stats import Spread, Stats
from bunraku.kinematics.walk import walk
from bunraku.training.losses import LossWeights, MotionLoss

LAYOUT = FeatureLayout(skeleton=bunraku.skeleton("soma30"))
ALL = LossWeights(motion=1.0, skate=2.0)
FEATURES = encode(LAYOUT, walk(LAYOUT.skeleton, seconds=2.0))
SPREAD = Spread(mean=FEATURES.mean(0), std=FEATURES.std(0) + 0.1)
STATS = Stats(
    global_root=Spread(mean=SPREAD.mean[:5], std=SPREAD.std[:5]),
    local_root=Spread(mean=torch.zeros(4), std=torch.ones(4)),
    body=Spread(mean=SPREAD.mean[5:], std=SPREAD.std[5:]),
)
CLEAN = ((FEATURES - SPREAD.mean) / SPREAD.scale)[None]


def loss_of(weights: LossWeights = ALL) -> MotionLoss:
    return MotionLoss(LAYOUT, STATS, weights)


def noisy(amount: float = 0.3, clips: int = 1) -> torch.Tensor:
    return CLEAN + amount * torch.randn(clips, *CLEAN.shape[1:])


def test_the_weights_of_the_paper() -> None:
    w = LossWeights()
    assert (w.root, w.heading, w.positions, w.velocities, w.rotations, w.contacts, w.forward) == (10, 2, 10, 3, 10, 4, 5)
    assert set(loss_of(w)(noisy(), CLEAN)) == {"root", "heading", "positions", "velocities", "rotations", "contacts", "forward"}


def test_the_truth_costs_nothing() -> None:
    terms = loss_of()(CLEAN, CLEAN)
    assert sum(float(value) for value in terms.values()) < 1e-4, terms


def test_each_block_is_charged_in_its_own_term() -> None:
    guess = CLEAN.clone()
    guess[..., LAYOUT.contacts] += 1.0
    terms = loss_of(LossWeights())(guess, CLEAN)
    assert float(terms["contacts"]) == pytest.approx(4 * 0.5, rel=1e-5)
    assert all(float(value) < 1e-4 for name, value in terms.items() if name != "contacts")


def test_large_misses_are_charged_in_proportion_and_small_ones_by_their_square() -> None:
    def heading(miss: float) -> float:
        guess = CLEAN.clone()
        guess[..., LAYOUT.heading] += miss
        return float(loss_of(LossWeights())(guess, CLEAN)["heading"]) / 2

    assert heading(0.2) == pytest.approx(0.02, rel=1e-4)
    assert heading(7.0) == pytest.approx(6.5, rel=1e-5)


def test_rotations_are_charged_where_they_carry_the_joints() -> None:
    loss = loss_of()
    placed = loss.joints_by_rotations(FEATURES[None], FEATURES[None])
    torch.testing.assert_close(placed[0], FEATURES[:, LAYOUT.joint_positions], atol=1e-5, rtol=0)


def test_jitter_of_the_root_is_charged_as_motion_and_as_skating() -> None:
    guess = CLEAN.clone()
    guess[..., 0] += 0.01 / float(SPREAD.scale[0]) * torch.randn(CLEAN.shape[1])  # a centimetre
    terms = loss_of()(guess, CLEAN)
    assert float(terms["root"]) < 0.02
    assert float(terms["skate"]) > 0.3  # 30 cm/s under standing feet


def test_frames_that_are_no_part_of_a_clip_do_not_count() -> None:
    loss, guess = loss_of(), noisy(clips=2)
    padded, truth = (torch.cat([x, torch.randn(2, 9, LAYOUT.width)], dim=1) for x in (guess, CLEAN.expand(2, -1, -1)))
    valid = (torch.arange(padded.shape[1]) < CLEAN.shape[1]).expand(2, -1)
    for name, value in loss(guess, CLEAN.expand(2, -1, -1)).items():
        assert float(loss(padded, truth, valid)[name]) == pytest.approx(float(value), rel=1e-4), name


def test_the_mean_of_two_shares_is_the_loss_of_the_whole() -> None:
    loss, guess = loss_of(), noisy(clips=4)
    truth = CLEAN.expand(4, -1, -1)
    valid = torch.arange(CLEAN.shape[1]) < torch.tensor([60, 20, 41, 7])[:, None]
    whole = sum(loss(guess, truth, valid).values())
    shares = [sum(loss(guess[k : k + 2], truth[k : k + 2], valid[k : k + 2]).values()) for k in (0, 2)]
    assert math.isclose(float(whole), float(shares[0] + shares[1]) / 2, rel_tol=1e-5)


def test_gradients_are_finite_and_reach_what_each_term_reads() -> None:
    guess = noisy().requires_grad_()
    sum(loss_of()(guess, CLEAN).values()).backward()
    assert guess.grad is not None
    assert torch.isfinite(guess.grad).all()
    assert (guess.grad != 0).float().mean() > 0.9


@pytest.mark.parametrize("frames", [1, 2])
def test_clips_of_one_or_two_frames_have_a_loss(frames: int) -> None:
    terms = loss_of()(noisy()[:, :frames], CLEAN[:, :frames])
    assert all(torch.isfinite(value) for value in terms.values())


def test_a_term_of_weight_zero_is_left_out() -> None:
    left = {"root", "heading", "positions", "velocities", "rotations", "contacts", "skate"}
    assert set(loss_of(replace(ALL, motion=0.0, forward=0.0))(noisy(), CLEAN)) == left
