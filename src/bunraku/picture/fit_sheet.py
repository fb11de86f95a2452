"""The picture of a fitted skeleton: the mesh from the front, the side and above, its joints numbered over it, and their names beside it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from PIL import Image, ImageDraw, ImageFont

from bunraku.geometry.mesh import Mesh
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.skeleton import Skeleton
from bunraku.picture.raster import rasterise
from bunraku.picture.view import View, looking

_SIDES = {"front": (0.0, 0.0, -1.0), "side": (-1.0, 0.0, 0.0), "above": (0.0, -1.0, 0.0)}  # where the camera looks
_PAPER, _INK, _QUIET = (255, 255, 255), (40, 38, 34), (120, 116, 108)
_COLOURS = {"left": (200, 70, 20), "right": (20, 80, 170), "trunk": (30, 140, 60)}
_SUPERSAMPLING = 2
_MARGIN, _LINE, _LEGEND = 0.06, 15, 190  # of a tile · [px] height of a row of names · [px] width of a column of them


def fit_sheet(
    mesh: Mesh, skeleton: Skeleton, *, title: str = "", notes: Sequence[str] = (), tile: int = 440, marks: Float[np.ndarray, "N 3"] | None = None
) -> Image.Image:
    """Three views with one scale. Orange is the character's left, blue its right, green its middle; `marks` are other points, drawn as crosses."""
    points = rest_poses(skeleton).p_world_joint.double().numpy()
    vertices, faces = mesh.vertices.double().numpy(), mesh.faces.numpy()
    low, high = vertices.min(0), vertices.max(0)
    scale = tile * (1 - 2 * _MARGIN) / max(float((high - low).max()), 1e-30)
    small = ImageFont.load_default(11)
    rows = max((tile - 8) // _LINE, 1)
    columns = -(-len(skeleton) // rows)
    header = 22 + _LINE * len(notes)
    sheet = Image.new("RGB", (3 * tile + columns * _LEGEND, header + tile), _PAPER)
    pen = ImageDraw.Draw(sheet)
    pen.text((8, 4), title or skeleton.name, fill=_INK, font=ImageFont.load_default(14))
    for number, note in enumerate(notes):
        pen.text((8, 22 + _LINE * number), note, fill=_QUIET, font=small)
    sides = _sides_of(skeleton)
    for number, (name, ahead) in enumerate(_SIDES.items()):
        view = _view(np.array(ahead), (low + high) / 2, scale, tile, float((high - low).max()))
        picture = _paint(vertices, faces, view)
        _draw_bones(picture, skeleton, view.project(points)[:, :2] / _SUPERSAMPLING, sides)
        if marks is not None:
            _crosses(picture, view.project(marks)[:, :2] / _SUPERSAMPLING)
        ImageDraw.Draw(picture).text((6, tile - 18), name, fill=_QUIET, font=small)
        sheet.paste(picture, (number * tile, header))
    for joint, name in enumerate(skeleton.joints):
        at = (3 * tile + 8 + joint // rows * _LEGEND, header + 4 + joint % rows * _LINE)
        pen.text(at, f"{joint:2d}  {name}", fill=_COLOURS[sides[joint]], font=small)
    return sheet


def _view(ahead: Float[np.ndarray, "3"], centre: Float[np.ndarray, "3"], scale: float, tile: int, size: float) -> View:
    pixels = tile * _SUPERSAMPLING
    eye = centre - ahead * 2 * max(size, 1e-30)
    return View(R_camera_world=looking(ahead), p_world=eye, scale=scale * _SUPERSAMPLING, width=pixels, height=pixels, parallel=True)


def _paint(vertices: Float[np.ndarray, "V 3"], faces: np.ndarray, view: View) -> Image.Image:
    """The mesh as a pale relief, so that bones in front of it can be read."""
    unit = np.abs(vertices - view.p_world).max()  # the rasteriser's near plane is in metres: draw a body of ordinary size
    small = View(**{**view.__dict__, "p_world": np.zeros(3), "scale": view.scale * unit})
    hits = rasterise((vertices - view.p_world) / unit, faces, small)
    image = np.full((view.height * view.width, 3), 255.0)
    if len(hits.pixel):
        a, b, c = np.moveaxis(vertices[faces[hits.face]], 1, 0)
        normal = np.cross(b - a, c - a)
        facing = np.abs(normal @ view.R_camera_world[2]) / np.maximum(np.linalg.norm(normal, axis=1), 1e-30)
        image[hits.pixel] = (165 + 70 * facing)[:, None] * np.array([1.0, 0.985, 0.95])
    picture = Image.fromarray(image.clip(0, 255).astype(np.uint8).reshape(view.height, view.width, 3))
    return picture.resize((view.width // _SUPERSAMPLING, view.height // _SUPERSAMPLING), Image.Resampling.BOX)


def _draw_bones(picture: Image.Image, skeleton: Skeleton, at: Float[np.ndarray, "J 2"], sides: Sequence[str]) -> None:
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(10)
    for joint, parent in enumerate(skeleton.parents):
        if parent >= 0:
            pen.line([tuple(at[parent]), tuple(at[joint])], fill=_COLOURS[sides[joint]], width=2)
    for joint, (x, y) in enumerate(at):
        pen.ellipse([x - 3, y - 3, x + 3, y + 3], fill=_COLOURS[sides[joint]], outline=_PAPER)
    for joint, (x, y) in enumerate(at):
        pen.text((x + 4, y - 11), str(joint), fill=_INK, font=font, stroke_width=1, stroke_fill=_PAPER)


def _crosses(picture: Image.Image, at: Float[np.ndarray, "N 2"]) -> None:
    pen = ImageDraw.Draw(picture)
    for x, y in at:
        pen.line([x - 4, y - 4, x + 4, y + 4], fill=(200, 0, 160), width=1)
        pen.line([x - 4, y + 4, x + 4, y - 4], fill=(200, 0, 160), width=1)


def _sides_of(skeleton: Skeleton) -> list[str]:
    """By name first, then by the parent's side."""
    sides: list[str] = []
    for joint, parent in zip(skeleton.joints, skeleton.parents, strict=True):
        own = next((side for side in ("left", "right") if side in joint.lower()), None)
        sides.append(own or (sides[parent] if parent >= 0 else "trunk"))
    return sides
