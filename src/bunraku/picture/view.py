"""Where a picture is taken from. OpenCV's camera: x right, y down, z ahead; pixel centres at half-integers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

Points = Float[np.ndarray, "*batch 3"]

# How far the camera stands to the character's left (+) or right (−) of straight ahead, and above the horizon [degrees].
STANDS: dict[str, tuple[float, float]] = {"three-quarter": (-32.0, 14.0), "front": (0.0, 8.0), "side": (90.0, 8.0)}
_HALF_FIELD = np.tan(np.radians(14.0))  # of the shorter side of the picture
_MARGIN = 0.86  # of the picture that the character may fill


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """A camera at `p_world` turned by `R_camera_world`; `focal` 0 means parallel rays, one metre being `scale` pixels."""

    R_camera_world: Float[np.ndarray, "3 3"]
    p_world: Float[np.ndarray, "3"]  # [m]
    scale: float  # focal length [px], or [px/m] for parallel rays
    width: int  # [px]
    height: int  # [px]
    parallel: bool = False

    def project(self, p_world: Points) -> Points:
        """Pixel x, pixel y and depth [m] of world points."""
        away = p_world - self.p_world
        # written out: on a busy machine the threads of a matrix product this thin cost ten times its work
        p = np.stack([away[..., 0] * x + away[..., 1] * y + away[..., 2] * z for x, y, z in self.R_camera_world.astype(away.dtype)], axis=-1)
        depth = p[..., 2:]
        shrink = self.scale if self.parallel else self.scale / np.maximum(depth, 1e-6)
        return np.concatenate([p[..., :2] * shrink + (self.width / 2, self.height / 2), depth], axis=-1)

    def rays(self) -> Float[np.ndarray, "H W 3"]:
        """The world direction through each pixel of a camera with perspective, one metre deep."""
        x = (np.arange(self.width) + 0.5 - self.width / 2) / self.scale
        y = (np.arange(self.height) + 0.5 - self.height / 2) / self.scale
        x, y = np.meshgrid(x, y)
        return np.stack([x, y, np.ones_like(x)], axis=-1) @ self.R_camera_world

    def moved(self, by_world: Float[np.ndarray, "3"]) -> View:
        return replace(self, p_world=self.p_world + by_world)


def looking(v_world_ahead: Float[np.ndarray, "3"]) -> Float[np.ndarray, "3 3"]:
    """`R_camera_world` of a camera that looks along a direction and keeps the world's up upright."""
    ahead = v_world_ahead / np.linalg.norm(v_world_ahead)
    right = np.cross(ahead, (0.0, 1.0, 0.0) if abs(ahead[1]) < 0.999 else (0.0, 0.0, -1.0))
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(ahead, right), ahead])


def framing(camera: str, v_world_facing: Float[np.ndarray, "3"], points: Float[np.ndarray, "N 3"], size: tuple[int, int]) -> View:
    """The nearest camera on the wanted side of the character that has all points (about the world's origin) in the picture."""
    aside, above = (np.radians(angle) for angle in STANDS[camera])
    left = np.cross((0.0, 1.0, 0.0), v_world_facing)
    towards = np.cos(above) * (np.cos(aside) * v_world_facing + np.sin(aside) * left) + np.sin(above) * np.array([0.0, 1.0, 0.0])
    R_camera_world = looking(-towards)
    target = np.array([0.0, (points[:, 1].min() + points[:, 1].max()) / 2, 0.0])
    width, height = size
    scale = min(width, height) / 2 / _HALF_FIELD
    p = (points - target) @ R_camera_world.T
    room = np.array([width, height]) / 2 / scale * _MARGIN
    distance = float((np.abs(p[:, :2]) / room - p[:, 2:]).max())
    return View(R_camera_world=R_camera_world, p_world=target + towards * distance, scale=scale, width=width, height=height)
