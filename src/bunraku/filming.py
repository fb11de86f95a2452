"""The door to films: a motion, seen on a body, as a video or a contact sheet. `bunraku.api` offers it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TypedDict, Unpack

import torch

from bunraku.errors import BadValue
from bunraku.files.formats import require_finite
from bunraku.files.video import SLOWEST, check_rate, film_suffix, save_film
from bunraku.film.actors import frames_of, perform
from bunraku.film.camera_moves import MOVES
from bunraku.film.film import Film, check_size, film
from bunraku.film.stage import sky_of
from bunraku.kinematics.edit import resample
from bunraku.kinematics.motion import Motion
from bunraku.rig.character import Character
from bunraku.splats.camera import Camera
from bunraku.splats.ground import Colour

FILM_SIZE, TILE_SIZE = (720, 480), (300, 340)  # [px] of a film, and of each picture on a contact sheet
_SMOOTH = {".mp4": 60.0, ".gif": 30.0}  # frames per second of films of motions that have more, where none are asked for
_STILL_SECONDS, _STILL_FPS = 10.0, 30.0  # a pose is shown for one round of the orbit


class Shot(TypedDict, total=False):
    """How a film is made; everything has a default."""

    camera: str | Camera | None  # follow, front, side, three-quarter, orbit, or your own: one, or one for each frame
    size: tuple[int, int] | None  # width, height [px]; of one picture on a contact sheet
    fps: float | None
    background: str | Colour | None  # the sky's colour; the ground goes with it
    frames: int  # pictures on a contact sheet
    splats: bool  # Gaussians instead of the exact mesh


def render_motion(
    motion: Motion,
    path: str | os.PathLike[str],
    character: Character | None = None,
    *,
    on_progress: Callable[[float], None] | None = None,
    **shot: Unpack[Shot],
) -> Film:
    """Writes a film or a contact sheet of a motion on a character, or on a body that suits its skeleton. Returns what was filmed."""
    unknown = set(shot) - set(Shot.__annotations__)
    if unknown:
        raise BadValue(f"a film has no '{min(unknown)}'; it has {', '.join(Shot.__annotations__)}.")
    suffix = film_suffix(path)
    require_finite(motion, "the motion", BadValue)
    camera, tiles = shot.get("camera"), shot.get("frames", 8)
    size = shot.get("size") or (TILE_SIZE if suffix == ".png" else FILM_SIZE)
    check_size(size)
    sky_of(shot.get("background"))  # what is wrong is said before any work is done
    if isinstance(camera, str) and camera not in MOVES:
        raise BadValue(f"there is no camera '{camera}'; choose {', '.join(MOVES)}.")
    motion, still = _timed(motion, suffix, shot.get("fps"), camera)
    splats = shot.get("splats", False)
    told = [_part(on_progress, *part) for part in ((0.0, 0.1), (0.1, 0.5), (0.5, 1.0) if splats else (0.1, 1.0))]
    performance = perform(motion, character, on_progress=told[0])
    move = camera or ("orbit" if still else "follow")
    sheet = suffix == ".png"
    made = film(performance, camera=move, size=size, background=shot.get("background"), splats=splats, along=sheet, on_progress=told[1])
    save_film(made, path, tiles=tiles, on_progress=told[2])
    return made


def _part(on_progress: Callable[[float], None] | None, start: float, end: float) -> Callable[[float], None] | None:
    """Progress on a part of the whole."""
    return None if on_progress is None else lambda share: on_progress(start + (end - start) * share)


def _timed(motion: Motion, suffix: str, fps: float | None, camera: str | Camera | None) -> tuple[Motion, bool]:
    """The motion at the film's frame rate, and whether it is a single pose, which is held while the camera goes round it."""
    if fps is not None:
        check_rate(fps, suffix)
    if len(motion) == 1 and camera in (None, "orbit"):
        fps = fps or _STILL_FPS
        return replace(frames_of(motion, torch.zeros(round(_STILL_SECONDS * fps), dtype=torch.long)), fps=fps), True
    if suffix == ".png":
        return motion, False
    if fps is None:
        fps = max(min(motion.fps, _SMOOTH[suffix]), SLOWEST)
    return resample(motion, fps), False
