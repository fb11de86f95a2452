"""Frames of a character as Gaussian splats, in the scene."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import UInt8

from bunraku import splats as room
from bunraku.kinematics.motion import Motion
from bunraku.rig.character import Character
from bunraku.splats.camera import Camera
from bunraku.splats.scene import Scene, render_scene
from bunraku.splats.splats import Splats


def splats_of(character: Character) -> Splats:
    """The character's own splats, or new ones of its mesh."""
    if isinstance(character.splats, Splats):
        return character.splats
    return room.from_mesh(character)


def draw_splats(character: Character, splats: Splats, motion: Motion, camera: Camera, scene: Scene) -> Iterator[UInt8[np.ndarray, "H W 3"]]:
    """One picture per frame of the motion, from one camera each."""
    with torch.no_grad():
        for frame in range(len(motion)):
            moved = room.deform(splats, character.rig, motion[frame : frame + 1])
            image = render_scene(moved, camera[frame : frame + 1], scene)[0]
            yield (image.clamp(0, 1) * 255 + 0.5).byte().numpy()
