"""Constraints in another stretch of time, at another frame rate, or elsewhere on the ground. Rows stay in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import torch
from jaxtyping import Int
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.kinematics.edit import place
from bunraku.kinematics.motion import Motion
from bunraku.math.rotations import quat_multiply, quat_rotate, yaw_quat
from bunraku.timeline.constraints import Constraint, EffectorTarget, FootPlan, Heading, PoseKey, RootPath


def crop_constraints(constraints: Sequence[Constraint], start: int, stop: int) -> list[Constraint]:
    """What holds in the frames [start, stop), with `start` as the new frame 0; constraints that hold nowhere there are dropped."""
    if not 0 <= start < stop:
        raise BadValue(f"the frames from {start} up to {stop} hold nothing; the end must lie after the start, and the start not below 0.")
    cropped = []
    for constraint in constraints:
        rows = ((constraint.frames >= start) & (constraint.frames < stop)).nonzero()[:, 0]
        if len(rows):
            cropped.append(_rows(constraint, rows, constraint.frames[rows] - start))
    return cropped


def shift_constraints(constraints: Sequence[Constraint], frames: int) -> list[Constraint]:
    """Everything that many frames later, or, below 0, earlier; nothing may end up before the first frame."""
    for number, constraint in enumerate(constraints):
        first = int(constraint.frames.min()) if len(constraint.frames) else 0
        if first + frames < 0:
            raise BadValue(f"constraints[{number}] holds at frame {first} and cannot move {-frames} frames earlier; crop it with crop_constraints.")
    return [replace(constraint, frames=constraint.frames + frames) for constraint in constraints]


def retime_constraints(constraints: Sequence[Constraint], fps_from: float, fps_to: float) -> list[Constraint]:
    """The frames nearest in time at another frame rate; of several that fall together the first in the list stays."""
    if fps_from == fps_to:
        return list(constraints)
    retimed = []
    for constraint in constraints:
        frames = (constraint.frames.double() * (fps_to / fps_from)).round().long()
        seen: dict[int, int] = {}
        for row, frame in enumerate(frames.tolist()):
            seen.setdefault(frame, row)
        rows = torch.tensor(list(seen.values()), dtype=torch.long)
        retimed.append(_rows(constraint, rows, frames[rows]))
    return retimed


def place_constraints(constraints: Sequence[Constraint], p: tuple[float, float], yaw: float) -> list[Constraint]:
    """Everything turned by `yaw` [rad] about the world's up axis, then moved by `p` = (x, z) [m]: as `kinematics.edit.place` moves motions."""
    return [_placed(constraint, p, yaw) for constraint in constraints]


def _placed(constraint: Constraint, p: tuple[float, float], yaw: float) -> Constraint:
    turn = yaw_quat(torch.tensor(float(yaw), dtype=torch.float64))

    def moved(point: Tensor) -> Tensor:
        shift = torch.tensor([p[0], 0.0, p[1]], dtype=torch.float64)
        return (quat_rotate(turn, point.double()) + shift).to(point)

    def moved_xz(xz: Tensor) -> Tensor:
        return moved(torch.stack([xz[..., 0], torch.zeros_like(xz[..., 0]), xz[..., 1]], dim=-1))[..., [0, 2]]

    match constraint:
        case RootPath():
            return replace(constraint, xz=moved_xz(constraint.xz), heading=None if constraint.heading is None else constraint.heading + yaw)
        case Heading():
            return replace(constraint, heading=constraint.heading + yaw)
        case PoseKey():
            smooth_xz = None if constraint.smooth_xz is None else moved_xz(constraint.smooth_xz)
            return replace(constraint, poses=place(constraint.poses, p, yaw), smooth_xz=smooth_xz)
        case EffectorTarget():
            position = None if constraint.position is None else moved(constraint.position)
            quats = None if constraint.quats is None else quat_multiply(turn.to(constraint.quats), constraint.quats)
            return replace(constraint, position=position, quats=quats)
        case FootPlan():
            return constraint


def _rows(constraint: Constraint, rows: Int[Tensor, " N"], frames: Int[Tensor, " N"]) -> Constraint:
    """Some rows of every array, at new frames."""
    chosen: dict[str, object] = {}
    for field in fields(constraint):
        value = getattr(constraint, field.name)
        if isinstance(value, Tensor):
            chosen[field.name] = value[rows]
        elif isinstance(value, Motion):
            arrays = ("root_position", "quats", "translations", "contacts")
            chosen[field.name] = replace(value, **{name: getattr(value, name)[rows] for name in arrays if getattr(value, name) is not None})
    return replace(constraint, **(chosen | {"frames": frames}))  # type: ignore[arg-type]
