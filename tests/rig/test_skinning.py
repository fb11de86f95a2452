"""Linear blend skinning against its definition, one vertex and one joint at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bunraku.errors import SkeletonMismatch
from bunraku.geometry.mesh import Mesh
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import exp_quat, quat_multiply
from bunraku.rig.character import Character
from bunraku.rig.rig import rig_for
from bunraku.rig.skinning import skin_vertices


@pytest.fixture
def stick() -> Character:
    torch.manual_seed(3)
    offsets = torch.randn(4, 3, dtype=torch.float64)
    skeleton = Skeleton(name="stick", joints=tuple("abcd"), parents=(-1, 0, 1, 1), offsets=offsets, rest_quats=exp_quat(torch.randn(4, 3, dtype=torch.float64)))
    weights = torch.rand(9, 4, dtype=torch.float64)
    mesh = Mesh(vertices=torch.randn(9, 3, dtype=torch.float64), faces=torch.zeros(0, 3, dtype=torch.long))
    return Character(name="stick", mesh=mesh, rig=rig_for(skeleton, weights / weights.sum(1, keepdim=True)))


def moving(character: Character, frames: int) -> Motion:
    rest = rest_motion(character.skeleton, frames)
    turns = exp_quat(torch.randn(frames, 4, 3, dtype=torch.float64))
    return replace(rest, quats=quat_multiply(rest.quats, turns), root_position=rest.root_position + torch.randn(frames, 3))


def test_at_rest_nothing_moves(stick: Character) -> None:
    skinned = skin_vertices(stick, rest_motion(stick.skeleton, 2))
    torch.testing.assert_close(skinned, stick.mesh.vertices.expand(2, -1, -1))


def test_every_vertex_follows_its_joints_by_weight(stick: Character) -> None:
    motion = moving(stick, 3)
    poses, rest = forward_kinematics(motion), stick.rig.T_world_joint_rest
    expected = torch.zeros(3, 9, 3, dtype=torch.float64)
    for frame in range(3):
        for joint in range(4):
            local = (stick.mesh.vertices - rest[joint, :3, 3]) @ rest[joint, :3, :3]
            moved = local @ poses.R_world_joint[frame, joint].T + poses.p_world_joint[frame, joint]
            expected[frame] += stick.rig.weights[:, joint, None] * moved
    torch.testing.assert_close(skin_vertices(stick, motion), expected)
    torch.testing.assert_close(skin_vertices(stick, poses), expected)


def test_long_motions_come_in_chunks_without_a_seam(stick: Character) -> None:
    motion = moving(stick, 70)
    whole = skin_vertices(stick, motion)
    for frame in (0, 31, 32, 33, 69):
        torch.testing.assert_close(skin_vertices(stick, motion[frame : frame + 1])[0], whole[frame])


def test_gradients_reach_the_motion(stick: Character) -> None:
    motion = moving(stick, 2)
    quats = motion.quats.clone().requires_grad_()
    skin_vertices(stick, replace(motion, quats=quats)).square().sum().backward()
    assert quats.grad is not None
    assert torch.isfinite(quats.grad).all()
    assert quats.grad.abs().amax((0, 2)).min() > 0


def test_a_motion_of_another_skeleton_is_refused(stick: Character) -> None:
    other = Skeleton(name="other", joints=("x",), parents=(-1,), offsets=torch.zeros(1, 3))
    with pytest.raises(SkeletonMismatch, match="1 joints of 'other', character 'stick' has 4"):
        skin_vertices(stick, rest_motion(other))
