from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import bunraku
from bunraku.errors import SkeletonMismatch
from bunraku.generator.features import FeatureLayout, canonical_features, decode, encode, local_root, shift_features, turn_features
from bunraku.kinematics.edit import place
from bunraku.kinematics.forward import forward_kinematics
from bunraku.math.rotations import geodesic_distance
from tests.generator.tiny import layout_of, walking

WIDTHS = {"soma30": 369, "g1": 417, "smplx22": 273, "soma77": 933}


@pytest.mark.parametrize("name", WIDTHS)
def test_blocks_fill_the_vector_without_gap_or_overlap(name: str) -> None:
    layout = layout_of(name)
    blocks = [layout.smooth_root, layout.heading, layout.joint_positions, layout.joint_rotations, layout.joint_velocities, layout.contacts]
    assert [block.start for block in blocks] == [0] + [block.stop for block in blocks[:-1]]
    assert blocks[-1].stop == layout.width == WIDTHS[name]


@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize("frames", [1, 2, 3, 40])
def test_features_give_the_motion_back(name: str, frames: int) -> None:
    layout = layout_of(name)
    motion = walking(layout)[:frames]
    back = decode(layout, encode(layout, motion)).motion
    before, after = forward_kinematics(motion), forward_kinematics(back)
    assert (before.p_world_joint - after.p_world_joint).abs().max() < 1e-5
    assert geodesic_distance(before.R_world_joint, after.R_world_joint).max() < 1e-3  # float32 turns near zero
    assert torch.equal(back.contacts, motion.contacts)


@given(yaw=st.floats(-math.pi, math.pi), x=st.floats(-3, 3), z=st.floats(-3, 3))
def test_turning_and_moving_features_is_turning_and_moving_the_motion(yaw: float, x: float, z: float) -> None:
    layout = replace(layout_of(), smooth=False)  # the smoothed root stops early, which depends a little on the axes
    motion = walking(layout)[:12]
    turned = turn_features(layout, encode(layout, motion), torch.tensor(yaw).expand(12))
    moved = shift_features(layout, turned, torch.tensor([x, z]).expand(12, 2))
    expected = encode(layout, place(motion, (x, z), yaw))
    assert torch.allclose(moved, expected, atol=2e-4)


def test_canonical_features_start_above_the_origin_and_keep_their_heading() -> None:
    layout = layout_of()
    features = shift_features(layout, encode(layout, walking(layout)), torch.tensor([[2.0, -1.0]]).expand(60, 2))
    canonical = canonical_features(layout, features)
    assert canonical[0, [0, 2]].abs().max() == 0
    assert torch.equal(canonical[:, 3:], features[:, 3:])


def test_the_local_root_forgets_place_and_heading() -> None:
    layout = layout_of()
    features = encode(layout, walking(layout))
    elsewhere = shift_features(layout, features, torch.full((60, 2), 5.0))
    assert torch.allclose(local_root(features[None, :, :5], 30.0), local_root(elsewhere[None, :, :5], 30.0), atol=1e-4)


def test_the_local_root_turns_the_short_way_round_and_repeats_its_last_step() -> None:
    heading = torch.tensor([math.pi - 0.1, -math.pi + 0.1, -math.pi + 0.3])
    root = torch.zeros(1, 3, 5)
    root[0, :, 3], root[0, :, 4], root[0, :, 0] = heading.cos(), heading.sin(), torch.tensor([0.0, 1.0, 3.0])
    local = local_root(root, 10.0)
    assert torch.allclose(local[0, :, 0], torch.tensor([2.0, 2.0, 2.0]), atol=1e-4)
    assert torch.allclose(local[0, :, 1], torch.tensor([10.0, 20.0, 20.0]))
    short = local_root(root, 10.0, torch.tensor([[True, True, False]]))  # frame 2 is padding
    assert torch.allclose(short[0, 1, :3], short[0, 0, :3])


def test_a_clip_of_one_frame_stands_still_whatever_is_in_the_padding() -> None:
    root = torch.randn(1, 4, 5)
    padded = local_root(root, 30.0, torch.tensor([[True, False, False, False]]))
    assert torch.equal(padded[:, :1], local_root(root[:, :1], 30.0))


def test_a_motion_of_another_skeleton_or_rate_is_refused() -> None:
    layout = FeatureLayout(skeleton=bunraku.skeleton("soma30"))
    with pytest.raises(SkeletonMismatch, match=r"30 joints.*smplx22"):
        encode(layout, walking(layout_of("smplx22")))
    with pytest.raises(SkeletonMismatch, match="at 20 fps, the motion is at 30"):
        encode(replace(layout, fps=20.0), walking(layout))
