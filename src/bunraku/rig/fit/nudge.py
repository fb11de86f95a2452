"""Moving joints by hand: some of them to places of one's own, the others left where they are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import torch

from bunraku.errors import BadValue
from bunraku.kinematics.forward import WorldPoses, rest_poses
from bunraku.kinematics.from_poses import skeleton_from_poses
from bunraku.kinematics.skeleton import Skeleton

Place = tuple[float, float, float]


def nudged(skeleton: Skeleton, places: Mapping[str, Place]) -> Skeleton:
    """The skeleton with these joints at these places in its rest pose; all others stay where they are, and no joint turns."""
    rest = rest_poses(skeleton)
    moved = rest.p_world_joint.clone()
    for name, place in places.items():
        if name not in skeleton.index:
            close = get_close_matches(name, skeleton.joints, 1)
            hint = f"; did you mean '{close[0]}'?" if close else "."
            raise BadValue(f"there is no joint '{name}' to move in skeleton '{skeleton.name}', which has {', '.join(skeleton.joints)}{hint}")
        moved[skeleton.index[name]] = torch.tensor(place_of(name, place)).to(moved)
    placed = skeleton_from_poses(skeleton.name, skeleton.joints, skeleton.parents, WorldPoses(p_world_joint=moved, R_world_joint=rest.R_world_joint))
    return replace(skeleton, offsets=placed.offsets, rest_quats=placed.rest_quats)


def place_of(name: str, value: Any) -> Place:
    """Three finite numbers, or a sentence on what is there instead."""
    numbers = isinstance(value, (list, tuple)) and len(value) == 3 and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in value)
    if not numbers or not all(math.isfinite(v) for v in value):
        raise BadValue(f"joint '{name}' is put at {value!r}; a place is three finite numbers [x, y, z] in the unit of the mesh.")
    return float(value[0]), float(value[1]), float(value[2])
