"""A character on its stage: world poses in, the clip that a video model sees out, with gradient (akd §4.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.kinematics.forward import WorldPoses, rest_poses
from bunraku.kinematics.neutral import facing_yaw
from bunraku.math.curves import low_pass, low_pass_kernel
from bunraku.rig.character import Character
from bunraku.splats.camera import Camera
from bunraku.splats.carry import SplatRig, carry_rig
from bunraku.splats.deformation import deform
from bunraku.splats.ground import Checkerboard
from bunraku.splats.rendering import Backend
from bunraku.splats.scene import Scene, render_scene
from bunraku.splats.shadow import Shadow
from bunraku.splats.splats import Splats

_SMOOTHING = 0.35  # [s] of the camera's following
_FILLED = 0.9  # of the shorter side of the picture that the character at rest takes
FIELD_OF_VIEW = math.radians(28.0)


@dataclass(frozen=True, kw_only=True)
class Shot:
    """From where the clip is seen, in degrees round from ahead of the character (left is positive) and above the horizon."""

    aside: float = 60.0
    above: float = 12.0
    follow: bool = True  # the camera goes along with the middle of the character; False: it stays where it was at first
    ground: bool = True  # whether the ground is drawn, with shadows


@dataclass(frozen=True, kw_only=True, eq=False)
class Stage:
    """All that stays the same while a motion is looked for."""

    splats: Splats  # at rest
    rig: SplatRig
    shot: Shot
    scene: Scene
    towards: Float[Tensor, "3"]  # from the character to the camera
    radius: float  # [m] of a ball about the character at rest
    fps: float
    backend: Backend = "auto"

    def film(self, poses: WorldPoses, width: int, height: int) -> Float[Tensor, "F H W 3"]:
        """Pictures of all frames, sRGB from 0 to 1."""
        posed = deform(self.splats, self.rig, poses)
        return self.film_splats(posed, self.camera(posed.means, width, height))

    def film_splats(self, posed: Splats, camera: Camera) -> Float[Tensor, "F H W 3"]:
        return render_scene(posed, camera, self.scene, self.backend).clamp(0, 1)

    def camera(self, means: Float[Tensor, "F N 3"], width: int, height: int) -> Camera:
        """One for each frame, at one distance; it follows the middle of the character smoothly.

        The gradient goes through that, too: without it a character is told to move where the camera then goes with it, and runs away.
        The middle is the mean of all splats, not that of their box: a leg that is wrong should not shift the whole picture.
        """
        middle = low_pass(means.mean(1)[None], low_pass_kernel(max(_SMOOTHING * self.fps, 0.2)))[0]
        if not self.shot.follow:
            middle = middle[:1].expand_as(middle)
        distance = self.radius / _FILLED / math.sin(FIELD_OF_VIEW / 2)
        return Camera.look_at(middle + distance * self.towards.to(middle), middle, width, height, field_of_view=FIELD_OF_VIEW)

    def to(self, device: torch.device) -> Stage:
        rig = replace(self.rig, **{name: getattr(self.rig, name).to(device) for name in ("weights", "arms", "T_world_joint_rest")})
        return replace(self, splats=self.splats.to(device), rig=rig, towards=self.towards.to(device))


def set_stage(character: Character, splats: Splats, fps: float, shot: Shot = Shot(), backend: Backend = "auto") -> Stage:
    """The stage for a character and its splats at rest. The ground lies where the character stands; lengths of the scene grow with it."""
    vertices = character.mesh.vertices
    low, high = vertices.amin(0), vertices.amax(0)
    radius = float((vertices - (low + high) / 2).norm(dim=1).max())
    yaw = float(facing_yaw(character.skeleton, rest_poses(character.skeleton).p_world_joint)) + math.radians(shot.aside)
    above = math.radians(shot.above)
    towards = torch.tensor([math.cos(above) * math.sin(yaw), math.sin(above), math.cos(above) * math.cos(yaw)])
    ground = Checkerboard(height=float(low[1]), square=0.5 * radius, fade=12 * radius)
    scene = Scene(ground=ground if shot.ground else None, shadow=Shadow(decay=2 / radius) if shot.ground else None, edge=0.004 * radius)
    return Stage(splats=splats, rig=carry_rig(splats, character), shot=shot, scene=scene, towards=towards, radius=radius, fps=fps, backend=backend)
