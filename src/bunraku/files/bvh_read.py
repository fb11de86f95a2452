"""What the numbers of a BVH mean: the unit, the up-axis, the frame rate, and joint turns from Euler angles."""

from __future__ import annotations

import os
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import reduce
from math import isfinite
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue, FormatProblem
from bunraku.files.axes import CENTIMETRE, CMU_UNIT, Frame, rotations_from, vectors_from
from bunraku.files.bvh_grammar import BvhTable, parse_bvh
from bunraku.files.bvh_known import recognise
from bunraku.files.disk import read_bytes
from bunraku.kinematics.forward import pose_joints
from bunraku.kinematics.motion import Motion, Provenance
from bunraku.kinematics.roles import infer_roles
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import axis_quat, matrix_to_quat, quat_multiply, quat_to_matrix

_LARGEST_IN_METRES = 3.5  # a body whose rest pose spans more units than this is not measured in metres
_SMALLEST_IN_CENTIMETRES = 100.0  # only asked of skeletons with the CMU database's names: its bodies span about 30 units
_MOVED = 1e-6  # [m] a position channel that stays this close to its OFFSET says nothing new
_BLOCK = 256  # frames turned at a time: small enough for the processor's cache, nine times as fast as all at once


def load_bvh(path: str | os.PathLike[str], *, unit: float | None = None, ours: bool = False) -> Motion:
    """Reads a BVH of any dialect; see `bunraku.files.bvh` for what is assumed. `unit` is the length of its unit [m].

    `ours` says that `save_bvh` wrote the file, in centimetres and Y-up, so that neither need be guessed.
    """
    if unit is not None and not (isfinite(unit) and unit > 0):
        raise BadValue(f"the unit of a BVH is a positive number of metres (0.01 for centimetres); got {unit}.")
    table = parse_bvh(read_bytes(path), os.fspath(path))
    notes = dict(table.notes)
    fps = _frame_rate(table.frame_time, path, notes)
    if unit is None:
        unit = CENTIMETRE if ours else _guess_unit(table, notes)
    motion = _build(table, unit, fps, Provenance(source=os.fspath(path), notes=notes), name=Path(path).stem)
    return recognise(motion if ours else _stood_up(motion))


def _frame_rate(text: str, path: str | os.PathLike[str], notes: dict[str, str]) -> float:
    """Frames per second; a whole number where the written digits allow one ('.0083333' is 120, '0.0333' is 30)."""
    try:
        seconds = Decimal(text)
    except InvalidOperation:
        seconds = Decimal("nan")
    if not seconds.is_finite() or not 1e-9 < seconds < 1e9:
        raise FormatProblem(f"'{path}' has the Frame Time '{text}'; a positive number of seconds is needed, such as 0.033333 for 30 frames per second.")
    fps = 1 / float(seconds)
    whole, last_digit = round(fps), 10.0 ** int(seconds.as_tuple().exponent)
    if whole and abs(float(seconds) - 1 / whole) <= last_digit and abs(fps - whole) <= 0.0025 * whole:
        if abs(fps - whole) > 1e-4 * whole:
            notes["fps"] = f"Frame Time {text} taken for {whole} frames per second"
        return float(whole)
    return float(f"{fps:.9g}")  # 1 / (1 / 29.97) is 29.97 again


def _guess_unit(table: BvhTable, notes: dict[str, str]) -> float:
    """BVH names no unit: metres, centimetres or the CMU database's, from how far the rest pose spans and from its names."""
    rest = table.offsets.copy()
    for joint, parent in enumerate(table.parents[1:], start=1):
        rest[joint] += rest[parent]
    points = np.concatenate([rest, *([rest[joint] + tip] for joint, tip in table.tips.items())])
    span = float(np.ptp(points, axis=0).max())
    if 0 < span <= _LARGEST_IN_METRES:
        unit = 1.0
    elif {"LHipJoint", "RHipJoint"} <= set(table.names) and span < _SMALLEST_IN_CENTIMETRES:
        unit = CMU_UNIT
    else:
        unit = CENTIMETRE
    notes["unit"] = f"{unit:.6g} m assumed, as the rest pose spans {span:.4g} units"
    return unit


def _build(table: BvhTable, unit: float, fps: float, provenance: Provenance, name: str) -> Motion:
    offsets = torch.from_numpy(table.offsets * unit)
    skeleton = Skeleton(
        name=name,
        joints=table.names,
        parents=table.parents,
        offsets=offsets.float(),
        tips={joint: (x * unit, y * unit, z * unit) for joint, (x, y, z) in table.tips.items() if any((x, y, z))},
    )
    positions = _positions(table, unit)
    moved = [joint for joint, p in positions.items() if joint and (p - offsets[joint]).abs().max() > _MOVED]
    translations = None
    if moved:
        translations = skeleton.offsets.expand(len(table.values), -1, -1).clone()
        for joint in moved:
            translations[:, joint] = positions[joint].float()
    return Motion(
        skeleton=replace(skeleton, roles=infer_roles(skeleton)),
        fps=fps,
        root_position=positions[0].float() if 0 in positions else skeleton.offsets[0].expand(len(table.values), 3).clone(),
        quats=_quats(table),
        translations=translations,
        provenance=provenance,
    )


def _columns(table: BvhTable) -> list[int]:
    """The column where each joint's channels begin."""
    return np.cumsum([0, *map(len, table.channels)])[:-1].tolist()


def _positions(table: BvhTable, unit: float) -> dict[int, Float[Tensor, "F 3"]]:
    """For joints with position channels: where they sit in their parents [m]. An axis without a channel stays at its OFFSET."""
    positions = {}
    for joint, (channels, column) in enumerate(zip(table.channels, _columns(table), strict=True)):
        if any(channel.endswith("position") for channel in channels):
            values = np.tile(table.offsets[joint], (len(table.values), 1))
            for i, channel in enumerate(channels):
                if channel.endswith("position"):
                    values[:, "xyz".index(channel[0])] = table.values[:, column + i]
            positions[joint] = torch.from_numpy(values * unit)
    return positions


def _quats(table: BvhTable) -> Float[Tensor, "F J 4"]:
    """Joint turns: the rotation channels of a joint, in the order they are written, each about the axes turned so far."""
    by_order: dict[str, tuple[list[int], list[list[int]]]] = {}
    for joint, (channels, column) in enumerate(zip(table.channels, _columns(table), strict=True)):
        rotations = [i for i, channel in enumerate(channels) if channel.endswith("rotation")]
        joints, columns = by_order.setdefault("".join(channels[i][0] for i in rotations), ([], []))
        joints.append(joint)
        columns.append([column + i for i in rotations])
    quats = torch.zeros(len(table.values), len(table.names), 4)
    quats[..., 0] = 1
    for order, (joints, columns) in by_order.items():
        if order:
            for start in range(0, len(quats), _BLOCK):
                angles = torch.from_numpy(np.deg2rad(table.values[start : start + _BLOCK][:, columns]))
                turns = (axis_quat(axis, angles[..., i]).float() for i, axis in enumerate(order))
                quats[start : start + _BLOCK, joints] = reduce(quat_multiply, turns)
    return quats


def _stood_up(motion: Motion) -> Motion:
    """BVH is Y-up by habit. Where hips and head lie along +Z from the feet, both at rest and in the first frame, it is Z-up instead.

    The head alone would not do: a horse's lies ahead of its feet.
    """
    skeleton = motion.skeleton
    if not skeleton.has("hips", "head", "left_foot", "right_foot"):
        return motion
    first = motion[0:1]
    turned = pose_joints(skeleton, first.root_position, quat_to_matrix(first.quats), first.translations).p_world_joint[0]
    at_rest = pose_joints(skeleton, skeleton.offsets[0], quat_to_matrix(skeleton.rest_quats)).p_world_joint
    for p_world_joint in (turned, at_rest):
        feet = (p_world_joint[skeleton.role("left_foot")] + p_world_joint[skeleton.role("right_foot")]) / 2
        for role in ("hips", "head"):
            x, y, z = (p_world_joint[skeleton.role(role)] - feet).tolist()
            if z < 2 * max(abs(x), abs(y)):
                return motion
    tips = {joint: tuple(vectors_from(Frame.Z_UP_Y_BACK, torch.tensor(tip)).tolist()) for joint, tip in skeleton.tips.items()}
    return replace(
        motion,
        skeleton=replace(skeleton, offsets=vectors_from(Frame.Z_UP_Y_BACK, skeleton.offsets), tips=tips),
        root_position=vectors_from(Frame.Z_UP_Y_BACK, motion.root_position),
        quats=matrix_to_quat(rotations_from(Frame.Z_UP_Y_BACK, quat_to_matrix(motion.quats))),
        translations=None if motion.translations is None else vectors_from(Frame.Z_UP_Y_BACK, motion.translations),
        provenance=motion.provenance.noted(up="the body stands along +Z, so the file was taken for Z-up, facing −Y"),
    )
