"""Frames of a character as Gaussian splats, in the scene."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import UInt8

from bunraku.kinematics.motion import Motion
from bunraku.rig.character import Character
from bunraku.splats.baked_light import lit_at_rest
from bunraku.splats.camera import Camera
from bunraku.splats.carry import SplatRig, carry_rig
from bunraku.splats.deformation import deform
from bunraku.splats.from_a_mesh import from_mesh
from bunraku.splats.scene import Scene, render_scene
from bunraku.splats.splats import Splats


@dataclass(frozen=True, kw_only=True, eq=False)
class Gaussians:
    """Splats at rest and how they follow the bones."""

    splats: Splats
    rig: SplatRig


def gaussians_of(character: Character, on_progress: Callable[[float], None] | None = None) -> Gaussians:
    """The character's own splats, or ones fitted to its mesh, which takes half a minute."""
    own = character.splats
    splats = own if isinstance(own, Splats) else from_mesh(lit_at_rest(character), on_progress=on_progress)
    return Gaussians(splats=splats, rig=carry_rig(splats, character))


def draw_splats(actor: Gaussians, motion: Motion, camera: Camera, scene: Scene) -> Iterator[UInt8[np.ndarray, "H W 3"]]:
    """One picture per frame of the motion, from one camera each."""
    with torch.no_grad():
        for frame in range(len(motion)):
            moved = deform(actor.splats, actor.rig, motion[frame : frame + 1])
            image = render_scene(moved, camera[frame : frame + 1], scene)[0]
            yield (image.clamp(0, 1) * 255 + 0.5).byte().numpy()
