"""USD: skeletons and their animation as UsdSkel describes them, through Pixar's own library (the extra `usd`).

Read are .usd, .usda and .usdc, Y-up or Z-up, in any unit. The pose of every frame is taken as USD computes it in the world,
so animated transforms above the skeleton and scaled joints arrive as they look. What was assumed (no unit, no frame rate, several
skeletons) is in `motion.provenance.notes`. The reading is done in a child process, `usd_child`. Written is Y-up in metres; see `usd_write`.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from bunraku.errors import BunrakuError, FileProblem, FormatProblem
from bunraku.files.axes import Frame
from bunraku.files.child import read_in_child
from bunraku.files.disk import existing_file
from bunraku.files.metadata import KEY, provenance_from_json
from bunraku.files.usd_write import save_usd_motion
from bunraku.files.world_poses import JointTrack, motion_of
from bunraku.kinematics.library import skeleton_from_json
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton

__all__ = ["load_usd_motion", "save_usd_motion"]

_ADVICE = "Export it again, or save it from Blender as .glb."


def load_usd_motion(path: str | os.PathLike[str]) -> Motion:
    """The animation of the first animated skeleton in a USD file."""
    path = existing_file(path)
    if find_spec("pxr") is None:
        raise FileProblem("USD files need the extra: pip install 'bunraku[usd]'.")
    arrays = read_in_child("bunraku.files.usd_child", path, KEY, advice=_ADVICE)
    joints = tuple(map(str, arrays["names"]))
    A_ours_theirs = np.eye(4)
    if arrays["up"] == "Z":
        A_ours_theirs[:3, :3] = np.array(Frame.Z_UP_Y_BACK.value)
    A_ours_theirs[:3, :3] *= float(arrays["unit"])
    if arrays["frames"].shape[1] != len(joints) or len(arrays["rest"]) != len(joints):
        raise FormatProblem(f"'{path}' names {len(joints)} joints but does not give each of them a rest transform and an animation; export it again.")
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused in words
        A_world_joint, A_world_rest = A_ours_theirs @ arrays["frames"], A_ours_theirs @ arrays["rest"]
    track = JointTrack(
        name=path.stem,
        joints=joints,
        parents=tuple(map(int, arrays["parents"])),
        A_world_joint=A_world_joint,
        A_world_rest=A_world_rest,
        fps=float(arrays["fps"]),
    )
    meta = _metadata(str(arrays["meta"]))
    provenance = provenance_from_json(meta.get("provenance"), os.fspath(path)).noted(**json.loads(str(arrays["notes"])))
    motion = motion_of(track, provenance, _known_skeleton(meta))
    return replace(motion, contacts=_contacts(meta, len(motion)))


def _metadata(text: str) -> dict[str, Any]:
    """What `usd_write` left in the layer; empty in anyone else's file."""
    try:
        meta = json.loads(text)
    except (ValueError, RecursionError):
        meta = {}
    return meta if isinstance(meta, dict) else {}


def _known_skeleton(meta: dict[str, Any]) -> Skeleton | None:
    try:
        return skeleton_from_json(meta["skeleton"])
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, BunrakuError):
        return None


def _contacts(meta: dict[str, Any], frames: int) -> Bool[Tensor, "F 4"] | None:
    try:
        contacts = torch.tensor(meta.get("contacts", []), dtype=torch.bool)
    except (ValueError, TypeError, RuntimeError):
        return None
    return contacts if contacts.shape == (frames, 4) else None
