"""Contact sheets of films: some frames side by side, with time stamps and dots where feet touch the ground."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image

from bunraku.errors import BadValue
from bunraku.film.film import Film
from bunraku.kinematics.forward import forward_kinematics
from bunraku.picture.sheet import in_rows, labelled

MOST_TILES = 64


def film_sheet(film: Film, tiles: int = 8, on_progress: Callable[[float], None] | None = None) -> Image.Image:
    """Frames evenly spread from the first to the last."""
    if not (isinstance(tiles, int) and 1 <= tiles <= MOST_TILES):
        raise BadValue(f"a contact sheet has 1 to {MOST_TILES} pictures; {tiles} were asked for.")
    chosen = np.unique(np.linspace(0, len(film) - 1, tiles).round().astype(int)).tolist()
    motion, pictures = film.performance.motion, []
    for frame, image in zip(chosen, film.frames(chosen), strict=True):
        joints = forward_kinematics(motion[frame : frame + 1]).p_world_joint[0]
        at, _ = film.camera[frame].project(joints)
        pictures.append(labelled(Image.fromarray(image), motion, frame, at.double().numpy()))
        if on_progress is not None:
            on_progress(len(pictures) / len(chosen))
    return in_rows(pictures)
