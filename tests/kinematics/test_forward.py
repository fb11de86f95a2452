"""Forward kinematics against its readable twin, a loop over joints: equal in value and in gradient."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

from bunraku.kinematics.forward import WorldPoses, forward_kinematics, local_rotations, local_translations, pose_joints, rest_poses
from bunraku.kinematics.library import skeleton, skeleton_names
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import exp_matrix, matrix_to_quat


def pose_by_loop(s: Skeleton, p_root: torch.Tensor, R_local: torch.Tensor, p_local: torch.Tensor | None = None) -> WorldPoses:
    """The specification: joint by joint, from the root down."""
    p_local = s.offsets.to(R_local).expand(*R_local.shape[:-2], 3) if p_local is None else p_local
    R, p = [R_local[..., 0, :, :]], [p_root]
    for joint in range(1, len(s)):
        parent = s.parents[joint]
        R.append(R[parent] @ R_local[..., joint, :, :])
        p.append(p[parent] + (R[parent] @ p_local[..., joint, :, None])[..., 0])
    return WorldPoses(p_world_joint=torch.stack(p, dim=-2), R_world_joint=torch.stack(R, dim=-3))


def random_pose(s: Skeleton, *batch: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return (
        torch.randn(*batch, 3, dtype=torch.float64),
        exp_matrix(torch.randn(*batch, len(s), 3, dtype=torch.float64)),
        torch.randn(*batch, len(s), 3, dtype=torch.float64),
    )


# joints in an order that is not depth first, with branches of different depth
BUSHY = Skeleton(name="bushy", joints=tuple("abcdefg"), parents=(-1, 0, 0, 1, 2, 3, 0), offsets=torch.randn(7, 3, generator=torch.Generator().manual_seed(1)))
ONE = Skeleton(name="one", joints=("root",), parents=(-1,), offsets=torch.zeros(1, 3))


@pytest.mark.parametrize("s", [*(skeleton(name) for name in skeleton_names()), BUSHY, ONE], ids=lambda s: s.name)
@pytest.mark.parametrize("batch", [(), (5,), (2, 3)])
@pytest.mark.parametrize("own_translations", [False, True])
def test_equal_to_the_loop_in_value_and_gradient(s: Skeleton, batch: tuple[int, ...], own_translations: bool) -> None:
    p, R, t = random_pose(s, *batch)
    inputs = [value.requires_grad_() for value in ((p, R, t) if own_translations else (p, R))]
    fast, slow = pose_joints(s, *inputs), pose_by_loop(s, *inputs)
    assert fast.p_world_joint.shape == (*batch, len(s), 3)
    assert fast.R_world_joint.shape == (*batch, len(s), 3, 3)
    torch.testing.assert_close(fast.p_world_joint, slow.p_world_joint, rtol=0, atol=1e-12)
    torch.testing.assert_close(fast.R_world_joint, slow.R_world_joint, rtol=0, atol=1e-12)
    weights = torch.randn_like(fast.p_world_joint), torch.randn_like(fast.R_world_joint)

    def score(poses: WorldPoses) -> torch.Tensor:
        return (poses.p_world_joint * weights[0]).sum() + (poses.R_world_joint * weights[1]).sum()

    for a, b in zip(*(torch.autograd.grad(score(poses), inputs, materialize_grads=True) for poses in (fast, slow)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_gradients_equal_finite_differences() -> None:
    p, R, t = (value.requires_grad_() for value in random_pose(BUSHY, 2))
    assert gradcheck(lambda p, R, t: (pose_joints(BUSHY, p, R, t).p_world_joint, pose_joints(BUSHY, p, R, t).R_world_joint), (p, R, t))


def test_the_root_s_translation_row_is_ignored() -> None:
    p, R, t = random_pose(BUSHY, 4)
    other = t.clone()
    other[:, 0] = 99.0
    assert torch.equal(pose_joints(BUSHY, p, R, t).p_world_joint, pose_joints(BUSHY, p, R, other).p_world_joint)


@pytest.mark.parametrize("batch", [(), (4,), (2, 3)])
def test_local_rotations_and_translations_undo_it(batch: tuple[int, ...]) -> None:
    for s in (skeleton("soma30"), BUSHY, ONE):
        p, R, t = random_pose(s, *batch)
        poses = pose_joints(s, p, R, t)
        torch.testing.assert_close(local_rotations(s, poses.R_world_joint), R, rtol=0, atol=1e-12)
        back = local_translations(s, poses)
        torch.testing.assert_close(back[..., 1:, :], t[..., 1:, :], rtol=0, atol=1e-12)
        torch.testing.assert_close(back[..., 0, :], p, rtol=0, atol=1e-12)


def test_a_moved_and_turned_root_carries_everything_rigidly() -> None:
    s = skeleton("smplx22")
    p, R, _ = random_pose(s)
    turn, shift = exp_matrix(torch.randn(3, dtype=torch.float64)), torch.randn(3, dtype=torch.float64)
    before = pose_joints(s, p, R)
    moved = R.clone()
    moved[0] = turn @ R[0]
    after = pose_joints(s, turn @ p + shift, moved)
    torch.testing.assert_close(after.p_world_joint, before.p_world_joint @ turn.T + shift, rtol=0, atol=1e-12)


def test_bones_keep_their_lengths() -> None:
    s = skeleton("soma77")
    p, R, _ = random_pose(s, 3)
    world = pose_joints(s, p, R).p_world_joint
    lengths = (world[:, 1:] - world[:, list(s.parents[1:])]).norm(dim=-1)
    torch.testing.assert_close(lengths, s.offsets[1:].double().norm(dim=-1).expand(3, -1), rtol=0, atol=1e-12)


def test_motions_and_rest_poses_go_through_the_same_door() -> None:
    for name in ("g1", "cmu23"):
        s = skeleton(name)
        rest, stand = rest_poses(s), forward_kinematics(rest_motion(s, frames=2))
        torch.testing.assert_close(stand.p_world_joint, rest.p_world_joint.expand(2, -1, -1))
        torch.testing.assert_close(stand.R_world_joint, rest.R_world_joint.expand(2, -1, -1, -1))
    p, R, t = random_pose(BUSHY, 6)
    motion = Motion(skeleton=BUSHY, fps=30.0, root_position=p, quats=matrix_to_quat(R), translations=t)
    torch.testing.assert_close(forward_kinematics(motion).p_world_joint, pose_by_loop(BUSHY, p, R, t).p_world_joint)


def test_dtype_follows_the_rotations() -> None:
    s = skeleton("soma30")
    assert pose_joints(s, torch.zeros(3), torch.eye(3).expand(30, 3, 3)).p_world_joint.dtype == torch.float32
    assert pose_joints(s, torch.zeros(3).double(), torch.eye(3).double().expand(30, 3, 3)).p_world_joint.dtype == torch.float64
