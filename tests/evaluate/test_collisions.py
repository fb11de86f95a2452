"""Capsules that meet and capsules that must not count."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from evaluate_figure import make_figure, mirrored, turn

from bunraku.evaluate.capsules import RADII, body_capsules, distant_pairs, segment_distance
from bunraku.evaluate.clip import prepare
from bunraku.evaluate.quality import check
from bunraku.kinematics.library import skeleton, skeleton_names
from bunraku.kinematics.motion import Motion, rest_motion


def point(*xyz: float) -> torch.Tensor:
    return torch.tensor([xyz], dtype=torch.float64)


@pytest.mark.parametrize(
    ("b0", "b1", "distance"),
    [
        ((0.5, -1, 0), (0.5, 1, 0), 0.0),  # crosses
        ((0.5, -1, 2), (0.5, 1, 2), 2.0),  # skew
        ((0.2, 3, 0), (0.9, 3, 0), 3.0),  # parallel, beside
        ((4, 0, 0), (9, 0, 0), 3.0),  # on one line, beyond the end
        ((4, 4, 0), (9, 9, 0), 5.0),  # nearest at two ends
        ((0.5, 2, 0), (0.5, 2, 0), 2.0),  # a point
    ],
)
def test_distance_of_a_segment_from_the_unit_segment(b0, b1, distance: float) -> None:
    a0, a1 = point(0, 0, 0), point(1, 0, 0)
    for a, b in (((a0, a1), (point(*b0), point(*b1))), ((a1, a0), (point(*b1), point(*b0)))):
        assert float(segment_distance(*a, *b)) == pytest.approx(distance, abs=1e-9)
        assert float(segment_distance(*b, *a)) == pytest.approx(distance, abs=1e-9)


def test_distance_of_random_segments_against_a_fine_grid() -> None:
    a0, a1, b0, b1 = torch.randn(4, 200, 3, dtype=torch.float64)
    t = torch.linspace(0, 1, 201, dtype=torch.float64)[:, None]
    on_a = a0[:, None] + t * (a1 - a0)[:, None]
    on_b = b0[:, None] + t * (b1 - b0)[:, None]
    grid = torch.cdist(on_a, on_b).flatten(1).amin(dim=1)
    exact = segment_distance(a0, a1, b0, b1)
    assert (exact <= grid + 1e-12).all()
    assert (grid - exact).max() < 0.03


def hand_through_head(frames: int = 3) -> Motion:
    """The left upper arm straight up, the forearm folded in over the neck, so that it crosses the axis of the head."""
    motion = turn(rest_motion(make_figure(), frames), "left_shoulder", "z", 90)
    motion = turn(motion, "head", "y", 30)
    return turn(motion, "left_elbow", "z", 90)


def test_a_forearm_through_the_head() -> None:
    for motion in (hand_through_head(), mirrored(hand_through_head())):
        report = check(motion)
        assert report["collision_frames"] == 3
        assert report["collisions"] >= 3
        assert report["collision_depth_max"] == pytest.approx(1000 * 0.95 * (RADII["head"] + RADII["forearm"]), rel=1e-6)


def test_the_arm_beside_the_head_is_free() -> None:
    report = check(turn(rest_motion(make_figure(), 3), "left_shoulder", "z", 90))
    assert (report["collisions"], report["collision_depth_max"]) == (0, 0)


def test_legs_that_cross() -> None:
    motion = turn(turn(rest_motion(make_figure(), 2), "left_hip", "z", -12), "right_hip", "z", 12)
    names = {(a.name, b.name) for a, b in distant_pairs(body_capsules(prepare(motion, 0.0)))}
    assert ("left_shin", "right_shin") in names
    assert check(motion)["collisions"] >= 2


def test_neighbours_are_left_out() -> None:
    pairs = {frozenset((a.name, b.name)) for a, b in distant_pairs(body_capsules(prepare(rest_motion(make_figure()), 0.0)))}
    assert frozenset(("left_upper_arm", "left_forearm")) not in pairs
    assert frozenset(("left_thigh", "left_foot")) not in pairs
    assert frozenset(("head", "left_hand")) in pairs
    assert frozenset(("belly", "right_forearm")) in pairs


def test_what_overlaps_at_rest_does_not_count() -> None:
    body = make_figure()
    offsets = body.offsets.clone()
    for side, sign in (("left", 1), ("right", -1)):
        offsets[body.index[f"{side}_hip"], 0] = sign * 0.02  # shins closer than they are thick
    assert check(rest_motion(replace(body, offsets=offsets), 2))["collisions"] == 0


@pytest.mark.parametrize("name", skeleton_names())
def test_library_skeletons_rest_without_collisions(name: str) -> None:
    motion = prepare(rest_motion(skeleton(name)), 0.0)
    for a, b in distant_pairs(body_capsules(motion)):
        assert float(segment_distance(a.p_a, a.p_b, b.p_a, b.p_b)) > a.radius + b.radius, (a.name, b.name)


def test_no_roles_no_collision_metrics() -> None:
    assert check(rest_motion(replace(make_figure(), roles={}), 2))["collisions"] is None
