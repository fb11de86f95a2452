"""Laws of rotations, in float64, on turns of every size; RoMa and finite differences are the independent judges."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from torch.autograd import gradcheck
from turn_samples import ANGLES, rotvecs, unit_vectors  # beside this file

from bunraku.math import rotations as rot

ORDERS = ["".join(order) for order in itertools.permutations("xyz")]
EYE = torch.eye(3, dtype=torch.float64)


def close(a: torch.Tensor, b: torch.Tensor, atol: float = 1e-12) -> bool:
    return bool(torch.allclose(a, b, rtol=0, atol=atol))


def same_turn(a: torch.Tensor, b: torch.Tensor, atol: float = 1e-12) -> bool:
    """Equal as turns: q and −q are one."""
    return close(a, b, atol) or close(a, -b, atol)


def random_quats(*batch: int) -> torch.Tensor:
    return rot.quat_normalize(torch.randn(*batch, 4, dtype=torch.float64))


# --- exponential and logarithm --------------------------------------------------------------------------------------


@given(rotvecs())
def test_log_undoes_exp(v: torch.Tensor) -> None:
    back = rot.log_quat(rot.exp_quat(v))
    if v.norm() > math.pi - 1e-8:  # at half a turn the axis has two names
        assert close(back, v, 1e-9) or close(back, -v, 1e-7)
    else:
        assert close(back, v, 1e-12 + 1e-11 * float(v.norm()))


@given(rotvecs())
def test_log_keeps_its_digits_near_the_identity(v: torch.Tensor) -> None:
    if 0 < v.norm() < 1e-3:
        assert float((rot.log_quat(rot.exp_quat(v)) - v).norm() / v.norm()) < 1e-12


@given(rotvecs())
def test_exp_is_a_unit_quaternion_and_a_rotation(v: torch.Tensor) -> None:
    q, R = rot.exp_quat(v), rot.exp_matrix(v)
    assert close(q.norm(), torch.ones_like(q.norm()))
    assert close(R @ R.T, EYE)
    assert close(torch.linalg.det(R), torch.ones_like(R[0, 0]))
    assert close(R, torch.from_numpy(expm(rot_cross(v).numpy())), 1e-11)  # the definition; torch.matrix_exp is off by 1e-10


def rot_cross(v: torch.Tensor) -> torch.Tensor:
    x, y, z = v.tolist()
    return torch.tensor([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]], dtype=torch.float64)


@given(rotvecs())
def test_double_cover(v: torch.Tensor) -> None:
    q = rot.exp_quat(v)
    assert close(rot.quat_to_matrix(q), rot.quat_to_matrix(-q))
    if q[0].abs() > 1e-12:
        assert close(rot.log_quat(q), rot.log_quat(-q))
    assert float(rot.log_quat(q).norm()) <= math.pi + 1e-12
    assert same_turn(rot.matrix_to_quat(rot.quat_to_matrix(q)), q, 1e-9)


@given(rotvecs())
def test_log_of_a_matrix(v: torch.Tensor) -> None:
    R = rot.exp_matrix(v)
    assert close(rot.exp_matrix(rot.log_matrix(R)), R, 1e-9)
    assert close(rot.log_matrix(R).norm(), v.norm(), 1e-9)


def test_the_oracle_agrees() -> None:
    roma = pytest.importorskip("roma")
    v = torch.randn(200, 3, dtype=torch.float64)
    v = v / v.norm(dim=-1, keepdim=True) * torch.rand(200, 1, dtype=torch.float64) * 3.1
    q = rot.exp_quat(v)
    assert same_rows(q, roma.quat_xyzw_to_wxyz(roma.rotvec_to_unitquat(v)))
    assert close(rot.quat_to_matrix(q), roma.rotvec_to_rotmat(v), 1e-7)  # RoMa adds an ε to its angle
    assert close(rot.log_quat(q), roma.unitquat_to_rotvec(roma.quat_wxyz_to_xyzw(q)), 1e-9)
    assert same_rows(rot.matrix_to_quat(rot.quat_to_matrix(q)), roma.quat_xyzw_to_wxyz(roma.rotmat_to_unitquat(rot.quat_to_matrix(q))))
    p = random_quats(200)
    xyzw = roma.quat_product(roma.quat_wxyz_to_xyzw(q), roma.quat_wxyz_to_xyzw(p))
    assert close(rot.quat_multiply(q, p), roma.quat_xyzw_to_wxyz(xyzw))
    assert close(rot.quat_distance(q, p), roma.rotmat_geodesic_distance(rot.quat_to_matrix(q), rot.quat_to_matrix(p)), 1e-6)
    six = torch.randn(200, 3, 2, dtype=torch.float64)
    assert close(rot.rot6d_to_matrix(six.transpose(-1, -2).flatten(-2)), roma.special_gramschmidt(six))


def same_rows(a: torch.Tensor, b: torch.Tensor) -> bool:
    return close((a * b).sum(-1).abs(), torch.ones(len(a), dtype=a.dtype), 1e-9)


def test_euler_oracle() -> None:
    roma = pytest.importorskip("roma")
    angles = torch.rand(50, 3, dtype=torch.float64) * 2 - 1
    for order in ORDERS:
        expected = roma.euler_to_rotmat(order.upper(), angles)
        assert close(rot.quat_to_matrix(rot.euler_to_quat(order, angles)), expected, 1e-9)


# --- quaternion algebra ---------------------------------------------------------------------------------------------


def test_product_inverse_and_action_are_those_of_matrices() -> None:
    a, b, v = random_quats(30), random_quats(30), torch.randn(30, 3, dtype=torch.float64)
    A, B = rot.quat_to_matrix(a), rot.quat_to_matrix(b)
    assert close(rot.quat_to_matrix(rot.quat_multiply(a, b)), A @ B)
    assert close(rot.quat_to_matrix(rot.quat_conjugate(a)), A.transpose(-1, -2))
    assert close(rot.quat_rotate(a, v), (A @ v[..., None]).squeeze(-1))


def test_batches_broadcast() -> None:
    a, b = random_quats(5, 1), random_quats(3)
    assert rot.quat_multiply(a, b).shape == (5, 3, 4)
    assert rot.quat_rotate(random_quats(2, 1), torch.randn(7, 3, dtype=torch.float64)).shape == (2, 7, 3)
    assert rot.quat_identity(2, 3).shape == (2, 3, 4)
    assert rot.quat_identity(like=a).dtype == torch.float64


def test_continuous_quaternions_never_flip_and_are_the_same_turns() -> None:
    q = rot.exp_quat(torch.linspace(0, 20, 100, dtype=torch.float64)[:, None] * torch.tensor([0.6, 0.0, 0.8], dtype=torch.float64))
    flipped = q * torch.where(torch.rand(100) < 0.5, -1.0, 1.0)[:, None].double()
    smooth = rot.quat_continuous(flipped)
    assert bool(((smooth[1:] * smooth[:-1]).sum(-1) > 0).all())
    assert close((smooth * q).sum(-1).abs(), torch.ones(100, dtype=torch.float64))
    assert close(rot.quat_continuous(q[:1]), q[:1])


# --- slerp and distances --------------------------------------------------------------------------------------------


@given(rotvecs(), rotvecs())
def test_slerp_ends_and_constant_speed(v: torch.Tensor, w: torch.Tensor) -> None:
    a = rot.exp_quat(v)
    b = rot.quat_multiply(a, rot.exp_quat(w))
    t = torch.linspace(0, 1, 9, dtype=torch.float64)
    path = rot.slerp(a, b, t)
    assert same_turn(path[0], a, 1e-9)
    assert same_turn(path[-1], b, 1e-9)
    steps = rot.quat_distance(path[:-1], path[1:])
    assert close(steps, (w.norm() / 8).expand(8), 1e-9)
    assert close(path.norm(dim=-1), torch.ones(9, dtype=torch.float64), 1e-12)


def test_slerp_takes_the_short_way_whatever_the_signs() -> None:
    a, b, t = random_quats(40), random_quats(40), torch.rand(40, dtype=torch.float64)
    assert close(rot.quat_distance(rot.slerp(a, b, t), rot.slerp(a, -b, t)), torch.zeros(40, dtype=torch.float64), 1e-9)
    assert close(rot.quat_distance(a, rot.slerp(a, b, t)), t * rot.quat_distance(a, b), 1e-9)


@given(rotvecs(), rotvecs(), rotvecs())
def test_geodesic_distance_is_a_metric(u: torch.Tensor, v: torch.Tensor, w: torch.Tensor) -> None:
    A, B, C = rot.exp_matrix(u), rot.exp_matrix(v), rot.exp_matrix(w)
    ab, ba, bc, ac = (float(rot.geodesic_distance(*pair)) for pair in ((A, B), (B, A), (B, C), (A, C)))
    assert ab == pytest.approx(ba, abs=1e-9)
    assert ac <= ab + bc + 1e-9
    assert float(rot.geodesic_distance(A, A)) < 1e-7
    assert ab <= math.pi + 1e-12
    assert float(rot.quat_distance(rot.exp_quat(u), rot.exp_quat(v))) == pytest.approx(ab, abs=2e-7)


@given(rotvecs(), ANGLES, unit_vectors())
def test_geodesic_distance_is_the_angle_turned(v: torch.Tensor, angle: float, axis: torch.Tensor) -> None:
    A = rot.exp_matrix(v)
    assert float(rot.geodesic_distance(A, A @ rot.exp_matrix(axis * angle))) == pytest.approx(angle, abs=1e-9)


# --- Euler, 6D, projections -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_euler_round_trip(order: str) -> None:
    a, c = (torch.rand(2, 60, dtype=torch.float64) * 2 - 1) * math.pi
    b = (torch.rand(60, dtype=torch.float64) - 0.5) * math.pi * 0.999
    angles = torch.stack([a, b, c], dim=-1)
    assert close(rot.matrix_to_euler(order, rot.quat_to_matrix(rot.euler_to_quat(order, angles))), angles, 1e-9)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("short_of", [0.0, 1e-12, 1e-9, 1e-8, 1e-7, 1e-6, 1e-4])
def test_euler_angles_at_gimbal_lock_still_name_the_same_turn(order: str, sign: int, short_of: float) -> None:
    angles = torch.tensor([[0.7, sign * (math.pi / 2 - short_of), -1.9], [-3.0, sign * (math.pi / 2 - short_of), 3.1]], dtype=torch.float64)
    R = rot.quat_to_matrix(rot.euler_to_quat(order, angles))
    named = rot.matrix_to_euler(order, R)
    assert close(rot.quat_to_matrix(rot.euler_to_quat(order, named)), R, 2e-6)
    if short_of == 0.0:
        assert named[:, 2].tolist() == [0.0, 0.0]
    assert bool(torch.isfinite(rot.matrix_to_euler(order, R.float())).all())


@pytest.mark.parametrize("order", ORDERS)
def test_euler_order_means_intrinsic_turns_from_left_to_right(order: str) -> None:
    angles = torch.tensor([0.3, -0.5, 1.1], dtype=torch.float64)
    turns = [rot.quat_to_matrix(rot.axis_quat(axis, angle)) for axis, angle in zip(order, angles, strict=True)]
    assert close(rot.quat_to_matrix(rot.euler_to_quat(order, angles)), turns[0] @ turns[1] @ turns[2])


@given(rotvecs())
def test_rot6d_round_trip_and_layout(v: torch.Tensor) -> None:
    R = rot.exp_matrix(v)
    six = rot.matrix_to_rot6d(R)
    assert close(six, torch.cat([R[:, 0], R[:, 1]]))
    assert close(rot.rot6d_to_matrix(six), R)
    assert close(rot.rot6d_to_matrix(six * 3.7), R)  # lengths do not matter
    leaning = torch.cat([R[:, 0], R[:, 1] + 0.4 * R[:, 0]])  # nor does how far the second column leans
    assert close(rot.rot6d_to_matrix(leaning), R)


def test_nearest_rotation() -> None:
    R = rot.quat_to_matrix(random_quats(20))
    assert close(rot.nearest_rotation(R), R)
    stretch = torch.diag(torch.tensor([1.3, 0.7, 1.1], dtype=torch.float64))
    assert close(rot.nearest_rotation(R @ stretch), R, 1e-10)
    mirror = torch.diag(torch.tensor([-1.0, 0.5, 2.0], dtype=torch.float64))
    assert close(torch.linalg.det(rot.nearest_rotation(R @ mirror)), torch.ones(20, dtype=torch.float64))
    noisy = R + 0.1 * torch.randn_like(R)
    best = (rot.nearest_rotation(noisy) - noisy).norm(dim=(-1, -2))
    for _ in range(20):
        other = rot.nearest_rotation(noisy) @ rot.exp_matrix(0.05 * torch.randn(20, 3, dtype=torch.float64))
        assert bool((best <= (other - noisy).norm(dim=(-1, -2)) + 1e-12).all())


# --- turns from directions ------------------------------------------------------------------------------------------


@given(unit_vectors(), unit_vectors(), ANGLES)
def test_swing_takes_one_direction_to_the_other_by_the_smallest_turn(a: torch.Tensor, axis: torch.Tensor, angle: float) -> None:
    normal = torch.linalg.cross(a, axis)
    if normal.norm() < 1e-3:
        return
    b = rot.quat_rotate(rot.exp_quat(normal / normal.norm() * angle), a)
    q = rot.swing_between(a * 2.5, b * 0.3)
    assert close(rot.quat_rotate(q, a), b, 1e-9)
    assert float(rot.log_quat(q).norm()) == pytest.approx(angle, abs=1e-7)


@given(unit_vectors())
def test_swing_between_opposite_and_equal_directions(a: torch.Tensor) -> None:
    assert close(rot.quat_rotate(rot.swing_between(a, -a), a), -a, 1e-12)
    assert close(rot.swing_between(a, a), rot.quat_identity(like=a))


@pytest.mark.parametrize("short_of", [0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2])
def test_swing_between_nearly_opposite_directions_in_single_precision(short_of: float) -> None:
    a = torch.tensor([0.36, -0.48, 0.8])
    b = rot.quat_rotate(rot.exp_quat(torch.tensor([0.8, 0.6, 0.0]) * (math.pi - short_of)), a)
    assert close(rot.quat_rotate(rot.swing_between(a, b), a), b, 2e-6)


def test_yaw_turns_from_facing_z_towards_x() -> None:
    forward = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    turned = rot.quat_rotate(rot.yaw_quat(torch.tensor(math.pi / 2, dtype=torch.float64)), forward)
    assert close(turned, torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64))


# --- gradients ------------------------------------------------------------------------------------------------------

SIZES = [0.0, 1e-12, 1e-6, 9e-4, 1.1e-3, 0.5, 2.0, math.pi - 1e-3, math.pi - 1e-9, math.pi]
AXIS = torch.tensor([0.48, -0.6, 0.64], dtype=torch.float64)


@pytest.mark.parametrize("size", SIZES)
def test_gradients_equal_finite_differences(size: float) -> None:
    v = (AXIS * size).requires_grad_()
    assert gradcheck(rot.exp_quat, (v,))
    assert gradcheck(rot.exp_matrix, (v,))
    q = rot.exp_quat(v.detach()).requires_grad_()
    assert gradcheck(rot.quat_to_matrix, (q,))
    assert gradcheck(lambda x: rot.quat_rotate(x, AXIS), (q,))
    if size < math.pi - 1e-6:  # at half a turn the logarithm jumps: its gradient there is one-sided
        assert gradcheck(rot.log_quat, (q,))
        assert gradcheck(lambda x: rot.slerp(x, rot.quat_identity(like=x), torch.tensor(0.3).double()), (q,))
    six = rot.matrix_to_rot6d(rot.exp_matrix(v.detach())).requires_grad_()
    assert gradcheck(rot.rot6d_to_matrix, (six,))


@pytest.mark.parametrize("size", SIZES)
def test_gradients_are_finite_at_the_identity_and_at_half_a_turn(size: float) -> None:
    other = AXIS.flip(0)
    functions = {
        "log_matrix": lambda v: rot.log_matrix(rot.exp_matrix(v)),
        "log_quat": lambda v: rot.log_quat(rot.exp_quat(v)),
        "geodesic": lambda v: rot.geodesic_distance(rot.exp_matrix(v), torch.eye(3).to(v)),
        "distance": lambda v: rot.quat_distance(rot.exp_quat(v), rot.quat_identity(like=v)),
        "slerp": lambda v: rot.slerp(rot.exp_quat(v), rot.quat_identity(like=v), torch.tensor(0.5).to(v)),
        "matrix_to_quat": lambda v: rot.matrix_to_quat(rot.exp_matrix(v)),
        "euler": lambda v: rot.matrix_to_euler("zyx", rot.exp_matrix(v)),
        "swing": lambda v: rot.swing_between(other.to(v), rot.quat_rotate(rot.exp_quat(v), other.to(v))),
    }
    for name, function in functions.items():
        for dtype in (torch.float64, torch.float32):
            v = (AXIS * size).to(dtype).requires_grad_()
            (gradient,) = torch.autograd.grad(function(v).sum(), v)
            assert bool(torch.isfinite(gradient).all()), (name, dtype)


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-6, 9e-4, 1.1e-3, 0.5, 2.0, 3.0])
def test_log_of_exp_has_the_gradient_of_the_identity(size: float) -> None:
    J = torch.autograd.functional.jacobian(lambda v: rot.log_matrix(rot.exp_matrix(v)), AXIS * size)
    assert close(J, EYE, 1e-8)


@pytest.mark.parametrize("order", ORDERS)
def test_euler_gradients_equal_finite_differences(order: str) -> None:
    angles = torch.tensor([0.4, -0.7, 2.0], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: rot.matrix_to_euler(order, rot.quat_to_matrix(rot.euler_to_quat(order, x))), (angles,))


@given(st.integers(0, 2**31))
def test_swing_gradients_equal_finite_differences(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.randn(3, dtype=torch.float64, generator=generator) for _ in range(2))
    cosine = float(torch.nn.functional.cosine_similarity(a, b, dim=0))
    if abs(cosine) < 0.02 or abs(cosine) > 0.99 or min(a.norm(), b.norm()) < 0.3:
        return
    assert gradcheck(rot.swing_between, (a.requires_grad_(), b.requires_grad_()))
