"""Rotations in torch: unit quaternions (w x y z), matrices, rotation vectors, 6D and Euler angles.

Every function takes any leading batch shape, keeps dtype and device, and is differentiable; the gradient stays finite at the
identity, and logarithms stay accurate up to a turn of π. All angles are radians. RoMa is the oracle in the tests; it is not used
here because importing it costs more than everything else that `bunraku` loads together.

The convention behind every name: `R_a_b` turns b-coordinates into a-coordinates, so `R_a_c = R_a_b @ R_b_c`.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

Quat = Float[Tensor, "*batch 4"]
Matrix = Float[Tensor, "*batch 3 3"]
Vector = Float[Tensor, "*batch 3"]

_AXES = {"x": 0, "y": 1, "z": 2}


# --- quaternions ---------------------------------------------------------------------------------------------------


def quat_identity(*batch: int, like: Tensor | None = None) -> Tensor:
    """`(*batch, 4)` unit quaternions that turn nothing, with the dtype and device of `like`."""
    quat = torch.zeros(*batch, 4, dtype=like.dtype if like is not None else None, device=like.device if like is not None else None)
    quat[..., 0] = 1
    return quat


def quat_normalize(quat: Quat) -> Quat:
    return torch.nn.functional.normalize(quat, dim=-1)


def quat_conjugate(quat: Quat) -> Quat:
    """The inverse turn of a unit quaternion."""
    return torch.cat([quat[..., :1], -quat[..., 1:]], dim=-1)


def quat_multiply(a: Float[Tensor, "*a 4"], b: Float[Tensor, "*b 4"]) -> Float[Tensor, "*ab 4"]:
    """First b, then a: `R(a) @ R(b)`. Batches broadcast."""
    aw, ax, ay, az = a.unbind(-1)
    bw, bx, by, bz = b.unbind(-1)
    return torch.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        dim=-1,
    )


def quat_rotate(quat: Float[Tensor, "*a 4"], vector: Float[Tensor, "*b 3"]) -> Float[Tensor, "*ab 3"]:
    """`R(quat) @ vector`. Batches broadcast."""
    w, u = quat[..., :1], quat[..., 1:]
    u, vector = torch.broadcast_tensors(u, vector)
    t = 2 * torch.linalg.cross(u, vector)
    return vector + w * t + torch.linalg.cross(u, t)


def quat_continuous(quat: Float[Tensor, "*batch F 4"]) -> Float[Tensor, "*batch F 4"]:
    """The same turns with signs chosen so that neighbours along the F axis lie on one hemisphere (no flips for interpolation)."""
    if quat.shape[-2] < 2:
        return quat
    flips = (quat[..., 1:, :] * quat[..., :-1, :]).sum(-1) < 0
    signs = 1 - 2 * (torch.cumsum(flips, dim=-1) % 2).to(quat.dtype)
    return torch.cat([quat[..., :1, :], quat[..., 1:, :] * signs[..., None]], dim=-2)


def slerp(a: Float[Tensor, "*a 4"], b: Float[Tensor, "*b 4"], t: Float[Tensor, "*t"]) -> Float[Tensor, "*ab 4"]:
    """The shortest great-circle path from a (t = 0) to b (t = 1)."""
    dot = (a * b).sum(-1, keepdim=True)
    b = torch.where(dot < 0, -b, b)
    turn = log_quat(quat_multiply(quat_conjugate(a), b))
    return quat_multiply(a, exp_quat(turn * t[..., None]))


# --- logarithm and exponential --------------------------------------------------------------------------------------


def exp_quat(rotvec: Vector) -> Quat:
    """The unit quaternion of a rotation vector (axis × angle)."""
    square = (rotvec * rotvec).sum(-1, keepdim=True)
    small = square < 1e-6
    half = 0.5 * torch.sqrt(torch.where(small, torch.ones_like(square), square))
    # sin(θ/2)/θ and cos(θ/2), by Taylor series where θ → 0 so that the gradient of the square root never appears there
    scale = torch.where(small, 0.5 - square / 48 + square * square / 3840, torch.sin(half) / (2 * half))
    cosine = torch.where(small, 1 - square / 8 + square * square / 384, torch.cos(half))
    return torch.cat([cosine, rotvec * scale], dim=-1)


def log_quat(quat: Quat) -> Vector:
    """The rotation vector of a unit quaternion, angle in [0, π]; q and −q give the same vector."""
    quat = torch.where(quat[..., :1] < 0, -quat, quat)
    w, u = quat[..., :1], quat[..., 1:]
    square = (u * u).sum(-1, keepdim=True)
    small = square < 1e-8
    sine = torch.sqrt(torch.where(small, torch.ones_like(square), square))
    # θ = 2·atan2(|u|, w) keeps its accuracy at θ → π, where acos(w) would lose half the digits
    safe_w = torch.where(small, torch.ones_like(w), w)
    scale = torch.where(small, (2 - 2 * square / (3 * w.clamp_min(0.5) ** 2)) / w.clamp_min(0.5), 2 * torch.atan2(sine, safe_w) / sine)
    return u * scale


def exp_matrix(rotvec: Vector) -> Matrix:
    return quat_to_matrix(exp_quat(rotvec))


def log_matrix(R: Matrix) -> Vector:
    return log_quat(matrix_to_quat(R))


# --- matrices -------------------------------------------------------------------------------------------------------


def quat_to_matrix(quat: Quat) -> Matrix:
    """The rotation matrix of a unit quaternion."""
    return torch.stack(_matrix_entries(*quat.unbind(-1)), dim=-1).unflatten(-1, (3, 3))


def quat_to_matrix_entries_first(quat: Float[Tensor, "4 *batch"]) -> Float[Tensor, "3 3 *batch"]:
    """`quat_to_matrix` for long batches, with components in front: every entry of the matrix is one contiguous row."""
    return torch.stack(_matrix_entries(*quat.unbind(0))).unflatten(0, (3, 3))


def _matrix_entries(w: Tensor, x: Tensor, y: Tensor, z: Tensor) -> list[Tensor]:
    xx, yy, zz = x * x, y * y, z * z
    xy, xz, yz, wx, wy, wz = x * y, x * z, y * z, w * x, w * y, w * z
    entries = [1 - 2 * (yy + zz), 2 * (xy - wz), 2 * (xz + wy)]
    entries += [2 * (xy + wz), 1 - 2 * (xx + zz), 2 * (yz - wx)]
    return [*entries, 2 * (xz - wy), 2 * (yz + wx), 1 - 2 * (xx + yy)]


def matrix_to_quat(R: Matrix) -> Quat:
    """The unit quaternion of a rotation matrix, w ≥ 0.

    Four formulas exist, each dividing by another component; the one with the largest divisor is taken, so that no turn is singular.
    """
    m00, m11, m22 = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    squares = torch.stack([1 + m00 + m11 + m22, 1 + m00 - m11 - m22, 1 - m00 + m11 - m22, 1 - m00 - m11 + m22], dim=-1)
    w_x, w_y, w_z = R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]
    x_y, x_z, y_z = R[..., 1, 0] + R[..., 0, 1], R[..., 0, 2] + R[..., 2, 0], R[..., 2, 1] + R[..., 1, 2]
    s0, s1, s2, s3 = squares.unbind(-1)
    candidates = torch.stack(
        [
            torch.stack([s0, w_x, w_y, w_z], dim=-1),
            torch.stack([w_x, s1, x_y, x_z], dim=-1),
            torch.stack([w_y, x_y, s2, y_z], dim=-1),
            torch.stack([w_z, x_z, y_z, s3], dim=-1),
        ],
        dim=-2,
    )
    best = squares.argmax(dim=-1)[..., None, None].expand(*squares.shape[:-1], 1, 4)
    quat = quat_normalize(torch.gather(candidates, -2, best).squeeze(-2))
    return torch.where(quat[..., :1] < 0, -quat, quat)


def nearest_rotation(M: Matrix) -> Matrix:
    """The rotation closest to M in the Frobenius norm (polar decomposition; a mirror is undone)."""
    U, _, Vh = torch.linalg.svd(M)
    sign = torch.linalg.det(U @ Vh)
    flip = torch.ones_like(M[..., 0])
    flip = torch.cat([flip[..., :2], sign[..., None]], dim=-1)
    return (U * flip[..., None, :]) @ Vh


def geodesic_distance(R_a: Float[Tensor, "*a 3 3"], R_b: Float[Tensor, "*b 3 3"]) -> Float[Tensor, "*ab"]:
    """The angle of the turn from a to b, in [0, π]."""
    return log_matrix(R_a.transpose(-1, -2) @ R_b).norm(dim=-1)


def quat_distance(a: Float[Tensor, "*a 4"], b: Float[Tensor, "*b 4"]) -> Float[Tensor, "*ab"]:
    """The angle of the turn from a to b, in [0, π]."""
    return log_quat(quat_multiply(quat_conjugate(a), b)).norm(dim=-1)


# --- 6D: the first two columns of the matrix ------------------------------------------------------------------------


def matrix_to_rot6d(R: Matrix) -> Float[Tensor, "*batch 6"]:
    """The first two columns, column after column: [c0 | c1]."""
    return R[..., :2].transpose(-1, -2).flatten(-2)


def rot6d_to_matrix(rot6d: Float[Tensor, "*batch 6"]) -> Matrix:
    """Gram–Schmidt in the released order: x = ĉ0, z = x × c1 normalised, y = z × x."""
    x = torch.nn.functional.normalize(rot6d[..., :3], dim=-1)
    z = torch.nn.functional.normalize(torch.linalg.cross(x, rot6d[..., 3:]), dim=-1)
    return torch.stack([x, torch.linalg.cross(z, x), z], dim=-1)


# --- Euler angles ---------------------------------------------------------------------------------------------------


def axis_quat(axis: str, angle: Float[Tensor, "*batch"]) -> Quat:
    """The turn by `angle` about a coordinate axis 'x', 'y' or 'z'."""
    quat = torch.zeros(*angle.shape, 4, dtype=angle.dtype, device=angle.device)
    parts = list(quat.unbind(-1))
    parts[0] = torch.cos(angle / 2)
    parts[1 + _AXES[axis]] = torch.sin(angle / 2)
    return torch.stack(parts, dim=-1)


def euler_to_quat(order: str, angles: Vector) -> Quat:
    """Intrinsic Euler angles: order 'zyx' with angles (a, b, c) is `Rz(a) @ Ry(b) @ Rx(c)`, as BVH channels are read."""
    first, second, third = (axis_quat(axis, angles[..., i]) for i, axis in enumerate(order.lower()))
    return quat_multiply(quat_multiply(first, second), third)


def matrix_to_euler(order: str, R: Matrix) -> Vector:
    """Angles of `R = R_i(a) @ R_j(b) @ R_k(c)` for three different axes; at gimbal lock (|b| = π/2) c is set to 0."""
    i, j, k = (_AXES[axis] for axis in order.lower())
    parity = 1.0 if (j - i) % 3 == 1 else -1.0
    sine = (parity * R[..., i, k]).clamp(-1, 1)
    cosine = torch.hypot(R[..., i, i], R[..., i, j])
    middle = torch.atan2(sine, cosine)
    locked = cosine < 1e-6
    first = torch.where(
        locked,
        torch.atan2(parity * R[..., k, j], R[..., j, j]),
        torch.atan2(-parity * R[..., j, k], R[..., k, k]),
    )
    third = torch.where(locked, torch.zeros_like(middle), torch.atan2(-parity * R[..., i, j], R[..., i, i]))
    return torch.stack([first, middle, third], dim=-1)


# --- building turns from directions ---------------------------------------------------------------------------------


def swing_between(v_from: Float[Tensor, "*a 3"], v_to: Float[Tensor, "*b 3"]) -> Float[Tensor, "*ab 4"]:
    """The smallest turn that takes the direction of v_from to that of v_to; opposite directions turn about any normal."""
    a, b = torch.broadcast_tensors(torch.nn.functional.normalize(v_from, dim=-1), torch.nn.functional.normalize(v_to, dim=-1))
    # Beyond a right angle: half a turn about the normal, then the small rest. 1 + a·b alone loses its digits towards opposite directions.
    behind = (a * b).sum(-1, keepdim=True) < 0
    start = torch.where(behind, -a, a)
    rest = quat_normalize(torch.cat([1 + (start * b).sum(-1, keepdim=True), torch.linalg.cross(start, b)], dim=-1))
    half = torch.cat([torch.zeros_like(a[..., :1]), _common_normal(a, b)], dim=-1)
    return torch.where(behind, quat_multiply(rest, half), rest)


def _common_normal(a: Vector, b: Vector) -> Vector:
    """The unit normal of two unit vectors; where they are parallel, any normal of a."""
    u = torch.linalg.cross(a, b)
    u = u - (u * a).sum(-1, keepdim=True) * a
    # any vector not parallel to a gives a normal: take the coordinate axis that a has least of
    helper = torch.nn.functional.one_hot(a.abs().argmin(dim=-1), 3).to(a)
    parallel = (u * u).sum(-1, keepdim=True) < 1e-14
    return torch.nn.functional.normalize(torch.where(parallel, torch.linalg.cross(a, helper), u), dim=-1)


def yaw_quat(yaw: Float[Tensor, "*batch"]) -> Quat:
    """A turn about +Y (up): yaw 0 faces +Z, positive yaw turns towards +X (the character's left)."""
    return axis_quat("y", yaw)
