"""A film: a performance, the cameras that see it and the stage it is on; frames are drawn one by one when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.film.actors import FRAMES_AT_ONCE, Performance, frames_of
from bunraku.film.camera_moves import camera_path, facing_at_first
from bunraku.film.mesh_frames import draw_mesh, lamp_of
from bunraku.film.splat_frames import Gaussians, draw_splats, gaussians_of
from bunraku.film.stage import reach_of, stage_for
from bunraku.kinematics.forward import forward_kinematics
from bunraku.picture.surface import Surface, surface_of
from bunraku.rig.skinning import skin_vertices
from bunraku.splats.camera import Camera
from bunraku.splats.ground import Colour
from bunraku.splats.scene import Scene

SMALLEST, LARGEST = 16, 4096  # [px]


@dataclass(frozen=True, kw_only=True, eq=False)
class Film:
    performance: Performance
    camera: Camera  # one per frame
    scene: Scene
    orbits: bool = False  # then the lamp goes round with the camera, as if the body stood on a turntable
    gaussians: Gaussians | None = None  # what is drawn instead of the exact mesh

    def __len__(self) -> int:
        return len(self.performance.motion)

    def __repr__(self) -> str:
        return f"Film({len(self)} frames at {self.fps:g} fps, {self.camera.width} × {self.camera.height} px, performed by {self.performance.character.name!r})"

    @property
    def fps(self) -> float:
        return self.performance.motion.fps

    @cached_property
    def _surface(self) -> Surface:
        return surface_of(self.performance.character.mesh)

    def frames(self, chosen: Sequence[int] | None = None) -> Iterator[UInt8[np.ndarray, "H W 3"]]:
        """The pictures of the chosen frames, of all without a choice."""
        rows = list(range(len(self)) if chosen is None else chosen)
        for start in range(0, len(rows), FRAMES_AT_ONCE):
            yield from (self._mesh if self.gaussians is None else self._splats)(torch.tensor(rows[start : start + FRAMES_AT_ONCE]))

    def _mesh(self, rows: Int[Tensor, " N"]) -> Iterator[UInt8[np.ndarray, "H W 3"]]:
        character, reach = self.performance.character, reach_of(self.performance.points)
        vertices = skin_vertices(character, frames_of(self.performance.motion, rows)).double().numpy()
        for row, shape in zip(rows.tolist(), vertices, strict=True):
            yield draw_mesh(self._surface, shape, self.camera[row], self.scene, lamp_of(self.camera[row if self.orbits else 0]), reach)

    def _splats(self, rows: Int[Tensor, " N"]) -> Iterator[UInt8[np.ndarray, "H W 3"]]:
        assert self.gaussians is not None
        yield from draw_splats(self.gaussians, frames_of(self.performance.motion, rows), self.camera[rows], self.scene)


def film(
    performance: Performance,
    *,
    camera: str | Camera = "follow",
    size: tuple[int, int] = (720, 480),
    background: str | Colour | None = None,
    splats: bool = False,
    along: bool = False,
    on_progress: Callable[[float], None] | None = None,
) -> Film:
    """A film of a performance. `camera` is a move (`camera_moves.MOVES`), or your own: one, or one for each frame, which brings its size.

    `along`: fixed cameras go along with the body too (see `camera_path`).
    """
    points, motion = performance.points, performance.motion
    if isinstance(camera, Camera):
        path = _own_camera(camera, len(motion))
    else:
        check_size(size)
        facing = facing_at_first(motion.skeleton, forward_kinematics(motion[:1]).p_world_joint)
        path = camera_path(camera, points, facing, motion.fps, size, along=along)
    middle = (points.amin(1) + points.amax(1)) / 2
    distance = float((path.p_world - middle).norm(dim=-1).mean())
    reach = reach_of(points)
    scene = stage_for(reach, max(distance, reach), background)
    gaussians = gaussians_of(performance.character, on_progress) if splats else None
    return Film(performance=performance, camera=path, scene=scene, orbits=camera == "orbit", gaussians=gaussians)


def check_size(size: tuple[int, int]) -> None:
    if len(size) != 2 or not all(isinstance(side, int) and SMALLEST <= side <= LARGEST for side in size):
        raise BadValue(f"a picture of {' × '.join(map(str, size))} pixels cannot be made; each side needs {SMALLEST} to {LARGEST}, such as 720 × 480.")


def _own_camera(camera: Camera, frames: int) -> Camera:
    poses = camera.T_world_camera
    if poses.shape[:-2] not in ((), (1,), (frames,)):
        raise BadValue(f"{tuple(poses.shape[:-2])} cameras were given for {frames} frames; give one, or one for each frame.")
    if not (bool(torch.isfinite(poses).all()) and bool(torch.isfinite(camera.K).all())):
        raise BadValue("the camera's pose or lens has numbers that are not finite.")
    check_size((camera.width, camera.height))
    return Camera(T_world_camera=poses.expand(frames, 4, 4).float(), K=camera.K.float(), width=camera.width, height=camera.height)
