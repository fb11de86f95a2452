"""A robot's motion as MuJoCo plays it: one line per frame, root x y z [m], root quaternion w x y z, then the hinge angles [rad].

No header, no frame rate; +Z up, +X forward. For the G1 that makes 36 columns, the file the released Kimodo writes; a robot with
H hinges has 7 + H. Angles are absolute: 0 is the zero of the robot's own description, the rest pose of our skeleton.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue, FormatProblem
from bunraku.files.axes import Frame, rotations_from, rotations_to, vectors_from, vectors_to
from bunraku.files.disk import read_text, write_text
from bunraku.kinematics.hinges import clamp_to_limits, fixed_joint_turns, hinge_angles, limit_violations, motion_from_hinges, require_hinges
from bunraku.kinematics.library import skeleton as library_skeleton
from bunraku.kinematics.motion import Motion, Provenance
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import matrix_to_quat, quat_continuous, quat_normalize, quat_to_matrix

ASSUMED_FPS = 30.0
_ROOT_COLUMNS = 7
_REPORTED = math.radians(0.1)  # smaller losses are rounding, not worth a note


def load_qpos_csv(path: str | os.PathLike[str], *, fps: float | None = None, skeleton: Skeleton | None = None) -> Motion:
    """The motion of a robot (by default the G1). Without `fps` the rate of the release, 30, is assumed and noted."""
    robot = library_skeleton("g1") if skeleton is None else skeleton
    rows = _numbers(str(path), read_text(path), _ROOT_COLUMNS + len(require_hinges(robot)[0].joints), robot.name)
    if fps is not None and not 0 < fps < float("inf"):
        raise BadValue(f"'{path}': {fps:g} frames per second is no frame rate; a positive number is needed.")
    norms = rows[:, 3:7].norm(dim=-1)
    if float(norms.min()) < 0.5 or float(norms.max()) > 2:
        line = int((norms.log().abs()).argmax()) + 1
        raise FormatProblem(f"'{path}', frame {line}: columns 4 to 7 have length {float(norms[line - 1]):.3g}; a unit quaternion w x y z is needed.")
    motion = motion_from_qpos(robot, rows.float(), ASSUMED_FPS if fps is None else fps)
    notes = {} if fps is not None else {"fps": f"CSV holds none: {ASSUMED_FPS:g} assumed"}
    excess = limit_violations(require_hinges(robot)[0], rows[:, _ROOT_COLUMNS:])
    if bool((excess > _REPORTED).any()):
        notes["limits"] = f"{_count(excess)} angles lie outside the joint limits of '{robot.name}', {_worst(robot, excess)}; kept as they are"
    return replace(motion, provenance=Provenance(source=str(path), notes=notes))


def save_qpos_csv(motion: Motion, path: str | os.PathLike[str]) -> Mapping[str, str]:
    """Writes angles within the joint limits; returns what the file could not hold, in the form of provenance notes (empty: nothing).

    `limits`: angles that had to be clamped; `hinges`: turns about axes the robot does not have; `fixed`: turns of joints that are
    fixed on the robot; `bones`: bones that stretch.
    """
    skeleton = motion.skeleton
    hinges, _ = require_hinges(skeleton)
    angles, off_axis = hinge_angles(motion)
    excess = limit_violations(hinges, angles)
    qpos = qpos_from_motion(motion, clamp_to_limits(hinges, angles))
    lines = [",".join(f"{value:.9g}" for value in row) for row in qpos.tolist()]
    write_text(path, "\n".join(lines) + "\n")
    notes = {}
    if bool((excess > _REPORTED).any()):
        notes["limits"] = f"{_count(excess)} of {excess.numel()} angles lay outside the joint limits and were clamped, {_worst(skeleton, excess)}"
    if float(off_axis.max()) > _REPORTED:
        advice = f"retarget(motion, '{skeleton.name}') spreads them over other joints"
        notes["hinges"] = f"turns no hinge can make were left out, {_worst(skeleton, off_axis)}; {advice}"
    fixed = fixed_joint_turns(motion)
    if float(fixed.max()) > _REPORTED:
        notes["fixed"] = f"joints that are fixed on the robot were turned by up to {math.degrees(float(fixed.max())):.2f}°; the file holds them still"
    if motion.translations is not None:
        notes["bones"] = "the motion moves bones along their length; the file holds them rigid"
    return notes


def motion_from_qpos(robot: Skeleton, qpos: Float[Tensor, "F Q"], fps: float) -> Motion:
    """MuJoCo positions (root xyz, wxyz, hinge angles; +Z up) as a motion."""
    p_root = vectors_from(Frame.Z_UP_X_FORWARD, qpos[:, :3])
    R_root = rotations_from(Frame.Z_UP_X_FORWARD, quat_to_matrix(quat_normalize(qpos[:, 3:7])))
    return motion_from_hinges(robot, p_root, quat_continuous(matrix_to_quat(R_root)), qpos[:, _ROOT_COLUMNS:], fps)


def qpos_from_motion(motion: Motion, angles: Float[Tensor, "F H"] | None = None) -> Float[Tensor, "F Q"]:
    """MuJoCo positions of a robot's motion; `angles` [rad] replaces the motion's own hinge angles."""
    angles = hinge_angles(motion)[0] if angles is None else angles
    R_root = rotations_to(Frame.Z_UP_X_FORWARD, quat_to_matrix(motion.quats[:, 0]))
    quat = quat_continuous(matrix_to_quat(R_root))
    return torch.cat([vectors_to(Frame.Z_UP_X_FORWARD, motion.root_position), quat, angles], dim=-1)


def _numbers(path: str, text: str, columns: int, robot: str) -> Float[Tensor, "F Q"]:
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        cells = line.split(",")
        if len(cells) != columns:
            raise FormatProblem(
                f"'{path}', line {number}: {len(cells)} columns; '{robot}' needs {columns} "
                f"(root x y z, quaternion w x y z, {columns - _ROOT_COLUMNS} hinge angles), separated by commas. For another robot give its MJCF or URDF."
            )
        try:
            rows.append([float(cell) for cell in cells])
        except ValueError:
            column, cell = next((i, cell.strip()) for i, cell in enumerate(cells, start=1) if not _is_number(cell))
            raise FormatProblem(f"'{path}', line {number}, column {column}: '{cell[:40]}' is no number; the file holds numbers only, no header.") from None
        if not all(map(math.isfinite, rows[-1])):
            raise FormatProblem(f"'{path}', line {number}: a number is not finite; repair or cut that frame.")
    if not rows:
        raise FormatProblem(f"'{path}' holds no frames; one line of {columns} numbers per frame is needed.")
    return torch.tensor(rows, dtype=torch.float64)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _count(excess: Float[Tensor, "F H"]) -> int:
    return int((excess > _REPORTED).sum())


def _worst(robot: Skeleton, excess: Float[Tensor, "F H"]) -> str:
    hinges, _ = require_hinges(robot)
    frame, hinge = divmod(int(excess.argmax()), excess.shape[1])
    return f"at most by {math.degrees(float(excess.max())):.2f}° ('{hinges.joints[hinge]}' at frame {frame})"

