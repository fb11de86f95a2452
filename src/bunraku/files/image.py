"""Contact sheets as PNG or JPEG files."""

from __future__ import annotations

import os
from pathlib import Path

from bunraku.errors import FileProblem
from bunraku.files.disk import write_atomically
from bunraku.kinematics.motion import Motion
from bunraku.picture.sheet import contact_sheet
from bunraku.rig.character import Character

_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}


def save_picture(
    motion: Motion,
    path: str | os.PathLike[str],
    character: Character | None = None,
    *,
    frames: int = 8,
    size: tuple[int, int] = (300, 340),
    camera: str = "three-quarter",
) -> None:
    """Writes a contact sheet of the motion: see `bunraku.picture.sheet.contact_sheet`."""
    kind = picture_format(path)
    sheet = contact_sheet(motion, character, frames, size, camera)
    write_atomically(path, lambda temporary: sheet.save(temporary, format=kind, quality=92))


def picture_format(path: str | os.PathLike[str]) -> str:
    """What Pillow calls the format of a path's suffix."""
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMATS:
        raise FileProblem(f"'{path}' has no suffix of a picture; name a .png or a .jpg.")
    return _FORMATS[suffix]
