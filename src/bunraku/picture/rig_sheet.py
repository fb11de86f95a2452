"""The report of a rig: its bones inside the body, and whose every part of the skin is, from the front and from the side."""

from __future__ import annotations

import colorsys
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image, ImageDraw, ImageFont

from bunraku.geometry.colour import to_linear, to_srgb
from bunraku.picture.shade import SUPERSAMPLING, Stage, draw
from bunraku.picture.sheet import in_rows
from bunraku.picture.surface import surface_of
from bunraku.picture.view import View, framing
from bunraku.rig.bones import Bones, moving_bones
from bunraku.rig.character import Character

_SIZE = (520, 620)
_CAMERAS = ("front", "side")
_INK = (60, 56, 50)
_GOLDEN = 0.61803  # hues that follow each other at this step of the circle stay apart
_FADED = 0.55  # how much of the body is left where bones are drawn over it


def rig_sheet(character: Character, size: tuple[int, int] = _SIZE) -> Image.Image:
    """Four pictures: bones and skin weights, each from two sides. Every joint has one colour in all of them; between joints colours mix."""
    vertices = character.mesh.vertices.double().numpy()
    bones = moving_bones(character.skeleton)
    ends = torch.cat([bones.heads, bones.tails]).double().numpy()
    middle = (vertices.min(0) + vertices.max(0)) / 2 * (1, 0, 1)
    reach = float(np.ptp(np.concatenate([vertices, ends]), axis=0).max()) or 1.0
    colours = joint_colours(len(character.skeleton))
    plain = surface_of(replace(character.mesh, colours=None, materials=(), face_materials=None))
    weighted = replace(plain, face_colours=np.ones_like(plain.face_colours), vertex_colours=character.rig.weights.double().numpy() @ colours)
    tiles = []
    for camera in _CAMERAS:
        around = np.concatenate([vertices, ends]) - middle
        view = framing(camera, np.array([0.0, 0.0, 1.0]), around, (size[0] * SUPERSAMPLING, size[1] * SUPERSAMPLING))
        stage = Stage(view=view, reach=reach, trail=np.zeros((0, 3)))
        body = draw(stage, plain, vertices, middle, 0)
        tiles.append(_titled(_bones_over(body, bones, view.moved(middle), colours), f"bones, {camera}"))
        tiles.append(_titled(draw(stage, weighted, vertices, middle, 0), f"whose skin, {camera}"))
    return in_rows(tiles)


def joint_colours(count: int) -> Float[np.ndarray, "J 3"]:
    """Linear RGB: neighbours in the list of joints differ in hue, and every third in brightness."""
    srgb = [colorsys.hsv_to_rgb(number * _GOLDEN % 1, 0.75 - 0.25 * (number % 2), (0.95, 0.75, 0.55)[number % 3]) for number in range(count)]
    return to_linear(np.array(srgb))


def _bones_over(picture: Image.Image, bones: Bones, view: View, colours: Float[np.ndarray, "J 3"]) -> Image.Image:
    """The bones as slender spindles and the joints as dots, over a faded body."""
    heads, tails = (view.project(ends.double().numpy())[:, :2] / SUPERSAMPLING for ends in (bones.heads, bones.tails))
    faded = Image.blend(Image.new("RGB", picture.size, (255, 255, 255)), picture, _FADED)
    big = faded.resize((picture.width * 2, picture.height * 2), Image.Resampling.BICUBIC)
    pen = ImageDraw.Draw(big)
    ink = (to_srgb(colours) * 255).astype(int)
    for head, tail, joint in zip(2 * heads, 2 * tails, bones.joints.tolist(), strict=True):
        pen.polygon([tuple(corner) for corner in _spindle(head, tail)], fill=tuple(ink[joint]), outline=_INK)
    for x, y in 2 * heads:
        pen.ellipse([x - 5, y - 5, x + 5, y + 5], fill=(255, 255, 255), outline=_INK, width=2)
    return big.resize(picture.size, Image.Resampling.BOX)


def _spindle(head: Float[np.ndarray, "2"], tail: Float[np.ndarray, "2"]) -> Float[np.ndarray, "4 2"]:
    along = tail - head
    length = float(np.linalg.norm(along))
    aside = np.array([-along[1], along[0]]) / max(length, 1e-9) * min(0.08 * length + 2, 10)
    return np.stack([head, head + 0.2 * along + aside, tail, head + 0.2 * along - aside])


def _titled(tile: Image.Image, text: str) -> Image.Image:
    ImageDraw.Draw(tile).text((10, 8), text, fill=_INK, font=ImageFont.load_default(max(tile.height // 30, 11)))
    return tile
