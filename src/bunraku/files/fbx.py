"""Reading skeletal animation from FBX (binary or text) through ufbx, the extra `fbx`. Writing is not offered.

ufbx applies pivots, pre-rotations, scale inheritance, units and axes, and gives the world matrix of every node at any time; the
motion is built from those, at the frame rate the file states. The work is done in a child process (see `fbx_child` for why).
"""

from __future__ import annotations

import os
from importlib.util import find_spec

from bunraku.errors import FileProblem
from bunraku.files.child import read_in_child
from bunraku.files.disk import existing_file
from bunraku.files.world_poses import JointTrack, motion_of
from bunraku.kinematics.motion import Motion, Provenance

_WAY_ROUND = "Open it in Blender and save it as .glb to use it."
_CHILD = "bunraku.files.fbx_child"


def load_fbx_motion(path: str | os.PathLike[str], clip: str | int | None = None) -> Motion:
    """The motion of all bones in an FBX file; `clip` is the name or number of an animation stack, by default the first."""
    path = existing_file(path)
    if find_spec("ufbx") is None:
        raise FileProblem("FBX files need the extra: pip install 'bunraku[fbx]'.")
    arrays = read_in_child(_CHILD, path, "" if clip is None else str(clip), advice=_WAY_ROUND)
    notes = {}
    if len(arrays["clips"]) > 1 and clip is None:
        notes["clip"] = f"the first of {len(arrays['clips'])} animations: {arrays['clip']}"
    if not arrays["bound"]:
        notes["rest"] = "no skin says how the skeleton rests; the unanimated pose taken"
    track = JointTrack(
        name=path.stem,
        joints=_unique([str(name) or f"joint_{i}" for i, name in enumerate(arrays["names"])]),
        parents=tuple(map(int, arrays["parents"])),
        A_world_joint=arrays["frames"],
        A_world_rest=arrays["rest"],
        fps=float(arrays["fps"]),
    )
    return motion_of(track, Provenance(source=os.fspath(path), notes=notes))


def _unique(names: list[str]) -> tuple[str, ...]:
    """FBX lets two bones have one name."""
    unique: list[str] = []
    for name in names:
        candidate, number = name, 2
        while candidate in unique:
            candidate, number = f"{name}_{number}", number + 1
        unique.append(candidate)
    return tuple(unique)
