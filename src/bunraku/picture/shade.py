"""One picture: a character lit by a soft sky and one lamp, on a ground with a grid that takes its shadow.

The lamp sees the scene through parallel rays; what it does not see is in shadow, on the ground as on the character itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from PIL import Image, ImageDraw
from scipy.ndimage import uniform_filter

from bunraku.geometry.colour import to_linear, to_srgb
from bunraku.geometry.raster import Hits
from bunraku.picture.raster import rasterise
from bunraku.picture.surface import Surface
from bunraku.picture.view import View, looking

SUPERSAMPLING = 2
_BACKDROP, _GROUND, _LINE, _TRAIL = (to_linear(np.array(c) / 255.0) for c in ((247, 246, 243), (226, 223, 216), (190, 185, 175), (214, 120, 60)))
_LAMP, _SKY, _BOUNCE = 0.82, 0.46, 0.22  # strengths
_LAMP_PIXELS = 512
_SOFTNESS = (-3, -1, 1, 3)  # lamp pixels around a point that are asked
_PENUMBRA = 5  # [lamp pixels] of each of two passes


@dataclass(frozen=True, kw_only=True, eq=False)
class Stage:
    """What does not change from picture to picture."""

    view: View  # of a character that stands at the origin
    reach: float  # the size of the character [m]
    trail: Float[np.ndarray, "F 3"]  # where the character goes, on the ground [m, world]

    @property
    def v_world_lamp(self) -> Float[np.ndarray, "3"]:
        return lamp_for(self.view)


def lamp_for(view: View) -> Float[np.ndarray, "3"]:
    """Towards the lamp: above the camera's left shoulder."""
    right, _, ahead = view.R_camera_world
    direction = -0.55 * right - 0.45 * ahead * (1, 0, 1) + np.array([0.0, 1.15, 0.0])
    return direction / np.linalg.norm(direction)


def draw(stage: Stage, surface: Surface, vertices: Float[np.ndarray, "V 3"], p_world_stand: Float[np.ndarray, "3"], so_far: int) -> Image.Image:
    """The character with these vertices, seen from the stage's camera moved along to where it stands; `so_far` frames of the trail are past."""
    view = stage.view.moved(p_world_stand)
    lamp = Lamp(stage.v_world_lamp, stage.reach, surface, vertices)
    image = _ground(stage, view, lamp, p_world_stand)
    image = _with_trail(image, stage, view, so_far)
    hits = rasterise(vertices, surface.faces, view)
    image.reshape(-1, 3)[hits.pixel] = lit(surface, vertices, hits, view, lamp)
    picture = Image.fromarray((to_srgb(image) * 255 + 0.5).astype(np.uint8))
    return picture.resize((view.width // SUPERSAMPLING, view.height // SUPERSAMPLING), Image.Resampling.BOX)


def lit(surface: Surface, vertices: Float[np.ndarray, "V 3"], hits: Hits, view: View, lamp: Lamp) -> Float[np.ndarray, "P 3"]:
    """The light [linear RGB] that comes from the points a view sees: sky, ground and lamp on the surface's colour, and a faint rim."""
    point = hits.interpolate(vertices, surface.faces)
    normal = hits.interpolate(surface.normals(vertices), surface.faces)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    towards_eye = view.p_world - point
    # the back of a face is lit from its own side; smooth normals that turn away at an outline are not the back
    normal *= np.where((surface.face_normals(vertices)[hits.face] * towards_eye).sum(1, keepdims=True) < 0, -1.0, 1.0)
    towards_eye /= np.maximum(np.linalg.norm(towards_eye, axis=1, keepdims=True), 1e-12)
    light = _SKY * (0.5 + 0.5 * normal[:, 1]) + _BOUNCE * (0.5 - 0.5 * normal[:, 1])
    facing = (normal @ lamp.v_world).clip(0)
    light += _LAMP * facing * (1 - lamp.shadow(point + normal * 0.012 * lamp.reach))
    rim = 0.10 * (1 - (normal * towards_eye).sum(1).clip(0, 1)) ** 3
    return surface.albedo(hits) * light[:, None] + rim[:, None]


class Lamp:
    """The depth map of one pose as the lamp sees it."""

    def __init__(self, v_world: Float[np.ndarray, "3"], reach: float, surface: Surface, vertices: Float[np.ndarray, "V 3"]) -> None:
        self.v_world, self.reach = v_world, reach  # towards the lamp, unit · the size of the character [m]
        centre = (vertices.min(0) + vertices.max(0)) / 2
        radius = np.linalg.norm(vertices - centre, axis=1).max() * 1.05 + 1e-6
        self.view = View(
            R_camera_world=looking(-v_world),
            p_world=centre + v_world * 2 * radius,
            scale=_LAMP_PIXELS / (2 * radius),
            width=_LAMP_PIXELS,
            height=_LAMP_PIXELS,
            parallel=True,
        )
        hits = rasterise(vertices, surface.faces, self.view)
        self.depth = np.full(_LAMP_PIXELS * _LAMP_PIXELS, np.inf)
        self.depth[hits.pixel] = hits.depth
        self.tolerance = 0.006 * reach

    def shadow(self, p_world: Float[np.ndarray, "P 3"]) -> Float[np.ndarray, " P"]:
        """0 in the light … 1 in full shadow."""
        x, y, depth = self.view.project(p_world).T
        shade = np.zeros(len(p_world))
        near = np.flatnonzero((np.abs(x - _LAMP_PIXELS / 2) < _LAMP_PIXELS / 2 + 4) & (np.abs(y - _LAMP_PIXELS / 2) < _LAMP_PIXELS / 2 + 4))
        x, y, depth = np.floor(x[near]).astype(int), np.floor(y[near]).astype(int), depth[near] - self.tolerance
        for dx in _SOFTNESS:
            for dy in _SOFTNESS:
                column, row = x + dx, y + dy
                valid = (column >= 0) & (column < _LAMP_PIXELS) & (row >= 0) & (row < _LAMP_PIXELS)
                pixel = np.where(valid, row * _LAMP_PIXELS + column, 0)
                shade[near] += valid & (self.depth[pixel] < depth)
        return shade / len(_SOFTNESS) ** 2

    @cached_property
    def cover(self) -> Float[np.ndarray, "M M"]:
        """How much of the lamp's light every pixel of its map loses, softened."""
        blocked = np.isfinite(self.depth).astype(np.float32).reshape(_LAMP_PIXELS, _LAMP_PIXELS)
        return uniform_filter(uniform_filter(blocked, _PENUMBRA, mode="constant"), _PENUMBRA, mode="constant")

    def shadow_on_plane(self, p_world: Float[np.ndarray, "*batch 3"]) -> Float[np.ndarray, "*batch"]:
        """`shadow` for points behind all of the surface, such as those of the ground: one soft look instead of sixteen."""
        at = self.view.project(p_world.reshape(-1, 3))[:, :2] - 0.5
        inside = np.flatnonzero(((at >= 0) & (at < _LAMP_PIXELS - 1)).all(1))
        x, y = at[inside].T
        column, row = x.astype(int), y.astype(int)
        x, y = x - column, y - row
        cover, shade = self.cover, np.zeros(len(at))
        upper = (1 - x) * cover[row, column] + x * cover[row, column + 1]
        shade[inside] = (1 - y) * upper + y * ((1 - x) * cover[row + 1, column] + x * cover[row + 1, column + 1])
        return shade.reshape(p_world.shape[:-1])


def _ground(stage: Stage, view: View, lamp: Lamp, p_world_stand: Float[np.ndarray, "3"]) -> Float[np.ndarray, "H W 3"]:
    """The floor y = 0 with grid lines, fading into the backdrop away from the character."""
    image = np.broadcast_to(_BACKDROP, (view.height * view.width, 3)).copy()
    ray = view.rays().reshape(-1, 3)
    meets = np.flatnonzero(ray[:, 1] * view.p_world[1] < 0)
    ray = ray[meets]
    depth = -view.p_world[1] / ray[:, 1]
    point = view.p_world + depth[:, None] * ray
    away = np.linalg.norm((point - p_world_stand)[:, [0, 2]], axis=1) / stage.reach
    close = np.exp(-((away / 1.6) ** 2))
    spacing = _grid_spacing(stage.reach)
    # one pixel covers this much ground, across and (the more the flatter the view) along the ray
    covered = depth / view.scale * np.linalg.norm(ray, axis=1) / np.abs(ray[:, 1]) ** 0.5
    line = np.zeros(len(point))
    for axis in (0, 2):
        off = np.abs((point[:, axis] / spacing + 0.5) % 1.0 - 0.5) * spacing
        line = np.maximum(line, ((0.004 * spacing + covered - off) / covered).clip(0, 1) * np.minimum(1, 0.02 * spacing / covered + 0.35))
    colour = _GROUND + line[:, None] * (_LINE - _GROUND)
    colour *= 1 - 0.62 * lamp.shadow(point)[:, None]
    image[meets] = _BACKDROP + close[:, None] * (colour - _BACKDROP)
    return image.reshape(view.height, view.width, 3)


def _grid_spacing(reach: float) -> float:
    """1, 2 or 5 times a power of ten, about a third of the character: half a metre for a human."""
    power = 10.0 ** np.floor(np.log10(reach / 3))
    return float(power * max(step for step in (1, 2, 5) if step * power <= reach / 3))


def _with_trail(image: Float[np.ndarray, "H W 3"], stage: Stage, view: View, so_far: int) -> Float[np.ndarray, "H W 3"]:
    """The way of the root over the ground: behind the character strong, before it faint."""
    if len(stage.trail) < 2:
        return image
    pixels = view.project(stage.trail)
    cover = Image.new("L", (view.width, view.height), 0)
    pen = ImageDraw.Draw(cover)
    for part, strength in ((pixels[so_far:], 70), (pixels[: so_far + 1], 200)):
        hidden = part[:, 2] <= 0.05 * stage.reach
        for run in np.split(part, np.flatnonzero(np.diff(hidden)) + 1):
            if len(run) > 1 and run[0, 2] > 0.05 * stage.reach:
                pen.line([(x, y) for x, y, _ in run], fill=strength, width=2 * SUPERSAMPLING, joint="curve")
    share = np.asarray(cover, dtype=np.float64)[..., None] / 255.0
    return image + share * (_TRAIL - image)
