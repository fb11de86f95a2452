"""Foot contacts: the released rule, its scaling to other bodies, and where the ground is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bunraku.errors import RoleMissing
from bunraku.kinematics.contacts import (
    body_scale,
    contact_heights,
    contact_joints,
    contacts_from_positions,
    detect_contacts,
    foot_joints,
    ground_height,
    rest_ground,
    sole_positions,
)
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.library import skeleton, skeleton_names
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.skeleton import CONTACT_ROLES, Skeleton


def legs(size: float = 1.0, ankle: float = 0.08, roles: tuple[str, ...] = CONTACT_ROLES, hover: float = 0.0) -> Skeleton:
    """Hips at 1 m, one straight leg a side, toes 3 cm above the ground."""
    names = ("hips", "left_foot", "left_toe", "right_foot", "right_toe")
    offsets = [(0, 1 + hover, 0), (0.1, ankle - 1, 0), (0, 0.03 - ankle, 0.14), (-0.1, ankle - 1, 0), (0, 0.03 - ankle, 0.14)]
    return Skeleton(
        name="legs",
        joints=names,
        parents=(-1, 0, 1, 0, 3),
        offsets=size * torch.tensor(offsets, dtype=torch.float64),
        roles={name: i for i, name in enumerate(names) if name in ("hips", *roles)},
    )


def sliding(body: Skeleton, speed: float, height: float = 0.0, frames: int = 10) -> Motion:
    motion = rest_motion(body, frames, 30.0)
    step = torch.zeros(frames, 3, dtype=torch.float64)
    step[:, 0], step[:, 1] = torch.arange(frames) * speed / 30, height
    return replace(motion, root_position=motion.root_position + step)


@pytest.mark.parametrize(
    ("speed", "height", "ankles", "toes"),
    [(0.149, 0, True, True), (0.151, 0, False, False), (0, 0.019, True, True), (0, 0.021, False, True), (0, 0.071, False, False)],
)
def test_the_released_thresholds(speed: float, height: float, ankles: bool, toes: bool) -> None:
    contacts = detect_contacts(sliding(legs(), speed, height))
    assert contacts.shape == (10, 4)
    assert (contacts == torch.tensor([ankles, toes, ankles, toes])).all()


@pytest.mark.parametrize("name", skeleton_names())
def test_library_skeletons_keep_the_released_numbers_exactly(name: str) -> None:
    body = skeleton(name)
    assert body_scale(body) == 1.0
    assert (contact_heights(body, contact_joints(body)[1]) == 0.10).all()


@pytest.mark.parametrize("size", [0.25, 30.0])
def test_thresholds_grow_and_shrink_with_the_body(size: float) -> None:
    body = legs(size)
    edge = 0.15 * body_scale(body)
    assert body_scale(body) == pytest.approx(size / (0.7 if size < 1 else 1.3))
    assert detect_contacts(sliding(body, 0.99 * edge)).all()
    assert not detect_contacts(sliding(body, 1.01 * edge)).any()


def test_contacts_do_not_depend_on_the_unit() -> None:
    small, large = sliding(legs(5.0), 0.5, 0.1), sliding(legs(500.0), 50.0, 10.0)
    assert (detect_contacts(small) == detect_contacts(large)).all()


def test_an_ankle_that_rests_high_still_stands() -> None:
    boots = legs(ankle=0.16)
    assert detect_contacts(rest_motion(boots, 3)).all()
    assert not detect_contacts(sliding(boots, 0, 0.03))[:, 0].any()


def test_the_ground_may_lie_elsewhere() -> None:
    raised = sliding(legs(), 0, 0.5)
    assert not detect_contacts(raised).any()
    assert detect_contacts(raised, ground=0.5).all()


def test_columns_of_missing_roles_are_false() -> None:
    body = legs(roles=("left_foot", "right_foot"))
    assert detect_contacts(rest_motion(body, 2)).tolist() == [[True, False, True, False]] * 2


def test_no_feet_at_all_is_refused() -> None:
    with pytest.raises(RoleMissing, match="no feet"):
        detect_contacts(rest_motion(legs(roles=())))


def test_size_without_the_role_hips_comes_from_where_the_legs_meet() -> None:
    body = legs(10.0)
    nameless = replace(body, roles={role: j for role, j in body.roles.items() if role != "hips"})
    assert body_scale(nameless) == pytest.approx(body_scale(body))


def test_one_frame_stands_if_it_is_low() -> None:
    assert detect_contacts(rest_motion(legs())).all()


@pytest.mark.parametrize("offset", [-0.04, 0.0, 0.07])
def test_the_ground_of_a_clip_that_floats_or_sinks(offset: float) -> None:
    motion = sliding(legs(), 0.05, offset, frames=40)
    hop = motion.root_position.clone()
    hop[20:35, 1] += 0.3
    hop[5, 1] -= 0.2  # one frame that sinks is no ground
    assert ground_height(replace(motion, root_position=hop)) == pytest.approx(offset, abs=1e-6)


@pytest.mark.parametrize("name", skeleton_names())
def test_library_skeletons_rest_on_the_ground_and_so_do_their_soles(name: str) -> None:
    motion = rest_motion(skeleton(name))
    poses = forward_kinematics(motion)
    assert ground_height(motion) == pytest.approx(0, abs=1e-6)
    for side, sole in sole_positions(motion.skeleton, poses.p_world_joint, poses.R_world_joint).items():
        extra = sum(j in motion.skeleton.tips for j in foot_joints(motion.skeleton, side))
        assert sole.shape[1] == len(foot_joints(motion.skeleton, side)) + extra
        torch.testing.assert_close(sole[..., 1], torch.zeros_like(sole[..., 1]), atol=1e-6, rtol=0)


def test_a_rest_pose_with_hips_at_the_origin_stands_on_its_lowest_joint() -> None:
    assert rest_ground(legs(hover=-1.0)) == pytest.approx(-0.97)
    assert body_scale(legs(hover=-1.0)) == 1.0


def test_agreement_with_the_contacts_of_released_clips(shared) -> None:
    shares = {}
    for path in sorted((shared / "data" / "kimodo-examples").glob("*/motion.npz")):
        with np.load(path, allow_pickle=False) as data:
            p, stored = torch.from_numpy(data["posed_joints"]).float(), torch.from_numpy(data["foot_contacts"]) > 0.5
        body = skeleton({30: "soma30", 34: "g1", 77: "soma77"}[p.shape[1]])
        stored = stored[:, [0, 1, 3, 4]] if stored.shape[1] == 6 else stored
        shares[path.parent.name] = float((contacts_from_positions(body, p, 30.0) == stored).double().mean())
    assert len(shares) == 6
    assert min(shares.values()) > 0.93
    assert float(np.mean(list(shares.values()))) > 0.96
