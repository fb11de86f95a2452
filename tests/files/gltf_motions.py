"""Motions for any skeleton, and whether two are the same."""

from __future__ import annotations

from dataclasses import replace

import torch

from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import exp_quat, geodesic_distance, quat_multiply


def dancing(skeleton: Skeleton, frames: int = 12, fps: float = 24.0) -> Motion:
    """Every joint turns, the root wanders, and some bones stretch."""
    rest = rest_motion(skeleton, frames, fps)
    quats = quat_multiply(rest.quats, exp_quat(torch.randn(frames, len(skeleton), 3).cumsum(0) * 0.1))
    translations = skeleton.offsets + torch.randn(frames, len(skeleton), 3) * 0.05 * (torch.arange(len(skeleton)) % 3 == 1)[:, None]
    return replace(rest, quats=quats, root_position=rest.root_position + torch.randn(frames, 3) * 0.2, translations=translations)


def assert_same(a: Motion, b: Motion, scale: float = 1.0) -> None:
    """World positions within 1e-4 of a body of that scale, rotations within 1e-4 rad."""
    assert a.skeleton.joints == b.skeleton.joints
    assert a.fps == b.fps
    pose_a, pose_b = forward_kinematics(a), forward_kinematics(b)
    assert (pose_a.p_world_joint - pose_b.p_world_joint).abs().max() < 1e-4 * scale
    assert geodesic_distance(pose_a.R_world_joint.double(), pose_b.R_world_joint.double()).max() < 1e-4
