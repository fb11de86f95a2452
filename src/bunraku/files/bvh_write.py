"""A motion as BVH: Kimodo's style for SOMA skeletons, a plain style that every reader takes for all others."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.files.axes import CENTIMETRE
from bunraku.files.bvh_known import WRAPPER, is_soma, seed_frames
from bunraku.files.disk import write_text
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.motion import Motion, is_finite
from bunraku.kinematics.rest import rebase
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import matrix_to_euler, quat_normalize, quat_to_matrix

_TURNS = "Zrotation Yrotation Xrotation"
_SHIFTS_AND_TURNS = f"Xposition Yposition Zposition {_TURNS}"
_KIMODO_HIPS_OFFSET = (0.0, 100.0, 0.0)  # [cm] whatever the body; the position channels replace it
_MOVED = 1e-6  # [m] a joint that never leaves its offset by more gets no position channels
_BLOCK = 256  # frames turned at a time: small enough for the processor's cache


@dataclass(frozen=True, kw_only=True)
class _Style:
    wrapped: bool  # a motionless root joint above the real one
    end_sites: bool


def save_bvh(motion: Motion, path: str | os.PathLike[str], *, tpose: bool = False) -> None:
    """Writes a motion as BVH in centimetres; see `bunraku.files.bvh` for the two styles and for what BVH cannot hold.

    `tpose` makes zero rotations mean the rest pose (of a SOMA skeleton: the standard T-pose), for programs that take the pose of
    a BVH's OFFSETs for the rest pose. Without it the joint frames are kept exactly; SOMA's are Kimodo's.
    """
    if not is_finite(motion):
        raise BadValue(f"the motion to be written to '{path}' holds numbers that are not finite; repair it first.")
    for joint in motion.skeleton.joints:
        if not joint or joint != " ".join(joint.splitlines()).strip() or joint.endswith("{"):
            raise BadValue(f"the joint name {joint!r} cannot be written as BVH; a name is one line without white space around it, and does not end with '{{'.")
    soma = is_soma(motion.skeleton)
    if soma and not tpose:
        motion = rebase(motion, seed_frames(motion.skeleton).transpose(-1, -2))
    elif tpose and not soma:
        motion = rebase(motion, rest_poses(motion.skeleton).R_world_joint)
    style = _Style(wrapped=soma, end_sites=not soma)
    order, moves = _depth_first(motion.skeleton), _moving_joints(motion)
    lines = [*_hierarchy(motion.skeleton, order, moves, style), "MOTION", f"Frames: {len(motion)}", f"Frame Time: {1 / motion.fps!r}"]
    values = _values(motion, order, moves)
    row = " ".join(["0.000000"] * (6 if style.wrapped else 0) + ["%.6f"] * values.shape[1])
    lines += [row % tuple(frame) for frame in values.tolist()]
    write_text(path, "\n".join(lines) + "\n")


def _depth_first(skeleton: Skeleton) -> list[int]:
    """The order in which BVH nests joints; children keep theirs."""
    order, waiting = [], [0]
    while waiting:
        order.append(waiting.pop())
        waiting.extend(reversed(skeleton.children[order[-1]]))
    return order


def _moving_joints(motion: Motion) -> Bool[Tensor, " J"]:
    """Which joints need position channels: the root, and those that leave their offset."""
    moves = torch.zeros(len(motion.skeleton), dtype=torch.bool)
    if motion.translations is not None:
        moves = ((motion.translations - motion.skeleton.offsets.to(motion.translations)).abs() > _MOVED).any(dim=0).any(dim=-1).cpu()
    moves[0] = True
    return moves


def _hierarchy(skeleton: Skeleton, order: list[int], moves: Bool[Tensor, " J"], style: _Style) -> list[str]:
    offsets = (skeleton.offsets.double() / CENTIMETRE).tolist()
    lines, depths = ["HIERARCHY"], {-1: -1}
    if style.wrapped:
        offsets[0] = _KIMODO_HIPS_OFFSET
        depths[-1] = 0
        lines += _joint("ROOT", WRAPPER, 0, (0.0, 0.0, 0.0), _SHIFTS_AND_TURNS)
    for place, joint in enumerate(order):
        depth = depths[joint] = depths[skeleton.parents[joint]] + 1
        kind = "JOINT" if place or style.wrapped else "ROOT"
        lines += _joint(kind, skeleton.joints[joint], depth, offsets[joint], _SHIFTS_AND_TURNS if moves[joint] else _TURNS)
        inside = "  " * (depth + 1)
        if style.end_sites and (joint in skeleton.tips or not skeleton.children[joint]):
            tip = [value / CENTIMETRE for value in skeleton.tips.get(joint, (0.0, 0.0, 0.0))]
            lines += [f"{inside}End Site", f"{inside}{{", f"{inside}  OFFSET {_numbers(tip)}", f"{inside}}}"]
        next_depth = depths[skeleton.parents[order[place + 1]]] + 1 if place + 1 < len(order) else 0
        lines += ["  " * closed + "}" for closed in range(depth, next_depth - 1, -1)]
    return lines


def _joint(kind: str, name: str, depth: int, offset: tuple[float, ...] | list[float], channels: str) -> list[str]:
    indent = "  " * depth
    return [f"{indent}{kind} {name}", f"{indent}{{", f"{indent}  OFFSET {_numbers(offset)}", f"{indent}  CHANNELS {len(channels.split())} {channels}"]


def _numbers(values: tuple[float, ...] | list[float]) -> str:
    return " ".join(f"{value:.6f}" for value in values)


def _values(motion: Motion, order: list[int], moves: Bool[Tensor, " J"]) -> Float[np.ndarray, "F C"]:
    """The channels of every joint in the order of the file [cm, degrees]."""
    degrees = np.rad2deg(euler_zyx(motion.quats))
    columns = []
    for joint in order:
        if moves[joint]:
            p = motion.root_position if joint == 0 or motion.translations is None else motion.translations[:, joint]
            columns.append(p.detach().cpu().double().numpy() / CENTIMETRE)
        columns.append(degrees[:, joint])
    return np.concatenate(columns, axis=1)


def euler_zyx(quats: Float[Tensor, "F J 4"]) -> Float[np.ndarray, "F J 3"]:
    """Angles of `Rz(a) Ry(b) Rx(c)` [rad] that run on from frame to frame without jumps, as far as the motion allows.

    Two triples make the same turn: (a, b, c) and (a + π, π − b, c + π). Each frame takes the one nearer to the frame before. How
    far two frames are apart depends only on whether one changes triples between them, not on which triple one is at, so the
    changes can be found for all frames at once and summed up. Then each angle is unwrapped: no step is larger than π.
    """
    blocks = (matrix_to_euler("zyx", quat_to_matrix(quat_normalize(block.detach().cpu().double()))) for block in quats.split(_BLOCK))
    a, b, c = np.moveaxis(_through_gimbal_lock(torch.cat(list(blocks)).numpy()), -1, 0)
    da, dc = np.diff(a, axis=0), np.diff(c, axis=0)
    stay = _wrapped(da) ** 2 + np.diff(b, axis=0) ** 2 + _wrapped(dc) ** 2
    change = _wrapped(da + np.pi) ** 2 + _wrapped(np.pi - b[1:] - b[:-1]) ** 2 + _wrapped(dc + np.pi) ** 2
    other = np.concatenate([np.zeros_like(b[:1], dtype=bool), np.cumsum(change < stay, axis=0) % 2 == 1])
    angles = np.stack([np.where(other, a + np.pi, a), np.where(other, np.pi - b, b), np.where(other, c + np.pi, c)], axis=-1)
    return np.unwrap(angles, axis=0)


def _through_gimbal_lock(angles: Float[np.ndarray, "F J 3"]) -> Float[np.ndarray, "F J 3"]:
    """Where b = ±π/2 only a ∓ c is determined and c was set to 0: there c stays what it was before, and a makes up for it."""
    a, b, c = np.moveaxis(angles, -1, 0)
    locked = np.abs(np.cos(b)) < 1e-6
    if not locked.any():
        return angles
    frames = np.arange(len(b))[:, None]
    last_free = np.maximum.accumulate(np.where(locked, 0, frames), axis=0)
    held = np.take_along_axis(c, last_free, axis=0)
    return np.stack([np.where(locked, a + np.sign(b) * held, a), b, np.where(locked, held, c)], axis=-1)


def _wrapped(angle: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return (angle + np.pi) % (2 * np.pi) - np.pi
