"""Kimodo's constraint JSON: an array of objects, read as the release means them and written back where it can hold ours.

    root2d        frame_indices [K], smooth_root_2d [K 2] (x, z), global_root_heading [K 2] (cos, sin; optional)
    fullbody      frame_indices [K], local_joints_rot [K J 3] axis × angle, root_positions [K 3], smooth_root_2d [K 2] (optional)
    left-hand, right-hand, left-foot, right-foot      the same: the hand or foot is where it is in this pose
    end-effector  the same, with joint_names, of LeftHand RightHand LeftFoot RightFoot Hips

A turn of 0 is the T-pose, whose joint frames all stand as the world's; a library skeleton whose rest turns differ (g1) still
counts its local turns from there, so they are taken as they are. SOMA comes with 30 joints or 77 and is carried to whichever
the reader asks for. Frames count 30 to the second. Keys that the release does not know are passed over, as it does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue, SkeletonMismatch
from bunraku.kinematics.library import skeleton as library_skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.kinematics.soma import expand_soma, reduce_soma
from bunraku.math.rotations import exp_quat, log_quat
from bunraku.timeline.constraints import Constraint, PoseKey, RootPath
from bunraku.timeline.fields import Entry
from bunraku.timeline.plain import shortest

FPS = 30.0  # of every released model, and of the frame numbers in its files
PARTS = {"left-hand": "left_hand", "right-hand": "right_hand", "left-foot": "left_foot", "right-foot": "right_foot"}  # type → effector
JOINT_NAMES = {"LeftHand": "left_hand", "RightHand": "right_hand", "LeftFoot": "left_foot", "RightFoot": "right_foot", "Hips": "hips"}
TYPES = ("root2d", "fullbody", *PARTS, "end-effector")
_JOINT_COUNTS = {30: "soma30", 77: "soma77", 34: "g1", 22: "smplx22"}


# --- reading ----------------------------------------------------------------------------------------------------------


def read_entry(entry: Entry, kind: str, skeleton: Skeleton) -> Constraint:
    """One object of the array, whose `type` is `kind`, of TYPES."""
    frames = entry.frames("frame_indices")
    rows = len(frames)
    if kind == "root2d":
        return RootPath(frames=frames, xz=entry.tensor("smooth_root_2d", (rows, 2), _ONE_EACH.format("x and z")), heading=_heading(entry, rows))
    effectors = None
    if kind == "end-effector":
        effectors = _effectors(entry)
    elif kind != "fullbody":
        effectors = (PARTS[kind],)
    smooth_xz = entry.tensor("smooth_root_2d", (rows, 2), _ONE_EACH.format("x and z")) if entry.has("smooth_root_2d") else None
    return PoseKey(frames=frames, poses=_poses(entry, rows, skeleton), smooth_xz=smooth_xz, effectors=effectors)


_ONE_EACH = "{} for each entry of 'frame_indices'"


def _heading(entry: Entry, rows: int) -> Float[Tensor, " K"] | None:
    if not entry.has("global_root_heading"):
        return None
    cosine, sine = entry.array("global_root_heading", (rows, 2), _ONE_EACH.format("cos and sin of the heading")).T
    length = np.hypot(cosine, sine)
    if (np.abs(length - 1) > 0.1).any():
        row = int(np.abs(length - 1).argmax())
        entry.fail(f"has ({cosine[row]:g}, {sine[row]:g}) in 'global_root_heading'; cos and sin of an angle are needed: (1, 0) faces +Z.")
    return torch.from_numpy(np.arctan2(sine, cosine)).float()


def _effectors(entry: Entry) -> tuple[str, ...]:
    names = entry.texts("joint_names", f"an array of some of {', '.join(JOINT_NAMES)}")
    unknown = next((name for name in names if name not in JOINT_NAMES), None)
    if unknown is not None or not names:
        given = f"'{unknown[:40]}'" if unknown is not None else "nothing"
        entry.fail(f"names {given} in 'joint_names'; an end-effector is one of {', '.join(JOINT_NAMES)}.")
    return tuple(dict.fromkeys(JOINT_NAMES[name] for name in names))


def _poses(entry: Entry, rows: int, skeleton: Skeleton) -> Motion:
    rotvecs = torch.from_numpy(entry.array("local_joints_rot", (rows, "J", 3), "axis × angle [rad] of every joint for each entry of 'frame_indices'"))
    body = _body(entry, rotvecs.shape[1], skeleton)
    root = entry.tensor("root_positions", (rows, 3), _ONE_EACH.format("x, y and z of the root"))
    poses = Motion(skeleton=body, fps=FPS, root_position=root, quats=exp_quat(rotvecs).float())
    if body.joints == skeleton.joints:
        return poses
    return reduce_soma(poses) if body.name == "soma77" else expand_soma(poses)


def _body(entry: Entry, joints: int, skeleton: Skeleton) -> Skeleton:
    """The skeleton on which a file with so many joints was written: the one asked for, or SOMA in its other size."""
    known = _released(skeleton)
    if known is None:
        names = ", ".join(_JOINT_COUNTS.values())
        raise SkeletonMismatch(
            f"{entry.where} is a pose in Kimodo's format, which knows {names}, not '{skeleton.name}'; write it as a 'pose' of our own format."
        )
    if joints == len(skeleton):
        return skeleton
    other = _JOINT_COUNTS.get(joints)
    if other is None or not {known, other} <= {"soma30", "soma77"}:
        given = f"{joints} joints" + (f" (as {other} has)" if other else "")
        wanted = "30 or 77 (SOMA)" if known.startswith("soma") else str(len(skeleton))
        raise SkeletonMismatch(f"{entry.where} has poses of {given}; '{skeleton.name}' needs {wanted} in 'local_joints_rot'.")
    return library_skeleton(other)


def _released(skeleton: Skeleton) -> str | None:
    """The released skeleton that has these joints."""
    name = _JOINT_COUNTS.get(len(skeleton))
    return name if name is not None and library_skeleton(name).joints == skeleton.joints else None


# --- writing ----------------------------------------------------------------------------------------------------------


def to_json(constraints: Sequence[Constraint]) -> list[dict[str, object]]:
    """The array for a file; what the format cannot say is refused."""
    return [_write(constraint, number) for number, constraint in enumerate(constraints)]


def _write(constraint: Constraint, number: int) -> dict[str, object]:
    frames = {"frame_indices": constraint.frames.tolist()}
    if isinstance(constraint, RootPath):
        data = {"type": "root2d", **frames, "smooth_root_2d": shortest(constraint.xz)}
        if constraint.heading is not None:
            psi = constraint.heading.double()
            data["global_root_heading"] = shortest(torch.stack([psi.cos(), psi.sin()], dim=-1).float())
        return data
    if not isinstance(constraint, PoseKey):
        what = f"constraints[{number}] is {_described(constraint)}, which Kimodo's format cannot hold"
        raise BadValue(f"{what} (it has paths and whole poses only); save it in our own format.")
    poses = constraint.poses
    if _released(poses.skeleton) is None or poses.translations is not None:
        which = "bones that stretch" if poses.translations is not None else f"the skeleton '{poses.skeleton.name}'"
        raise BadValue(f"constraints[{number}] has poses with {which}, which Kimodo's format cannot hold; save it in our own format.")
    data = _part(constraint.effectors, number) | frames
    data |= {"local_joints_rot": shortest(log_quat(poses.quats.double()).float()), "root_positions": shortest(poses.root_position)}
    if constraint.smooth_xz is not None:
        data["smooth_root_2d"] = shortest(constraint.smooth_xz)
    return data


def _part(effectors: tuple[str, ...] | None, number: int) -> dict[str, object]:
    if effectors is None:
        return {"type": "fullbody"}
    if not effectors or not set(effectors) <= set(JOINT_NAMES.values()):
        raise BadValue(f"constraints[{number}] has the effectors {list(effectors)}; some of {', '.join(JOINT_NAMES.values())} are needed.")
    kinds = {effector: kind for kind, effector in PARTS.items()}
    if len(effectors) == 1 and effectors[0] in kinds:
        return {"type": kinds[effectors[0]]}
    names = {effector: name for name, effector in JOINT_NAMES.items()}
    return {"type": "end-effector", "joint_names": [names[effector] for effector in effectors]}


def _described(constraint: Constraint) -> str:
    return {"Heading": "a heading alone", "EffectorTarget": "a target for one effector alone", "FootPlan": "a plan of foot contacts"}[type(constraint).__name__]
