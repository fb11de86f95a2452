"""Where the camera stands in every frame: fixed, following the body smoothly, or going round it; always with the whole body in the picture.

All that is known of the body is a handful of points per frame, its outermost ones. They set where the camera looks and how far away
it stands, so no gradient goes through them.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.kinematics.heading import heading_of
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.curves import low_pass, low_pass_kernel
from bunraku.math.rotations import quat_rotate, yaw_quat
from bunraku.picture.view import STANDS
from bunraku.splats.camera import Camera

MOVES = ("follow", *STANDS, "orbit")
FIELD_OF_VIEW = math.radians(28.0)  # of the shorter side
_FILLED = 0.84  # of the picture, at most
_SMOOTHING = 0.35  # [s] the camera follows what takes longer than about six times this
_ROUND = math.radians(36.0)  # [rad/s] of an orbit
_ORBIT_ABOVE = 12.0  # [degrees]
_NEAREST = 0.05  # [body sizes] no camera stands nearer to the body than this

_DIRECTIONS = torch.tensor([(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if (x, y, z) != (0, 0, 0)], dtype=torch.float32)


def outline(vertices: Float[Tensor, "F V 3"]) -> Float[Tensor, "F 26 3"]:
    """The outermost points of every frame along the axes, the edges and the corners of a cube: their bounding box is that of all vertices."""
    directions = torch.nn.functional.normalize(_DIRECTIONS, dim=-1).to(vertices)
    farthest = (vertices.detach() @ directions.T).argmax(dim=1)
    return vertices.detach().gather(1, farthest[..., None].expand(-1, -1, 3))


def camera_path(move: str, points: Float[Tensor, "F P 3"], facing: float, fps: float, size: tuple[int, int], *, along: bool = False) -> Camera:
    """One camera per frame. `facing` is the body's heading at first [rad], `size` that of the picture: width, height [px].

    `along`: the fixed ones go along with the body too, as it suits contact sheets: seen from one place a long way is made by a tiny figure.
    """
    if move not in MOVES:
        raise BadValue(f"there is no camera '{move}'; choose {', '.join(MOVES)}.")
    points = points.detach()
    if along or move in ("follow", "orbit"):
        centre = followed(points, fps)
    else:
        low, high = points.flatten(0, 1).amin(0), points.flatten(0, 1).amax(0)
        centre = ((low + high) / 2).expand(len(points), 3)
    aside, above = STANDS.get(move, STANDS["three-quarter"])
    turn = torch.full((len(points),), facing + math.radians(aside)).to(points)
    if move == "orbit":
        above, turn = _ORBIT_ABOVE, turn + _ROUND * torch.arange(len(points)).to(points) / fps
    towards = _directions(turn, math.radians(above))
    return _at_a_distance(centre, towards, points, size)


def followed(points: Float[Tensor, "F P 3"], fps: float) -> Float[Tensor, "F 3"]:
    """The centre of the box about each frame's points, smoothed in time: the sway of steps is taken out, the way stays. No gradient."""
    points = points.detach()
    centre = (points.amin(1) + points.amax(1)) / 2
    sigma = min(_SMOOTHING * fps, float(len(points)))
    return low_pass(centre[None], low_pass_kernel(max(sigma, 0.2)))[0].to(points)


def facing_at_first(skeleton: Skeleton, p_world_joint: Float[Tensor, "F J 3"]) -> float:
    """The heading of the body in the first frame [rad]; 0 where its hips do not tell."""
    if not skeleton.has("left_hip", "right_hip"):
        return 0.0
    apart = p_world_joint[0, skeleton.role("left_hip")] - p_world_joint[0, skeleton.role("right_hip")]
    return float(heading_of(skeleton, p_world_joint[0])) if float(apart[[0, 2]].norm()) > 1e-6 else 0.0


def _directions(turn: Float[Tensor, " F"], above: float) -> Float[Tensor, "F 3"]:
    """From the body to the camera, which stands `turn` round from +Z and `above` the horizon [rad]."""
    level = quat_rotate(yaw_quat(turn), torch.tensor([0.0, 0.0, 1.0]).to(turn))
    return math.cos(above) * level + math.sin(above) * torch.tensor([0.0, 1.0, 0.0]).to(turn)


def _at_a_distance(centre: Float[Tensor, "F 3"], towards: Float[Tensor, "F 3"], points: Float[Tensor, "F P 3"], size: tuple[int, int]) -> Camera:
    """Cameras that look at the centres from one distance, the smallest from which all points of all frames are in the picture."""
    width, height = size
    unit = Camera.look_at(centre + towards, centre, width, height, field_of_view=FIELD_OF_VIEW)
    p_camera = (points - centre[:, None]) @ unit.T_world_camera[:, :3, :3]  # about the centre, in the camera's axes
    room = torch.tensor([width, height]).to(points) / 2 / unit.K[0, 0] * _FILLED
    extent = float((points.amax(1) - points.amin(1)).max())
    distance = float((p_camera[..., :2].abs() / room - p_camera[..., 2:]).max())
    distance = max(distance, _NEAREST * extent - float(p_camera[..., 2].min()), 1e-3)
    return Camera.look_at(centre + distance * towards, centre, width, height, field_of_view=FIELD_OF_VIEW)
