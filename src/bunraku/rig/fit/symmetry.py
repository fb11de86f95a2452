"""The mirror plane of a body: upright, in whatever direction the body faces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

_SAMPLES, _ASKED = 6000, 700
_STEP = 5.0  # [degrees] between the directions tried first
_CAP = 0.03  # of the body's size: what one hand holds must not count more
_GOOD = 1.3  # a plane across the world's axes is taken if it is this much worse than the best, or nearly perfect itself
_PERFECT = 0.004  # of the body's size


@dataclass(frozen=True, kw_only=True, eq=False)
class MirrorPlane:
    """`yaw` is the direction that the body faces (or turns its back to): 0 for ±Z, 90 for ±X. `error` is a share of the body's size."""

    yaw: float  # [degrees] 0 … 180
    offset: float  # of the plane from the origin, along the body's left
    error: float

    @property
    def R_body_world(self) -> Float[np.ndarray, "3 3"]:
        """Turns the world so that the plane's normal is ±x."""
        c, s = np.cos(np.radians(self.yaw)), np.sin(np.radians(self.yaw))
        return np.array([[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]])


def mirror_planes(vertices: Float[np.ndarray, "V 3"], faces: Int[np.ndarray, "T 3"]) -> list[MirrorPlane]:
    """The best plane, and others nearly as good, the most likely first: the world's own axes before oblique ones."""
    points = _spread(vertices[faces])
    size = float(np.ptp(points, axis=0).max())
    tree = KDTree(points)
    coarse = [_plane(points, tree, size, yaw) for yaw in np.arange(0.0, 180.0, _STEP)]
    best = min(coarse, key=lambda plane: plane.error)
    for step in (2.0, 0.7, 0.25):
        best = min((best, *(_plane(points, tree, size, (best.yaw + k * step) % 180.0) for k in (-2, -1, 1, 2))), key=lambda plane: plane.error)
    limit = max(_GOOD * best.error, _PERFECT)
    straight = [plane for plane in (coarse[0], coarse[round(90 / _STEP)]) if plane.error <= limit]
    oblique = [] if any(_apart(plane.yaw, best.yaw) < 1.5 * _STEP for plane in straight) else [best]
    return straight + oblique


def lengthwise_planes(vertices: Float[np.ndarray, "V 3"], faces: Int[np.ndarray, "T 3"]) -> list[MirrorPlane]:
    """For bodies that are nobody's mirror image, winding or in motion: planes along ±Z and along their longest side."""
    points = _spread(vertices[faces])
    size = float(np.ptp(points, axis=0).max())
    tree = KDTree(points)
    level = points[:, [0, 2]] - points[:, [0, 2]].mean(0)
    across, along = np.linalg.svd(level, full_matrices=False)[2][0]
    return [_plane(points, tree, size, yaw) for yaw in (0.0, float(np.degrees(np.arctan2(across, along)) % 180))]


def _apart(a: float, b: float) -> float:
    return abs((a - b + 90) % 180 - 90)


def _plane(points: Float[np.ndarray, "N 3"], tree: KDTree, size: float, yaw: float) -> MirrorPlane:
    plane = MirrorPlane(yaw=float(yaw), offset=0.0, error=np.inf)
    normal = plane.R_body_world[0]
    along = points @ normal
    middle = float(along.min() + along.max()) / 2
    found = []
    for offset in (0.0, middle, float(np.median(along))):
        for _ in range(2):  # then the plane in the middle of points and their partners
            image = points[:_ASKED] + 2 * (offset - along[:_ASKED])[:, None] * normal
            gap, partner = map(np.asarray, tree.query(image))
            close = gap <= np.quantile(gap, 0.7)
            found.append((float(np.minimum(gap, _CAP * size).mean() / size), offset))
            offset = float(np.median((along[:_ASKED][close] + along[partner[close]]) / 2))
    error, offset = min(found)
    return MirrorPlane(yaw=float(yaw), offset=offset, error=error)


def _spread(corner: Float[np.ndarray, "T 3 3"]) -> Float[np.ndarray, "N 3"]:
    """Points all over the surface, always the same for the same mesh."""
    area = np.linalg.norm(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1)
    random = np.random.default_rng(0)
    face = np.searchsorted(area.cumsum(), random.random(_SAMPLES) * area.sum()).clip(0, len(area) - 1)
    weight = random.dirichlet((1.0, 1.0, 1.0), _SAMPLES)
    return np.einsum("nk,nkc->nc", weight, corner[face])
