"""Our own JSON of constraints, made to be typed by hand: one object for each, all five types.

    {"type": "root_path", "seconds": [0, 2, 4], "xz": [[0, 0], [1, 2], [0, 4]], "heading_degrees": [0, 45, 0]}     heading optional
    {"type": "heading", "from_seconds": 0, "to_seconds": 2, "heading_degrees": 90}
    {"type": "effector", "effector": "left_hand", "seconds": [1.5], "position": [[0.3, 1.2, 0.4]], "quaternion_wxyz": [[1, 0, 0, 0]]}
    {"type": "pose", "frames": [30], "joints": ["LeftArm", …], "quaternions_wxyz": [[[1, 0, 0, 0], …]], "root_position": [[0, 0.95, 0]]}
    {"type": "foot_plan", "from_frame": 0, "to_frame": 12, "on_ground": ["left_foot", "left_toe"]}

When: `frames` or `seconds` (one or several), or every frame from one up to, and not including, another. What: one row for each of
those frames, or a single row for all of them. An effector needs `position`, `quaternion_wxyz` or both. A pose may also say
`smooth_xz`, `translations` (bones that stretch) and `effectors` (only those parts must be met); joints that it does not name stay
at rest. `on_ground` lists what stands, the rest is lifted. A key that means nothing here is an error, for it is most likely a slip.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bunraku.kinematics.library import skeleton as library_skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import CONTACT_ROLES, Skeleton
from bunraku.kinematics.soma import expand_soma, reduce_soma
from bunraku.math.rotations import quat_normalize
from bunraku.timeline.constraints import EFFECTORS, Constraint, EffectorTarget, FootPlan, Heading, PoseKey, RootPath
from bunraku.timeline.fields import LAST_FRAME, MOST_NUMBERS, Entry
from bunraku.timeline.plain import shortest

_TIMES = ("frames", "seconds", "from_frame", "to_frame", "from_seconds", "to_seconds")
_KEYS = {
    "root_path": ("xz", "heading_degrees"),
    "heading": ("heading_degrees",),
    "effector": ("effector", "position", "quaternion_wxyz"),
    "pose": ("joints", "quaternions_wxyz", "root_position", "translations", "smooth_xz", "effectors"),
    "foot_plan": ("on_ground",),
}
TYPES = tuple(_KEYS)
UNIT = 0.01  # a quaternion's length may be this far from 1


# --- reading ----------------------------------------------------------------------------------------------------------


def read_entry(entry: Entry, kind: str, skeleton: Skeleton, fps: float) -> Constraint:
    """One object whose `type` is `kind`, of TYPES."""
    entry.only(("type", *_TIMES, *_KEYS[kind]))
    frames = _frames(entry, fps)
    rows = len(frames)
    if kind == "root_path":
        heading = _heading(entry, rows) if entry.has("heading_degrees") else None
        return RootPath(frames=frames, xz=_rows(entry, "xz", rows, (2,), "x and z [m]"), heading=heading)
    if kind == "heading":
        return Heading(frames=frames, heading=_heading(entry, rows))
    if kind == "effector":
        return _effector(entry, frames)
    if kind == "pose":
        return _pose(entry, frames, skeleton, fps)
    return FootPlan(frames=frames, contacts=_contacts(entry, rows))


def _frames(entry: Entry, fps: float) -> Int[Tensor, " K"]:
    given = [key for key in _TIMES if entry.has(key)]
    if given == ["frames"]:
        return entry.frames("frames")
    if given == ["seconds"]:
        seconds = entry.array("seconds", ("K",), "times in seconds", single=True)
        frames = np.round(seconds * fps)
        if len(frames) == 0 or frames.min() < 0 or frames.max() > LAST_FRAME:
            entry.fail(f"has no time from 0 to {LAST_FRAME / fps:,.0f} s in 'seconds'; give at least one, such as 1.5 or [1.5, 2].")
        return torch.from_numpy(frames.astype(np.int64))
    if given == ["from_frame", "to_frame"]:
        start, stop = (entry.whole(key, "a frame number counted from 0") for key in given)
    elif given == ["from_seconds", "to_seconds"]:
        start, stop = (round(entry.number(key, "a time in seconds") * fps) for key in given)
    else:
        entry.fail(f"says when by {' and '.join(given) or 'nothing'}; give 'frames', or 'seconds', or from_frame and to_frame, or from_seconds and to_seconds.")
    if not 0 <= start < stop <= LAST_FRAME:
        entry.fail(f"goes from frame {start} to frame {stop}; the end must lie after the start, and neither below 0 nor beyond {LAST_FRAME:,}.")
    return torch.arange(start, stop)


def _rows(entry: Entry, key: str, rows: int, tail: tuple[int, ...], meaning: str) -> Float[Tensor, "K ..."]:
    """`rows` rows of the shape `tail`, or one row for all of them."""
    return torch.from_numpy(_spread(entry, key, rows, tail, meaning)).float()


def _spread(entry: Entry, key: str, rows: int, tail: tuple[int, ...], meaning: str) -> Float[np.ndarray, "K ..."]:
    if rows * math.prod(tail) > MOST_NUMBERS:
        entry.fail(f"asks for '{key}' at {rows:,} frames, more numbers than {MOST_NUMBERS:,}; name fewer frames.")
    value, depth = entry.data.get(key), 0
    while isinstance(value, list) and value:
        value, depth = value[0], depth + 1
    if depth == len(tail):
        return np.broadcast_to(entry.array(key, tail, meaning) if tail else np.float64(entry.number(key, meaning)), (rows, *tail)).copy()
    return entry.array(key, (rows, *tail), f"{meaning} for each frame, or once for all of them")


def _heading(entry: Entry, rows: int) -> Float[Tensor, " K"]:
    return torch.from_numpy(np.radians(_spread(entry, "heading_degrees", rows, (), "degrees: 0 faces +Z, 90 faces +X"))).float()


def _unit(entry: Entry, key: str, quats: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch 4"]:
    off = (quats.norm(dim=-1) - 1).abs()
    if bool((off > UNIT).any()):
        length = float(quats.norm(dim=-1).flatten()[int(off.argmax())])
        entry.fail(f"has a quaternion of length {length:g} in '{key}'; a turn is a unit quaternion w x y z: [1, 0, 0, 0] is none.")
    return torch.where(off[..., None] > 1e-6, quat_normalize(quats), quats)  # what is unit stays, number for number


def _effector(entry: Entry, frames: Int[Tensor, " K"]) -> EffectorTarget:
    effector = entry.text("effector", f"one of {', '.join(EFFECTORS)}")
    if effector not in EFFECTORS:
        entry.fail(f"names the effector '{effector[:40]}'; one of {', '.join(EFFECTORS)} is needed.")
    position = _rows(entry, "position", len(frames), (3,), "x, y, z [m]") if entry.has("position") else None
    quats = None
    if entry.has("quaternion_wxyz"):
        quats = _unit(entry, "quaternion_wxyz", _rows(entry, "quaternion_wxyz", len(frames), (4,), "w, x, y, z"))
    if position is None and quats is None:
        entry.fail("says neither where nor how the effector is turned; give 'position', 'quaternion_wxyz' or both.")
    return EffectorTarget(frames=frames, effector=effector, position=position, quats=quats)


def _contacts(entry: Entry, rows: int) -> Bool[Tensor, "K 4"]:
    value = entry.get("on_ground", f"an array of some of {', '.join(CONTACT_ROLES)}")
    lists = value if isinstance(value, list) and value and all(isinstance(item, list) for item in value) else [value]
    if len(lists) not in (1, rows):
        entry.fail(f"has {len(lists)} lists in 'on_ground' for {rows} frames; give one for each frame, or one for all.")
    for standing in lists:
        if not isinstance(standing, list) or not all(item in CONTACT_ROLES for item in standing):
            entry.fail(f"has {str(standing)[:60]} in 'on_ground'; what stands is listed as some of {', '.join(CONTACT_ROLES)}.")
    table = [[role in standing for role in CONTACT_ROLES] for standing in lists if isinstance(standing, list)]
    return torch.tensor(table).expand(rows, -1).clone()


def _pose(entry: Entry, frames: Int[Tensor, " K"], skeleton: Skeleton, fps: float) -> PoseKey:
    effectors = None
    if entry.has("effectors"):
        effectors = tuple(dict.fromkeys(entry.texts("effectors", f"an array of some of {', '.join(EFFECTORS)}")))
        if not effectors or not set(effectors) <= set(EFFECTORS):
            entry.fail(f"has {str(list(effectors))[:80]} as 'effectors'; some of {', '.join(EFFECTORS)} are needed, or no such key for the whole body.")
    smooth_xz = _rows(entry, "smooth_xz", len(frames), (2,), "x and z [m]") if entry.has("smooth_xz") else None
    return PoseKey(frames=frames, poses=_poses(entry, len(frames), skeleton, fps), smooth_xz=smooth_xz, effectors=effectors)


def _poses(entry: Entry, rows: int, skeleton: Skeleton, fps: float) -> Motion:
    names = entry.texts("joints", "an array of joint names") if entry.has("joints") else list(skeleton.joints)
    if len(set(names)) != len(names):
        entry.fail("names a joint twice in 'joints'; each can be turned once.")
    body = _body(entry, names, skeleton)
    here = [body.index[name] for name in names]
    meaning = "w, x, y, z of each joint in 'joints'" if entry.has("joints") else f"w, x, y, z of each of the {len(skeleton)} joints of '{skeleton.name}'"
    quats = body.rest_quats.float().expand(rows, -1, -1).clone()
    quats[:, here] = _unit(entry, "quaternions_wxyz", _rows(entry, "quaternions_wxyz", rows, (len(names), 4), meaning))
    translations = None
    if entry.has("translations"):
        translations = body.offsets.float().expand(rows, -1, -1).clone()
        translations[:, here] = _rows(entry, "translations", rows, (len(names), 3), "x, y, z [m] of each joint in its parent")
    root = _rows(entry, "root_position", rows, (3,), "x, y, z [m] of the root")
    poses = Motion(skeleton=body, fps=fps, root_position=root, quats=quats, translations=translations)
    if body.joints == skeleton.joints:
        return poses
    return reduce_soma(poses) if body.name == "soma77" else expand_soma(poses)


def _body(entry: Entry, names: Sequence[str], skeleton: Skeleton) -> Skeleton:
    """The skeleton that has all these joints: the one asked for, or SOMA in its other size, so that fingers come and go by themselves."""
    small, large = library_skeleton("soma30"), library_skeleton("soma77")
    if skeleton.joints == large.joints and set(names) <= set(small.joints):
        return small
    if skeleton.joints == small.joints and set(names) <= set(large.joints) and not set(names) <= set(small.joints):
        return large
    unknown = next((name for name in names if name not in skeleton.index), None)
    if unknown is not None:
        known = ", ".join(skeleton.joints[:40]) + (" …" if len(skeleton) > 40 else "")
        entry.fail(f"names the joint '{unknown[:40]}', which '{skeleton.name}' does not have (it has {known}).")
    return skeleton


# --- writing ----------------------------------------------------------------------------------------------------------


def to_json(constraint: Constraint) -> dict[str, object]:
    """One object, which `read_entry` reads back number for number."""
    frames = constraint.frames.tolist()
    match constraint:
        case RootPath():
            data = {"type": "root_path", "frames": frames, "xz": constraint.xz, "heading_degrees": _degrees(constraint.heading)}
        case Heading():
            data = {"type": "heading", "frames": frames, "heading_degrees": _degrees(constraint.heading)}
        case EffectorTarget():
            data = {"type": "effector", "effector": constraint.effector, "frames": frames}
            data |= {"position": constraint.position, "quaternion_wxyz": constraint.quats}
        case PoseKey():
            poses, effectors = constraint.poses, constraint.effectors
            data = {"type": "pose", "frames": frames, "effectors": None if effectors is None else list(effectors), "smooth_xz": constraint.smooth_xz}
            data |= {"root_position": poses.root_position, "joints": list(poses.skeleton.joints), "quaternions_wxyz": poses.quats}
            data |= {"translations": poses.translations}
        case FootPlan():
            standing = [[role for role, stands in zip(CONTACT_ROLES, row, strict=True) if stands] for row in constraint.contacts.tolist()]
            data = {"type": "foot_plan", "frames": frames, "on_ground": standing}
    return {key: shortest(value) if isinstance(value, Tensor) else value for key, value in data.items() if value is not None}


def _degrees(heading: Float[Tensor, " K"] | None) -> list[float] | None:
    """Rounded far below what float32 can tell apart."""
    return None if heading is None else [round(math.degrees(angle), 7) for angle in heading.tolist()]
