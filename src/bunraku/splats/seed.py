"""Splats in closed form: the surface is cut into small cells, even in size, that keep to one side, one bend and one colour; each becomes a disc.

Cells are the clusters of many samples of the surface by place, normal and colour (k-means with a fixed number of rounds, each a lookup in
a k-d tree). A cell's mean is the splat's place, its spread the splat's size and shape, the mean of its samples' colours its colour: an
area filter, so that texture details smaller than a splat do not alias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from bunraku.errors import BadValue
from bunraku.geometry.appearance import Appearance
from bunraku.geometry.colour import to_srgb
from bunraku.geometry.mesh import Mesh
from bunraku.geometry.sampling import face_areas, face_crosses, sample_surface
from bunraku.splats.harmonics import sh_from_color
from bunraku.splats.splats import Splats

COUNT = 20_000
MOST_SPLATS = 500_000
_SAMPLES = 12  # per splat
_ROUNDS = 4
_NORMAL_WEIGHT, _COLOUR_WEIGHT = 1.0, 2.0  # a turn of 60°, or a change of display colour by a half, is as far as one spacing
_SPREAD = 1.6  # the splat's standard deviation over its cell's: neighbours overlap until no light comes through
_ROUND = 0.6  # a cell's narrow side counts as at least this share of its mean size
_FLATNESS = 0.08  # half thickness of a disc, of the spacing
_INSET = 0.8  # of the spacing: how far below the surface discs lie, so that their soft rims end where the surface does
_DEEPEST = 0.45  # of the body's thickness there: discs of a thin sheet stay on their own side
_NEIGHBOURS, _NEARBY = 9, 2.2  # the disc itself and those around it; within so many spacings
_OTHER_SIDE = -0.2  # cosine of the angle between normals
_THIN = 2.0  # [spacing]
_JUST_INSIDE = 1e-3  # of the spacing
_OPACITY = 0.92


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """Points of a surface, each standing for the same area."""

    p_world: Float[np.ndarray, "S 3"]  # [m]
    normal: Float[np.ndarray, "S 3"]  # unit
    colour: Float[np.ndarray, "S 3"]  # display values (sRGB), because that is what pictures blend
    area: float  # [m²] of each

    @property
    def spacing(self) -> float:
        """Between splats [m]: the side of a square that has a cell's area."""
        return math.sqrt(self.area * _SAMPLES)


def seed_splats(mesh: Mesh, appearance: Appearance, count: int = COUNT, seed: int = 0) -> Splats:
    """At most `count` discs that cover the mesh. The same seed gives the same splats."""
    if not 1 <= count <= MOST_SPLATS:
        raise BadValue(f"{count} splats cannot cover a character; ask for 1 to {MOST_SPLATS:,}, such as {COUNT:,}.")
    samples = _sample(mesh, appearance, count * _SAMPLES, seed)
    cell = _cells(samples, count)
    return _discs(samples, cell, _thickness(samples, cell, mesh))


def spacing_of(mesh: Mesh, count: int) -> float:
    """How far apart `count` splats lie on the mesh [m]."""
    return math.sqrt(float(face_areas(mesh.vertices.detach().double().cpu().numpy(), mesh.faces.cpu().numpy()).sum()) / count)


def _sample(mesh: Mesh, appearance: Appearance, count: int, seed: int) -> Samples:
    vertices, faces = mesh.vertices.detach().double().cpu().numpy(), mesh.faces.cpu().numpy()
    face, weight = sample_surface(vertices, faces, count, seed)
    area = float(face_areas(vertices, faces).sum()) / count
    cross = face_crosses(vertices, faces)[face]
    return Samples(
        p_world=np.einsum("sk,skc->sc", weight, vertices[faces[face]]),
        normal=cross / np.linalg.norm(cross, axis=1, keepdims=True),
        colour=to_srgb(appearance.colour(face, weight, np.full(count, area))),
        area=area,
    )


def _cells(samples: Samples, count: int) -> Int[np.ndarray, " S"]:
    """Which cell each sample belongs to, numbered without gaps."""
    from scipy.spatial import KDTree

    feature = np.concatenate([samples.p_world / samples.spacing, _NORMAL_WEIGHT * samples.normal, _COLOUR_WEIGHT * samples.colour], axis=1)
    centre = feature[(np.arange(count) * len(feature)) // count]
    cell = np.zeros(len(feature), dtype=np.int64)
    for _ in range(_ROUNDS):
        cell = np.unique(KDTree(centre).query(feature)[1], return_inverse=True)[1]
        centre = _means(feature, cell)
    return cell


def _means(values: Float[np.ndarray, "S C"], cell: Int[np.ndarray, " S"]) -> Float[np.ndarray, "N C"]:
    size = np.bincount(cell)
    return np.stack([np.bincount(cell, column) for column in values.T], axis=1) / size[:, None]


def _thickness(samples: Samples, cell: Int[np.ndarray, " S"], mesh: Mesh) -> Float[np.ndarray, " N"]:
    """How far it is from one sample of each cell, straight in, to the body's other side [m]; infinite where there is none."""
    from embreex.mesh_construction import TriangleMesh
    from embreex.rtcore_scene import EmbreeScene

    one = np.unique(cell, return_index=True)[1]
    scene = EmbreeScene()
    scale = 1 / samples.spacing  # embree's epsilons are made for lengths near 1
    _ = TriangleMesh(scene, (mesh.vertices.detach().double().cpu().numpy() * scale).astype(np.float32), mesh.faces.cpu().numpy().astype(np.int32))
    origin = samples.p_world[one] * scale - _JUST_INSIDE * samples.normal[one]
    far = scene.run(origin.astype(np.float32), -samples.normal[one].astype(np.float32), query="DISTANCE")
    return np.where(far < 1e30, far / scale, np.inf)


def _inwards(
    mean: Float[np.ndarray, "N 3"], normal: Float[np.ndarray, "N 3"], thickness: Float[np.ndarray, " N"], spacing: float
) -> Float[np.ndarray, "N 3"]:
    """Where a disc moves to lie below the surface [m]: against the mean normal of its neighbours, so that none sticks out over a crease.

    Neighbours on the other side, and thin sheets beside a body, have no say.
    """
    from scipy.spatial import KDTree

    distance, near = KDTree(mean).query(mean, k=_NEIGHBOURS)
    thick = thickness > _THIN * spacing
    near = near % len(mean)  # where there are fewer than were asked for, their distance is infinite
    facing = np.einsum("nkc,nc->nk", normal[near], normal) > _OTHER_SIDE
    asked = facing & (distance < _NEARBY * spacing) & thick[near] & thick[:, None]
    asked[:, 0] = True
    smooth = (normal[near] * asked[:, :, None]).sum(1) / asked.sum(1, keepdims=True)
    return -np.minimum(_INSET * spacing, _DEEPEST * thickness)[:, None] * smooth


def _discs(samples: Samples, cell: Int[np.ndarray, " S"], thickness: Float[np.ndarray, " N"]) -> Splats:
    """One flat ellipse per cell: the tangent plane's two principal axes of its samples, and its normal."""
    spacing, mean = samples.spacing, _means(samples.p_world, cell)
    axes = _frames(_means(samples.normal, cell))
    local = np.einsum("sc,sca->sa", (samples.p_world - mean[cell]) / spacing, axes[cell][:, :, :2])
    xx, xy, yy = _means(np.stack([local[:, 0] ** 2, local[:, 0] * local[:, 1], local[:, 1] ** 2], axis=1), cell).T
    even = np.bincount(cell) / _SAMPLES / 12  # the variance of a square of the cell's area, which a few samples underestimate
    variance, turn = np.linalg.eigh(np.stack([np.stack([xx, xy], -1), np.stack([xy, yy], -1)], -1))
    sigma = _SPREAD * np.sqrt(np.maximum(variance, _ROUND**2 * even[:, None]))
    tangents = np.einsum("nca,nab->ncb", axes[:, :, :2], turn) * sigma[:, None]
    factors = spacing * np.concatenate([tangents, _FLATNESS * axes[:, :, 2:]], axis=2)
    colour = _means(samples.colour, cell)
    return Splats(
        means=torch.from_numpy(mean + _inwards(mean, axes[:, :, 2], thickness, spacing)).float(),
        factors=torch.from_numpy(factors).float(),
        opacity_logits=torch.full((len(mean),), math.log(_OPACITY / (1 - _OPACITY))),
        sh=sh_from_color(torch.from_numpy(colour).float()),
    )


def _frames(normal: Float[np.ndarray, "N 3"]) -> Float[np.ndarray, "N 3 3"]:
    """Orthonormal columns, the third along the normal."""
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    n = np.where(length > 1e-6, normal / np.maximum(length, 1e-6), (0.0, 1.0, 0.0))
    helper = np.eye(3)[np.argmin(np.abs(n), axis=1)]
    a = np.cross(helper, n)
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    return np.stack([a, np.cross(n, a), n], axis=2)
