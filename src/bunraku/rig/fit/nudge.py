"""Moving joints by hand: a small JSON of joint → [x, y, z], written beside the picture of a fit, edited, and read again."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch

from bunraku.errors import BadValue, FileProblem, FormatProblem
from bunraku.kinematics.forward import WorldPoses, rest_poses
from bunraku.kinematics.from_poses import skeleton_from_poses
from bunraku.kinematics.skeleton import Skeleton

Place = tuple[float, float, float]


def write_nudges(skeleton: Skeleton, path: str | os.PathLike[str]) -> None:
    """Every joint's place, one per line, in the space and unit of the mesh. Lines may be changed or deleted."""
    places = rest_poses(skeleton).p_world_joint.tolist()
    digits = max(5, 5 - math.floor(math.log10(max(max(map(abs, place)) for place in places) or 1.0)))
    rounded = [[round(value, digits) for value in place] for place in places]
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(place)}" for name, place in zip(skeleton.joints, rounded, strict=True))
    try:
        Path(path).write_text("{\n" + lines + "\n}\n", encoding="utf-8")
    except OSError as problem:
        raise FileProblem(f"{path} cannot be written ({problem.strerror}); choose a folder that exists and may be written to.") from problem


def read_nudges(path: str | os.PathLike[str]) -> dict[str, Place]:
    """The places in a JSON file of joint → [x, y, z]."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as problem:
        raise FileProblem(f"{path} cannot be read ({problem.strerror}); name a JSON file of joints and places.") from problem
    except ValueError as problem:
        raise FormatProblem(f'{path} is not JSON ({problem}); it should look like {{"left_knee": [0.1, 0.5, 0.02]}}.') from problem
    if not isinstance(data, dict):
        raise FormatProblem(f'{path} holds {type(data).__name__}, not joints; it should look like {{"left_knee": [0.1, 0.5, 0.02]}}.')
    return {name: _place(name, value) for name, value in data.items()}


def nudged(skeleton: Skeleton, places: Mapping[str, Place]) -> Skeleton:
    """The skeleton with these joints at these places in its rest pose; all others stay where they are, and no joint turns."""
    rest = rest_poses(skeleton)
    moved = rest.p_world_joint.clone()
    for name, place in places.items():
        if name not in skeleton.index:
            close = get_close_matches(name, skeleton.joints, 1)
            hint = f"; did you mean '{close[0]}'?" if close else "."
            raise BadValue(f"there is no joint '{name}' to move in skeleton '{skeleton.name}', which has {', '.join(skeleton.joints)}{hint}")
        moved[skeleton.index[name]] = torch.tensor(_place(name, place)).to(moved)
    placed = skeleton_from_poses(skeleton.name, skeleton.joints, skeleton.parents, WorldPoses(p_world_joint=moved, R_world_joint=rest.R_world_joint))
    return replace(skeleton, offsets=placed.offsets, rest_quats=placed.rest_quats)


def _place(name: str, value: Any) -> Place:
    numbers = isinstance(value, (list, tuple)) and len(value) == 3 and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in value)
    if not numbers or not all(math.isfinite(v) for v in value):
        raise BadValue(f"joint '{name}' is put at {value!r}; a place is three finite numbers [x, y, z] in the unit of the mesh.")
    return float(value[0]), float(value[1]), float(value[2])
