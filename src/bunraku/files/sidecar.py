"""What BVH and CSV have no room for, in a small JSON beside them: `walk.bvh` has `walk.bvh.json`.

It holds provenance, frame rate, contacts, and for BVH the skeleton's name and roles. The main file never depends on it: other programs
do not see it, and it is ignored (with a note) once the file it belongs to has changed. It is written after the main file, so a
crash leaves at worst a motion without its side-car.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from bunraku.errors import FormatProblem
from bunraku.files.disk import read_bytes, read_text, write_text
from bunraku.files.metadata import provenance_from_json, provenance_to_json
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import ROLES


def sidecar_path(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    return path.with_name(path.name + ".json")


def save_sidecar(motion: Motion, path: str | os.PathLike[str]) -> None:
    """Writes the side-car of a motion file that has just been written."""
    body = motion.skeleton
    data: dict[str, Any] = {
        "bunraku": provenance_to_json(motion.provenance),
        "fps": motion.fps,
        "skeleton": body.name,
        "roles": {role: body.joints[joint] for role, joint in body.roles.items()},
        "sha256": _digest(path),
    }
    if motion.contacts is not None:
        data["contacts"] = [f"{row[0]}{row[1]}{row[2]}{row[3]}" for row in motion.contacts.int().tolist()]
    write_text(sidecar_path(path), json.dumps(data, indent=1, ensure_ascii=False))


@dataclass(frozen=True, kw_only=True)
class Sidecar:
    """What lies beside a motion file. `data` is None where nothing there belongs to it; `stale` says why, where something seems to."""

    data: Mapping[str, Any] | None = None
    stale: str | None = None

    def complete(self, motion: Motion) -> Motion:
        """The motion just read from the main file, with what that file has no room for."""
        if self.data is not None:
            return _completed(motion, self.data)
        return motion if self.stale is None else replace(motion, provenance=motion.provenance.noted(sidecar=self.stale))


def read_sidecar(path: str | os.PathLike[str]) -> Sidecar:
    """The side-car of the motion file `path`."""
    beside = sidecar_path(path)
    if not beside.is_file():
        return Sidecar()
    try:
        data = json.loads(read_text(beside))
    except (ValueError, RecursionError) as error:
        raise FormatProblem(f"'{beside}' is no JSON ({error}); delete it or write the motion again.") from error
    if not isinstance(data, dict) or "bunraku" not in data:
        return Sidecar()  # somebody else's file that happens to have this name
    if data.get("sha256") != _digest(path):
        return Sidecar(stale=f"'{beside.name}' belongs to another version of this file and is ignored")
    return Sidecar(data=data)


def _completed(motion: Motion, data: Mapping[str, Any]) -> Motion:
    provenance = provenance_from_json(data["bunraku"], motion.provenance.source or "")
    notes = {topic: note for topic, note in motion.provenance.notes.items() if topic != "fps"}
    roles = data.get("roles")
    skeleton = motion.skeleton
    if isinstance(roles, dict):
        found = {role: skeleton.index[joint] for role, joint in roles.items() if role in ROLES and isinstance(joint, str) and joint in skeleton.index}
        skeleton = replace(skeleton, roles=found, name=str(data.get("skeleton", skeleton.name)))
    fps = data.get("fps")
    return replace(
        motion,
        skeleton=skeleton,
        fps=float(fps) if isinstance(fps, int | float) and 0 < fps < float("inf") else motion.fps,
        contacts=_contacts(data.get("contacts"), len(motion)),
        provenance=replace(provenance, notes={**provenance.notes, **notes}),
    )


def _contacts(rows: object, frames: int) -> torch.Tensor | None:
    if not isinstance(rows, list) or len(rows) != frames or not all(isinstance(row, str) and len(row) == 4 for row in rows):
        return None
    return torch.tensor([[digit == "1" for digit in row] for row in rows])


def _digest(path: str | os.PathLike[str]) -> str:
    return hashlib.sha256(read_bytes(path)).hexdigest()
