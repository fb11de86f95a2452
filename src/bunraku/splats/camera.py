"""The camera that sees splats. OpenCV's: x right, y down, z ahead; pixel centres at half-integers, principal point (W/2, H/2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.math.rigid import rigid, rigid_inverse, transform_points

FIELD_OF_VIEW = 0.7  # [rad] about what a lens of 50 mm sees
LARGEST_SIDE = 16384  # [px]


@dataclass(frozen=True, kw_only=True, eq=False)
class Camera:
    """One camera, or a batch of them (one for each frame) with the same lens."""

    T_world_camera: Float[Tensor, "*batch 4 4"]
    K: Float[Tensor, "3 3"]  # [px]
    width: int  # [px]
    height: int  # [px]

    def __post_init__(self) -> None:
        if not (1 <= self.width <= LARGEST_SIDE and 1 <= self.height <= LARGEST_SIDE):
            raise BadValue(f"a picture of {self.width} × {self.height} pixels cannot be taken; each side needs 1 to {LARGEST_SIDE}.")
        if self.T_world_camera.shape[-2:] != (4, 4) or self.K.shape != (3, 3):
            given = f"{tuple(self.T_world_camera.shape)} and {tuple(self.K.shape)}"
            raise BadValue(f"a camera's pose and lens have the shapes {given}; (…, 4, 4) and (3, 3) are needed. Use Camera.look_at.")

    @staticmethod
    def look_at(
        eye: Float[Tensor, "*batch 3"] | Sequence[float],
        target: Float[Tensor, "*batch 3"] | Sequence[float],
        width: int,
        height: int,
        *,
        field_of_view: float = FIELD_OF_VIEW,
        up: Sequence[float] = (0.0, 1.0, 0.0),
    ) -> Camera:
        """A camera at `eye` that looks at `target` [m], upright; `field_of_view` [rad] is that of the shorter side of the picture.

        Several eyes or targets make a batch. Straight above or below the target, the world's −Z or +Z is the upper side of the picture.
        """
        if not 0 < field_of_view < math.pi:
            raise BadValue(f"a field of view of {field_of_view:g} rad is none; an angle between 0 and π is needed, such as {FIELD_OF_VIEW}.")
        p_eye, p_target = _same_kind(eye, target)
        T = rigid(_looking(p_target - p_eye, torch.as_tensor(up, dtype=p_eye.dtype, device=p_eye.device)), p_eye)
        focal = min(width, height) / 2 / math.tan(field_of_view / 2)
        K = torch.tensor([[focal, 0.0, width / 2], [0.0, focal, height / 2], [0.0, 0.0, 1.0]], dtype=p_eye.dtype, device=p_eye.device)
        return Camera(T_world_camera=T, K=K, width=width, height=height)

    @property
    def T_camera_world(self) -> Float[Tensor, "*batch 4 4"]:
        return rigid_inverse(self.T_world_camera)

    @property
    def p_world(self) -> Float[Tensor, "*batch 3"]:
        """Where it stands [m]."""
        return self.T_world_camera[..., :3, 3]

    def project(self, p_world: Float[Tensor, "*points N 3"]) -> tuple[Float[Tensor, "*batch N 2"], Float[Tensor, "*batch N"]]:
        """Pixel (x, y) and depth [m] of world points. Points beside or behind the camera have a depth of 0 or less, and no meaningful pixel."""
        p = transform_points(self.T_camera_world, p_world)
        depth = p[..., 2]
        scale = self.K[[0, 1], [0, 1]] / torch.where(depth > 0, depth, 1.0)[..., None]
        return p[..., :2] * scale + self.K[:2, 2], depth

    def rays(self) -> Float[Tensor, "*batch H W 3"]:
        """The world direction through each pixel's centre, one metre deep: `p_world + depth * ray` is what lies at that depth."""
        x = (torch.arange(self.width, dtype=self.K.dtype, device=self.K.device) + 0.5 - self.K[0, 2]) / self.K[0, 0]
        y = (torch.arange(self.height, dtype=self.K.dtype, device=self.K.device) + 0.5 - self.K[1, 2]) / self.K[1, 1]
        v_camera = torch.stack([x.expand(self.height, -1), y[:, None].expand(-1, self.width), torch.ones_like(x).expand(self.height, -1)], dim=-1)
        return v_camera @ self.T_world_camera[..., None, :3, :3].transpose(-1, -2)

    def resized(self, width: int, height: int) -> Camera:
        """The same place and, along the shorter side, the same field of view, on a picture of another size."""
        focal = self.K[0, 0] * min(width, height) / min(self.width, self.height)
        K = torch.eye(3, dtype=self.K.dtype, device=self.K.device)
        K[0, 0] = K[1, 1] = focal
        K[0, 2], K[1, 2] = width / 2, height / 2
        return replace(self, K=K, width=width, height=height)

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Camera:
        """On another device or in another precision."""
        return replace(self, T_world_camera=self.T_world_camera.to(device=device, dtype=dtype), K=self.K.to(device=device, dtype=dtype))

    def __getitem__(self, frames: int | slice | Tensor) -> Camera:
        """Some of a batch of cameras."""
        return replace(self, T_world_camera=self.T_world_camera[frames])

    def __repr__(self) -> str:
        count = f"{' × '.join(map(str, self.T_world_camera.shape[:-2]))} views, " if self.T_world_camera.ndim > 2 else ""
        return f"Camera({count}{self.width} × {self.height} px)"


def _same_kind(eye: Tensor | Sequence[float], target: Tensor | Sequence[float]) -> tuple[Tensor, Tensor]:
    """Both as tensors of one precision, on one device and of one shape."""
    like = next((value for value in (eye, target) if isinstance(value, Tensor)), torch.zeros(()))
    p_eye, p_target = (torch.as_tensor(value, dtype=like.dtype, device=like.device) for value in (eye, target))
    if p_eye.shape[-1:] != (3,) or p_target.shape[-1:] != (3,):
        raise BadValue(f"the camera's eye {tuple(p_eye.shape)} and target {tuple(p_target.shape)} need three numbers each: x, y, z in metres.")
    if bool(((p_target - p_eye).norm(dim=-1) == 0).any()):
        raise BadValue("the camera stands where it looks; move its eye away from its target.")
    return torch.broadcast_tensors(p_eye, p_target)


def _looking(v_world_ahead: Float[Tensor, "*batch 3"], up: Float[Tensor, "3"]) -> Float[Tensor, "*batch 3 3"]:
    """`R_world_camera` of a camera that looks along a direction and keeps the world's up upright."""
    ahead = torch.nn.functional.normalize(v_world_ahead, dim=-1)
    up = torch.nn.functional.normalize(up, dim=0)
    steep = (ahead * up).sum(-1, keepdim=True)
    other = torch.tensor([0.0, 0.0, 1.0] if abs(up[2]) < 0.9 else [0.0, 1.0, 0.0], dtype=up.dtype, device=up.device)
    upright = torch.where(steep.abs() < 0.9999, up, steep.sign() * other)
    right = torch.nn.functional.normalize(torch.linalg.cross(ahead, upright.expand_as(ahead)), dim=-1)
    return torch.stack([right, torch.linalg.cross(ahead, right), ahead], dim=-1)
