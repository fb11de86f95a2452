"""Frames of a skinned mesh, drawn exactly: lit by sky and lamp, on the ground of the scene, which takes its shadow."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, UInt8

from bunraku.film.ground_kernel import behind
from bunraku.geometry.colour import to_srgb
from bunraku.geometry.raster import Hits
from bunraku.picture.raster import rasterise
from bunraku.picture.shade import Lamp, lamp_for, lit
from bunraku.picture.surface import Surface
from bunraku.picture.view import View
from bunraku.splats.camera import Camera
from bunraku.splats.scene import Scene

_SUPERSAMPLING = 2  # of the mesh; the ground is exact without
_SINKS = 4.0  # [edges of the scene] how far below the ground the mesh is still seen


def draw_mesh(
    surface: Surface, vertices: Float[np.ndarray, "V 3"], camera: Camera, scene: Scene, lamp_direction: Float[np.ndarray, "3"], reach: float
) -> UInt8[np.ndarray, "H W 3"]:
    """One frame from one camera. The lamp stands in the direction `lamp_direction`, `reach` is the size of the body [m]."""
    lamp = Lamp(lamp_direction, reach, surface, vertices)
    view = view_of(camera, _SUPERSAMPLING)
    hits = _above_ground(rasterise(vertices, surface.faces, view), surface, vertices, scene)
    row, column = np.divmod(hits.pixel, view.width)
    pixel = row // _SUPERSAMPLING * camera.width + column // _SUPERSAMPLING
    light, count = lit(surface, vertices, hits, view, lamp), camera.height * camera.width
    total = np.stack([np.bincount(pixel, light[:, channel], count) for channel in range(3)], axis=-1)
    samples = np.bincount(pixel, minlength=count)
    seen = np.flatnonzero(samples)
    image = behind(camera, scene, lamp).reshape(-1, 3)
    cover = samples[seen, None] / _SUPERSAMPLING**2
    image[seen] = cover * to_srgb(total[seen] / samples[seen, None]) + (1 - cover) * image[seen]
    return (image.reshape(camera.height, camera.width, 3).clip(0, 1) * 255 + 0.5).astype(np.uint8)


def _above_ground(hits: Hits, surface: Surface, vertices: Float[np.ndarray, "V 3"], scene: Scene) -> Hits:
    """Without what the ground hides; soles that sink into it by a trifle stay whole."""
    if scene.ground is None:
        return hits
    shown = hits.interpolate(vertices[:, 1:2], surface.faces)[:, 0] > scene.ground.height - _SINKS * scene.edge
    return Hits(pixel=hits.pixel[shown], face=hits.face[shown], weight=hits.weight[shown], depth=hits.depth[shown])


def view_of(camera: Camera, supersampling: int = 1) -> View:
    """A camera of splats as a view of pictures."""
    T = camera.T_world_camera.double().numpy()
    width, height = camera.width * supersampling, camera.height * supersampling
    return View(R_camera_world=T[:3, :3].T, p_world=T[:3, 3], scale=float(camera.K[0, 0]) * supersampling, width=width, height=height)


def lamp_of(camera: Camera) -> Float[np.ndarray, "3"]:
    """Where the lamp of a film stands: fixed in the world, above the left shoulder of its first camera."""
    return lamp_for(view_of(camera))
