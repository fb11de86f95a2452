"""Ground, sky and the lamp's shadow for films, compiled: the same picture as its readable twin makes of `see_ground` and `Lamp.shadow_on_plane`."""

from __future__ import annotations

import math
from typing import no_type_check

import numpy as np
import torch
from jaxtyping import Float

from bunraku.picture.shade import Lamp
from bunraku.splats.camera import Camera
from bunraku.splats.compiled import evenly, kernel, on_cores
from bunraku.splats.ground import BOXES, FARTHEST, SHARPEST, see_ground
from bunraku.splats.scene import Scene, over_sky

_ROWS_AT_LEAST = 32  # that are worth a thread


def behind(camera: Camera, scene: Scene, lamp: Lamp) -> Float[np.ndarray, "H W 3"]:
    """What lies behind the mesh, sRGB."""
    image = np.empty((camera.height, camera.width, 3), dtype=np.float32)
    image[:] = scene.sky
    ground, T = scene.ground, camera.T_world_camera.double().numpy()
    if ground is None:
        return image
    paint = np.array([*ground.colours, scene.sky], dtype=np.float64)
    strongest = 0.0 if scene.shadow is None else scene.shadow.strongest
    measures = np.array([float(camera.K[0, 0]), ground.height, ground.square, ground.fade, strongest, lamp.view.scale])
    lamps = np.concatenate([lamp.view.R_camera_world, lamp.view.p_world[None]])
    on_cores(_paint, evenly(camera.height, _ROWS_AT_LEAST), image, np.ascontiguousarray(T[:3]), paint, measures, lamps, lamp.cover)
    return image


def behind_readable(camera: Camera, scene: Scene, lamp: Lamp) -> Float[np.ndarray, "H W 3"]:
    """The twin of `behind`."""
    sky = torch.tensor(scene.sky)
    if scene.ground is None:
        return np.broadcast_to(sky.numpy(), (camera.height, camera.width, 3)).copy()
    floor = see_ground(camera, scene.ground)
    image = over_sky(floor, sky).numpy()
    if scene.shadow is not None:
        image = image * (1 - (scene.shadow.strongest * floor.share.numpy() * lamp.shadow_on_plane(floor.p_world.numpy()))[..., None])
    return image


@kernel
@no_type_check
def _wave(place, half):
    """The mean of the square wave over an interval about `place`."""
    after = 1 - abs((place + half) % 2.0 - 1)
    before = 1 - abs((place - half) % 2.0 - 1)
    return (after - before) / (2 * half)


@kernel
@no_type_check
def _shade(cover, lamps, scale, x, y, z):
    """How much of the lamp's light is lost at a point behind everything."""
    size = cover.shape[0]
    ax, ay, az = x - lamps[3, 0], y - lamps[3, 1], z - lamps[3, 2]
    u = (lamps[0, 0] * ax + lamps[0, 1] * ay + lamps[0, 2] * az) * scale + size / 2 - 0.5
    v = (lamps[1, 0] * ax + lamps[1, 1] * ay + lamps[1, 2] * az) * scale + size / 2 - 0.5
    if not (u >= 0 and v >= 0 and u < size - 1 and v < size - 1):
        return 0.0
    column, row = int(u), int(v)
    u, v = u - column, v - row
    upper = (1 - u) * cover[row, column] + u * cover[row, column + 1]
    return (1 - v) * upper + v * ((1 - u) * cover[row + 1, column] + u * cover[row + 1, column + 1])


@kernel
@no_type_check
def _paint(image, T, paint, measures, lamps, cover, first, last):
    """Rows `first` to `last` of the picture, which holds the sky before."""
    height, width = image.shape[:2]
    focal, level, square, fade, strongest, scale = measures
    above = T[1, 3] - level
    if above <= 0:
        return
    for row in range(first, last):
        y = (row + 0.5 - height / 2) / focal
        for column in range(width):
            x = (column + 0.5 - width / 2) / focal
            rx = T[0, 0] * x + T[0, 1] * y + T[0, 2]
            ry = T[1, 0] * x + T[1, 1] * y + T[1, 2]
            rz = T[2, 0] * x + T[2, 1] * y + T[2, 2]
            if ry >= -1e-9:
                continue
            depth = -above / ry
            away = depth * depth * (rx * rx + rz * rz) / (fade * fade)
            if away >= FARTHEST * FARTHEST:
                continue
            px, pz = T[0, 3] + depth * rx, T[2, 3] + depth * rz
            metres = depth / square / focal
            ux, uz = metres * (T[0, 0] - rx * T[1, 0] / ry), metres * (T[2, 0] - rz * T[1, 0] / ry)
            vx, vz = metres * (T[0, 1] - rx * T[1, 1] / ry), metres * (T[2, 1] - rz * T[1, 1] / ry)
            if vx * vx + vz * vz > ux * ux + uz * uz:
                ux, uz, vx, vz = vx, vz, ux, uz
            wide = max(math.sqrt((ux / BOXES) ** 2 + vx * vx), SHARPEST) / 2
            deep = max(math.sqrt((uz / BOXES) ** 2 + vz * vz), SHARPEST) / 2
            light = 0.5
            for box in range(BOXES):
                along = (box + 0.5) / BOXES - 0.5
                light += 0.5 / BOXES * _wave(px / square + along * ux, wide) * _wave(pz / square + along * uz, deep)
            share = math.exp(-away)
            left = 1 - strongest * share * _shade(cover, lamps, scale, px, level, pz)
            for channel in range(3):
                ground = paint[1, channel] + light * (paint[0, channel] - paint[1, channel])
                image[row, column, channel] = left * (paint[2, channel] + share * (ground - paint[2, channel]))
