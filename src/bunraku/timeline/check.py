"""What is asked for is checked before anything is computed: each complaint is one sentence that names the constraint and the frame.

Three things are looked at in turn: each constraint by itself (here), constraints that ask for two things at once
(`conflicts.py`), and what no body can do (`reachable.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bunraku.errors import BadValue, RoleMissing, SkeletonMismatch
from bunraku.kinematics.from_poses import alike
from bunraku.kinematics.motion import is_finite
from bunraku.kinematics.skeleton import CONTACT_ROLES, Skeleton
from bunraku.timeline.claims import claims_of, label
from bunraku.timeline.conflicts import conflicts
from bunraku.timeline.constraints import EFFECTORS, Constraint, EffectorTarget, FootPlan, Heading, PoseKey, RootPath
from bunraku.timeline.reachable import require_reachable

UNIT = 0.01  # a quaternion's length may be this far from 1


def check_constraints(constraints: Sequence[Constraint], *, skeleton: Skeleton, frames: int, fps: float, first_wins: bool = False) -> list[str]:
    """Raises at the first thing that is wrong for a clip of `frames` frames of `skeleton`.

    A frame named twice in one constraint, and constraints that disagree, are refused. The released models let the first in the
    list win instead; with `first_wins` so do we, and what lost is returned, a sentence for each, to be told to the user.
    """
    if isinstance(frames, bool) or not isinstance(frames, int) or frames < 1 or not 0 < fps < float("inf"):
        raise BadValue(f"a clip of {frames} frames at {fps} frames per second cannot be; at least one frame and a positive rate are needed.")
    for number, constraint in enumerate(constraints):
        _check_alone(constraint, label(constraint, number), skeleton, frames, fps)
    twice = [sentence for number, constraint in enumerate(constraints) for sentence in _named_twice(constraint, number)]
    claims = [claim for number, constraint in enumerate(constraints) for claim in claims_of(constraint, number, skeleton)]
    disagreeing = twice + conflicts(claims)
    if disagreeing and not first_wins:
        raise BadValue(disagreeing[0])
    require_reachable(claims, skeleton, fps)
    return disagreeing


def _check_alone(constraint: Constraint, name: str, skeleton: Skeleton, frames: int, fps: float) -> None:
    if not isinstance(constraint, RootPath | Heading | PoseKey | EffectorTarget | FootPlan):
        raise BadValue(f"{name} is no constraint; RootPath, Heading, PoseKey, EffectorTarget or FootPlan is needed.")
    _check_frames(constraint.frames, name, frames, fps)
    rows = len(constraint.frames)
    match constraint:
        case RootPath():
            _check_array(constraint.xz, "xz", (rows, 2), name)
            if constraint.heading is not None:
                _check_array(constraint.heading, "heading", (rows,), name)
        case Heading():
            _check_array(constraint.heading, "heading", (rows,), name)
        case EffectorTarget():
            _check_effectors((constraint.effector,), name, skeleton)
            if constraint.position is None and constraint.quats is None:
                raise BadValue(f"{name} says neither where nor how the effector is turned; give position, quats or both.")
            if constraint.position is not None:
                _check_array(constraint.position, "position", (rows, 3), name)
            if constraint.quats is not None:
                _check_array(constraint.quats, "quats", (rows, 4), name)
                _check_unit(constraint.quats, name)
        case PoseKey():
            _check_pose(constraint, name, skeleton)
        case FootPlan():
            _check_feet(constraint, name, skeleton)
    if isinstance(constraint, RootPath | Heading) and constraint.heading is not None and not skeleton.has("left_hip", "right_hip"):
        known = ", ".join(skeleton.roles) or "none"
        raise RoleMissing(f"{name} asks for a heading, which is told by left_hip and right_hip; skeleton '{skeleton.name}' has only: {known}.")


def _check_frames(at: Tensor, name: str, frames: int, fps: float) -> None:
    if at.ndim != 1 or at.is_floating_point() or at.dtype == torch.bool:
        raise BadValue(f"{name} has frames of shape {list(at.shape)} and type {at.dtype}; a row of whole numbers is needed.")
    if len(at) == 0:
        raise BadValue(f"{name} holds at no frame; give at least one frame number.")
    if int(at.min()) < 0:
        raise BadValue(f"{name} holds at frame {int(at.min())}; frames are counted from 0.")
    if int(at.max()) >= frames:
        last = f"its last frame is {frames - 1} ({frames / fps:.2f} s at {fps:g} frames per second)"
        raise BadValue(f"{name} holds at frame {int(at.max())}, outside the clip: {last}. Make the clip longer or move the constraint.")


def _check_array(values: Tensor, what: str, shape: tuple[int, ...], name: str) -> None:
    if tuple(values.shape) != shape:
        raise BadValue(f"{name} has {shape[0]} frames and {what} of shape {list(values.shape)}; {list(shape)} is needed, one row for each frame.")
    if not values.is_floating_point():
        raise BadValue(f"{name} has {what} of type {values.dtype}; floating-point numbers are needed.")
    if not torch.isfinite(values).all():
        row = int((~torch.isfinite(values)).reshape(len(values), -1).any(dim=-1).nonzero()[0])
        raise BadValue(f"{name} has a number in {what}, row {row}, that is not finite.")


def _check_unit(quats: Tensor, name: str) -> None:
    off = (quats.norm(dim=-1) - 1).abs()
    if bool((off > UNIT).any()):
        length = float(quats.norm(dim=-1).flatten()[int(off.argmax())])
        raise BadValue(f"{name} has a quaternion of length {length:g}; turns are unit quaternions w x y z (normalise them).")


def _check_effectors(effectors: tuple[str, ...], name: str, skeleton: Skeleton) -> None:
    able = [effector for effector in EFFECTORS if skeleton.has(effector)]
    wrong = next((effector for effector in effectors if effector not in able), None)
    if wrong is not None or not effectors:
        given = f"asks for '{wrong}'" if effectors else "names no effector"
        raise RoleMissing(f"{name} {given}; on skeleton '{skeleton.name}' it is one of {', '.join(able) or 'none, for it has no such roles'}.")


def _check_pose(constraint: PoseKey, name: str, skeleton: Skeleton) -> None:
    poses, rows = constraint.poses, len(constraint.frames)
    if not (poses.skeleton is skeleton or alike(poses.skeleton, skeleton)):
        given = f"'{poses.skeleton.name}' ({len(poses.skeleton)} joints)"
        wanted = f"'{skeleton.name}' ({len(skeleton)} joints)"
        raise SkeletonMismatch(f"{name} has poses on {given}, the clip is on {wanted}. Use retarget(motion, skeleton) first.")
    if len(poses) != rows:
        raise BadValue(f"{name} has {rows} frames and {len(poses)} poses; one pose for each frame is needed.")
    if not is_finite(poses):
        raise BadValue(f"{name} has a pose with a number that is not finite.")
    _check_unit(poses.quats, name)
    if constraint.smooth_xz is not None:
        _check_array(constraint.smooth_xz, "smooth_xz", (rows, 2), name)
    if constraint.effectors is not None:
        _check_effectors(constraint.effectors, name, skeleton)


def _check_feet(constraint: FootPlan, name: str, skeleton: Skeleton) -> None:
    if tuple(constraint.contacts.shape) != (len(constraint.frames), len(CONTACT_ROLES)) or constraint.contacts.dtype != torch.bool:
        given = f"contacts of shape {list(constraint.contacts.shape)} and type {constraint.contacts.dtype}"
        raise BadValue(
            f"{name} has {given}; bools of shape {[len(constraint.frames), len(CONTACT_ROLES)]} are needed, a column for each of {', '.join(CONTACT_ROLES)}."
        )
    for column, role in enumerate(CONTACT_ROLES):
        if not skeleton.has(role) and (constraint.contacts[:, column].any() or not skeleton.has("left_foot", "right_foot")):
            able = ", ".join(role for role in CONTACT_ROLES if skeleton.has(role)) or "no feet at all"
            raise RoleMissing(f"{name} plans for '{role}', which skeleton '{skeleton.name}' does not have (it has {able}). Name it in a roles file.")


def _named_twice(constraint: Constraint, number: int) -> list[str]:
    values, counts = constraint.frames.unique(return_counts=True)
    return [f"{label(constraint, number)} names frame {frame} more than once; once is enough." for frame in values[counts > 1].tolist()]
