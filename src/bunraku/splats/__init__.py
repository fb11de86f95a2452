"""How a character looks: Gaussian splats, the camera that sees them, and rasterisers that run anywhere."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunraku.splats.camera import Camera
    from bunraku.splats.carry import carry_rig, carry_weights
    from bunraku.splats.deformation import deform
    from bunraku.splats.from_a_mesh import from_mesh
    from bunraku.splats.rendering import Rendering, RenderSettings, render
    from bunraku.splats.splats import Splats, random_splats

_HOMES = {  # looked up when first used, so that naming one does not wait for torch
    "Camera": "camera",
    "RenderSettings": "rendering",
    "Rendering": "rendering",
    "Splats": "splats",
    "carry_rig": "carry",
    "carry_weights": "carry",
    "deform": "deformation",
    "from_mesh": "from_a_mesh",
    "random_splats": "splats",
    "render": "rendering",
}
__all__ = ["Camera", "RenderSettings", "Rendering", "Splats", "carry_rig", "carry_weights", "deform", "from_mesh", "random_splats", "render"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"bunraku.splats.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'bunraku.splats' has no attribute '{name}'")
