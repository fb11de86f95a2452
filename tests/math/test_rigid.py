"""Laws of rigid transforms: inverse, composition, action on points."""

from __future__ import annotations

import torch
from torch.autograd import gradcheck

from bunraku.math.rigid import rigid, rigid_inverse, transform_points
from bunraku.math.rotations import exp_matrix


def random_transforms(*batch: int) -> torch.Tensor:
    return rigid(exp_matrix(torch.randn(*batch, 3, dtype=torch.float64)), torch.randn(*batch, 3, dtype=torch.float64))


def test_parts_and_last_row() -> None:
    R, p = exp_matrix(torch.randn(4, 5, 3, dtype=torch.float64)), torch.randn(4, 5, 3, dtype=torch.float64)
    T = rigid(R, p)
    assert torch.equal(T[..., :3, :3], R)
    assert torch.equal(T[..., :3, 3], p)
    assert torch.equal(T[..., 3, :], torch.tensor([0.0, 0, 0, 1]).double().expand(4, 5, 4))


def test_inverse_is_the_inverse() -> None:
    T = random_transforms(6, 7)
    torch.testing.assert_close(rigid_inverse(T) @ T, torch.eye(4).double().expand(6, 7, 4, 4))
    torch.testing.assert_close(rigid_inverse(T), torch.linalg.inv(T))
    torch.testing.assert_close(rigid_inverse(rigid_inverse(T)), T)


def test_points_go_through_frames_in_turn() -> None:
    T_a_b, T_b_c, p_c = random_transforms(3), random_transforms(3), torch.randn(3, 10, 3, dtype=torch.float64)
    torch.testing.assert_close(transform_points(T_a_b, transform_points(T_b_c, p_c)), transform_points(T_a_b @ T_b_c, p_c))
    torch.testing.assert_close(transform_points(rigid_inverse(T_a_b), transform_points(T_a_b, p_c)), p_c)
    homogeneous = torch.cat([p_c, torch.ones(3, 10, 1, dtype=torch.float64)], dim=-1)
    torch.testing.assert_close(transform_points(T_a_b, p_c), (T_a_b[:, None] @ homogeneous[..., None]).squeeze(-1)[..., :3])


def test_distances_are_kept() -> None:
    T, p = random_transforms(5), torch.randn(5, 8, 3, dtype=torch.float64)
    torch.testing.assert_close(torch.cdist(transform_points(T, p), transform_points(T, p)), torch.cdist(p, p))


def test_gradients_equal_finite_differences() -> None:
    v, p, x = (torch.randn(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(3))
    assert gradcheck(lambda v, p, x: transform_points(rigid_inverse(rigid(exp_matrix(v), p)), x[:, None]), (v, p, x))
