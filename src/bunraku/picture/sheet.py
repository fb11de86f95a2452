"""Contact sheets: a motion as a row of pictures with time stamps, the quickest way to see what happens in it."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from PIL import Image, ImageDraw, ImageFont

from bunraku.errors import BadValue
from bunraku.geometry.colour import to_srgb
from bunraku.kinematics.forward import WorldPoses, forward_kinematics
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import CONTACT_ROLES, SIDES
from bunraku.picture.shade import SUPERSAMPLING, Stage, draw
from bunraku.picture.surface import SIDE_COLOURS, Surface, stick_surface, stick_vertices, surface_of
from bunraku.picture.view import STANDS, framing
from bunraku.rig.character import Character
from bunraku.rig.proportions import measure
from bunraku.rig.skinning import skin_vertices

_GAP = 3  # [px] between tiles
_INK, _PAPER, _CONTACT = (70, 66, 60), (255, 255, 255), (46, 160, 67)
_RIM = {side: tuple((to_srgb(np.array(SIDE_COLOURS[side])) * 255).astype(int)) for side in SIDES}  # a dot may lie over the other leg
_MOST_COLUMNS = 4


def contact_sheet(
    motion: Motion, character: Character | None = None, frames: int = 8, size: tuple[int, int] = (300, 340), camera: str = "three-quarter"
) -> Image.Image:
    """`frames` pictures of `size` pixels, evenly spread from the first to the last frame; without a character the bones are drawn.

    Every tile looks in the same direction (chosen by how the character stands at first) and moves along with it, so that all poses
    have one scale. Green dots, rimmed in the colour of their side, mark feet in contact where the motion says so; the line on the
    ground is the way of the root.
    """
    if frames < 1 or min(size) < 32 or max(size) > 4096:
        raise BadValue(f"a contact sheet needs at least one frame and tiles of 32 to 4096 pixels; got {frames} frames of {size[0]} × {size[1]}.")
    if camera not in STANDS:
        raise BadValue(f"there is no camera '{camera}'; choose {', '.join(STANDS)}.")
    chosen = np.unique(np.linspace(0, len(motion) - 1, frames).round().astype(int))
    poses = forward_kinematics(motion.to(torch.float32))
    p_world_joint = poses.p_world_joint.double().numpy()
    surface, vertices = _actor(motion, character, poses, chosen)
    stands = p_world_joint[chosen, _carrier(motion)] * (1, 0, 1)
    points = (vertices - stands[:, None]).reshape(-1, 3)
    view = framing(camera, _facing(motion, p_world_joint[0]), points, (size[0] * SUPERSAMPLING, size[1] * SUPERSAMPLING))
    stage = Stage(view=view, reach=float((points.max(0) - points.min(0)).max()), trail=p_world_joint[:, _carrier(motion)] * (1, 0, 1))
    tiles = []
    for frame, shape, stand in zip(chosen, vertices, stands, strict=True):
        tile = draw(stage, surface, shape, stand, int(frame))
        at = view.moved(stand).project(p_world_joint[frame])[:, :2] / SUPERSAMPLING
        tiles.append(labelled(tile, motion, int(frame), at))
    return in_rows(tiles)


def _actor(motion: Motion, character: Character | None, poses: WorldPoses, chosen: Int[np.ndarray, " N"]) -> tuple[Surface, Float[np.ndarray, "N V 3"]]:
    if character is None or not len(character.mesh.faces):
        body = measure(motion.skeleton)
        return stick_surface(body), stick_vertices(body, poses.p_world_joint.double().numpy()[chosen])
    skin_vertices(character, motion[:1])  # refuses a motion of another skeleton
    rows = torch.from_numpy(chosen)
    picked = WorldPoses(p_world_joint=poses.p_world_joint[rows], R_world_joint=poses.R_world_joint[rows])
    return surface_of(character.mesh), skin_vertices(character, picked).double().numpy()


def _carrier(motion: Motion) -> int:
    """The joint that the camera follows."""
    return motion.skeleton.roles.get("hips", 0)


def _facing(motion: Motion, p_world_joint: Float[np.ndarray, "J 3"]) -> Float[np.ndarray, "3"]:
    """Where the character faces, level with the ground; +Z where its hips do not tell."""
    ahead = np.array([0.0, 0.0, 1.0])
    if motion.skeleton.has("left_hip", "right_hip"):
        left = p_world_joint[motion.skeleton.role("left_hip")] - p_world_joint[motion.skeleton.role("right_hip")]
        level = np.cross(left, (0.0, 1.0, 0.0))
        if np.linalg.norm(level) > 1e-6:
            ahead = level / np.linalg.norm(level)
    return ahead


def labelled(tile: Image.Image, motion: Motion, frame: int, at: Float[np.ndarray, "J 2"]) -> Image.Image:
    """The tile with its time, and dots on feet in contact; `at` is where the joints are in the picture [px]."""
    pen = ImageDraw.Draw(tile)
    if motion.contacts is not None:
        for column, role in enumerate(CONTACT_ROLES):
            if motion.skeleton.has(role) and bool(motion.contacts[frame, column]):
                x, y = at[motion.skeleton.role(role)]
                for radius, colour in ((6, _RIM[role.split("_")[0]]), (5, _PAPER), (3, _CONTACT)):
                    pen.ellipse([x - radius, y - radius, x + radius, y + radius], fill=colour)
    dark = sum(tile.getpixel((9, tile.height - 9))) < 300  # type: ignore[arg-type]
    font = ImageFont.load_default(max(tile.height // 24, 10))
    pen.text((9, tile.height - 8), f"{frame / motion.fps:.2f} s", fill=_PAPER if dark else _INK, font=font, anchor="ls")
    return tile


def in_rows(tiles: list[Image.Image]) -> Image.Image:
    """One picture of many of the same size."""
    rows = -(-len(tiles) // _MOST_COLUMNS)
    columns = -(-len(tiles) // rows)
    width, height = tiles[0].size
    sheet = Image.new("RGB", (columns * (width + _GAP) - _GAP, rows * (height + _GAP) - _GAP), _PAPER)
    for i, tile in enumerate(tiles):
        sheet.paste(tile, (i % columns * (width + _GAP), i // columns * (height + _GAP)))
    return sheet


def stacked(*pictures: Image.Image) -> Image.Image:
    """Pictures below one another, scaled down to one width."""
    width = min(picture.width for picture in pictures)
    fitting = [picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS) for picture in pictures]
    sheet = Image.new("RGB", (width, sum(picture.height for picture in fitting) + _GAP * (len(fitting) - 1)), _PAPER)
    top = 0
    for picture in fitting:
        sheet.paste(picture, (0, top))
        top += picture.height + _GAP
    return sheet
