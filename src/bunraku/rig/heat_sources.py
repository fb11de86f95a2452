"""Which bones warm which points of the skin, and how much: the closest ones, if the way to them lies inside the body."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse import csr_matrix
from scipy.spatial import KDTree

from bunraku.geometry.orient import turned_outward
from bunraku.geometry.visibility import Occluder
from bunraku.rig.nearest_bones import Nearest, nearest_bones

_CONDUCTION = 4.0  # c, as fitted to Blender's weights; Pinocchio's 1 is 3 here, where L has half cotangents and M thirds of the faces' areas
_HOLDING = 0.05  # of a shell's points must have a bone inside it or along it; fewer may be mistaken
_CLOSEST = 1e-4  # of the mesh's size: a bone on the skin is taken to be this far away


@dataclass(frozen=True, kw_only=True, eq=False)
class Sources:
    """`heat` (P B): what each bone gives each point. `lent` (P P): what a point takes from the skin of another piece; None if nothing is."""

    heat: csr_matrix
    lent: csr_matrix | None
    warmed: Bool[np.ndarray, " P"]  # takes heat from a bone
    holds: Bool[np.ndarray, " S"]  # shells that have a bone inside
    unsolved: int = 0  # points that the solver had to give up
    turned: int = 0  # faces that were listed the other way round than their neighbours, or than their piece should be

    @property
    def total(self) -> Float[np.ndarray, " P"]:
        """H: the heat that reaches each point."""
        total = np.asarray(self.heat.sum(1)).ravel()
        return total if self.lent is None else total + np.asarray(self.lent.sum(1)).ravel()


def heat_sources(
    points: Float[np.ndarray, "P 3"],
    faces: Int[np.ndarray, "S 3"],
    heads: Float[np.ndarray, "B 3"],
    tails: Float[np.ndarray, "B 3"],
    shell: Int[np.ndarray, " P"],
) -> Sources:
    """Every shell gets heat: from the bones it holds; without one from the nearest skin that has one; if none has, from its nearest bone.

    A sword sees the foot below it, an eye sees the nose: what a bone does not run through is carried by its neighbour.
    """
    occluder = Occluder(points, faces)
    turned = turned_outward(points, faces, occluder)
    a, b, c = np.moveaxis(points[faces], 1, 0)
    outward = np.cross(b - a, c - a)
    outward *= (np.where(turned, -1, 1) / np.linalg.norm(outward, axis=1))[:, None]
    normals = _vertex_normals(len(points), faces, outward)
    near = nearest_bones(points, normals, heads, tails)
    seen = ~occluder.entered(points[near.points], near.places, outward)
    holds = _holding(points, faces, normals, near, seen, shell, occluder)
    lent = None
    if not holds.any():
        seen |= _nearest_of_each_shell(near, shell)
    elif not holds.all():
        seen &= holds[shell[near.points]]
        lent = _from_skin(points, np.flatnonzero(~holds[shell]), np.flatnonzero(holds[shell]))
    warmed = np.zeros(len(points), bool)
    warmed[near.points[seen]] = True
    power = _CONDUCTION / np.maximum(near.distances, _CLOSEST) ** 2
    heat = csr_matrix((power[seen], (near.points[seen], near.bones[seen])), shape=(len(points), len(heads)))
    return Sources(heat=heat, lent=lent, warmed=warmed, holds=holds, turned=int(turned.sum()))


def _holding(
    points: Float[np.ndarray, "P 3"],
    faces: Int[np.ndarray, "S 3"],
    normals: Float[np.ndarray, "P 3"],
    near: Nearest,
    seen: Bool[np.ndarray, " N"],
    shell: Int[np.ndarray, " P"],
    occluder: Occluder,
) -> Bool[np.ndarray, " K"]:
    """Shells that have a bone of their own: inside them, or running along them closer than to all skin that has one inside."""
    starts = points[near.points]
    inside = seen & (np.einsum("nd,nd->n", starts - near.places, normals[near.points]) > 0)
    inside[inside] = occluder.surrounded(starts[inside], near.places[inside], shell[near.points[inside]], shell[faces[:, 0]])
    holds = _shells_with(near.points[inside], shell)
    if holds.all() or not holds.any():
        return holds
    along = _own_bones(points, near, seen & ~holds[shell[near.points]], holds[shell])
    return holds | _shells_with(near.points[along], shell)


def _shells_with(points: Int[np.ndarray, " N"], shell: Int[np.ndarray, " P"]) -> Bool[np.ndarray, " K"]:
    """Which shells have more than a few of their points among these."""
    among = np.zeros(len(shell), bool)
    among[points] = True
    return np.bincount(shell, among) > _HOLDING * np.bincount(shell)


def _own_bones(points: Float[np.ndarray, "P 3"], near: Nearest, asked: Bool[np.ndarray, " N"], others: Bool[np.ndarray, " P"]) -> Bool[np.ndarray, " N"]:
    """Which of the pairs that are asked about have a bone nearer to this skin than to that of all `others`: those of a wing, which run along it."""
    pairs = np.flatnonzero(asked)
    away = np.linalg.norm(points[near.points[pairs]] - near.places[pairs], axis=1)
    own = np.zeros(len(asked), bool)
    own[pairs] = away < KDTree(points[others]).query(near.places[pairs])[0]
    return own


def _vertex_normals(points: int, faces: Int[np.ndarray, "S 3"], outward: Float[np.ndarray, "S 3"]) -> Float[np.ndarray, "P 3"]:
    """Unit mean of the normals of the faces around each point, 0 where they cancel."""
    total = np.stack([np.bincount(faces.ravel(), np.repeat(column, 3), points) for column in outward.T], axis=1)
    length = np.linalg.norm(total, axis=1, keepdims=True)
    return total / np.where(length > 1e-9, length, np.inf)


def _nearest_of_each_shell(near: Nearest, shell: Int[np.ndarray, " P"]) -> Bool[np.ndarray, " N"]:
    """The pairs of every shell's own nearest bone: it is declared visible, as the paper does, so that no shell stays without heat."""
    of_pair = shell[near.points]
    order = np.lexsort((near.distances, of_pair))
    first = order[np.unique(of_pair[order], return_index=True)[1]]
    return near.bones == near.bones[first][of_pair]


def _from_skin(points: Float[np.ndarray, "P 3"], borrowers: Int[np.ndarray, " N"], lenders: Int[np.ndarray, " M"]) -> csr_matrix:
    """An eye, a buckle, a coat over the body: each point takes heat from the nearest skin as it would from a bone there."""
    gap, nearest = KDTree(points[lenders]).query(points[borrowers])
    power = _CONDUCTION / np.maximum(gap, _CLOSEST) ** 2
    return csr_matrix((power, (borrowers, lenders[nearest])), shape=(len(points), len(points)))
