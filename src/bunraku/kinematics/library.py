"""The skeletons that come with the package. Each is data in `data/NAME.json`, never a class.

JSON: `joints`, `parents`, `offsets_m` (in the parent's frame; the root's lets the rest pose stand on y = 0), `roles`
(role → joint name); optionally `rest_local_rotations_wxyz`, `tips_m` (joint → end of its leaf bone, in the joint's frame)
and `hinges` (joint, axis in the joint's frame, lower and upper limit in radians, in the robot's own order).
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import torch

from bunraku.errors import BadValue
from bunraku.kinematics.skeleton import Hinges, Skeleton
from bunraku.math.rotations import quat_normalize


@cache
def skeleton_names() -> tuple[str, ...]:
    names = [entry.name.removesuffix(".json") for entry in files("bunraku.kinematics").joinpath("data").iterdir() if entry.name.endswith(".json")]
    return tuple(sorted(names))


@cache
def skeleton(name: str) -> Skeleton:
    """One of the library's skeletons: soma30, soma77, g1, smplx22, cmu23."""
    if name not in skeleton_names():
        raise BadValue(f"there is no built-in skeleton '{name}'; the library has {', '.join(skeleton_names())}. A skeleton can also be read from a file.")
    return skeleton_from_json(raw(name))


@cache
def raw(name: str) -> dict[str, Any]:
    """The JSON behind a library skeleton, with whatever else belongs to it (hand poses, file-format tables)."""
    return json.loads(files("bunraku.kinematics").joinpath("data", f"{name}.json").read_text())


def skeleton_from_json(data: dict[str, Any]) -> Skeleton:
    joints, parents = tuple(data["joints"]), tuple(data["parents"])
    rest = data.get("rest_local_rotations_wxyz")
    index = {joint: i for i, joint in enumerate(joints)}
    return Skeleton(
        name=data["name"],
        joints=joints,
        parents=parents,
        offsets=torch.tensor(data["offsets_m"]),
        rest_quats=quat_normalize(torch.tensor(rest)) if rest else None,  # type: ignore[arg-type]
        roles={role: index[joint] for role, joint in data.get("roles", {}).items()},
        tips={index[joint]: tuple(tip) for joint, tip in data.get("tips_m", {}).items()},
        hinges=_hinges(data["hinges"]) if "hinges" in data else None,
    )


def skeleton_to_json(skeleton: Skeleton) -> dict[str, Any]:
    """What `skeleton_from_json` reads back as the same skeleton, number for number."""
    data: dict[str, Any] = {
        "name": skeleton.name,
        "joints": list(skeleton.joints),
        "parents": list(skeleton.parents),
        "roles": {role: skeleton.joints[joint] for role, joint in skeleton.roles.items()},
        "offsets_m": skeleton.offsets.tolist(),
        "rest_local_rotations_wxyz": skeleton.rest_quats.tolist(),
        "tips_m": {skeleton.joints[joint]: list(tip) for joint, tip in skeleton.tips.items()},
    }
    if skeleton.hinges is not None:
        h = skeleton.hinges
        rows = zip(h.joints, h.axes.tolist(), h.lower.tolist(), h.upper.tolist(), strict=True)
        data["hinges"] = [{"joint": joint, "axis": axis, "lower": lower, "upper": upper} for joint, axis, lower, upper in rows]
    return data


def _hinges(rows: list[dict[str, Any]]) -> Hinges:
    return Hinges(
        joints=tuple(row["joint"] for row in rows),
        axes=torch.tensor([row["axis"] for row in rows]),
        lower=torch.tensor([row["lower"] for row in rows]),
        upper=torch.tensor([row["upper"] for row in rows]),
    )
