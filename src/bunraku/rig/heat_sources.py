"""Which bones warm which points of the skin, and how much: the closest ones, if the way to them lies inside the body."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse import csr_matrix
from scipy.spatial import KDTree

from bunraku.geometry.visibility import Occluder
from bunraku.rig.nearest_bones import Nearest, nearest_bones

_CONDUCTION = 3.0  # c: with M the thirds of the faces' areas this is Pinocchio's and Blender's 1
_CLOSEST = 1e-4  # of the mesh's size: a bone on the skin is taken to be this far away


@dataclass(frozen=True, kw_only=True, eq=False)
class Sources:
    """`heat` (P B): what each bone gives each point. `lent` (P P): what a point takes from the skin of another piece; None if nothing is."""

    heat: csr_matrix
    lent: csr_matrix | None
    warmed: Bool[np.ndarray, " P"]  # sees its closest bone
    blind: Bool[np.ndarray, " S"]  # shells that see none

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
    """Every shell gets heat: from the bones it sees, else from the skin nearest to it that sees one, else from its nearest bone."""
    near = nearest_bones(points, heads, tails)
    seen = ~Occluder(points, faces).blocked(points[near.points], near.places)
    warmed = np.zeros(len(points), bool)
    warmed[near.points[seen]] = True
    sees = np.zeros(shell.max(initial=-1) + 1, bool)
    sees[shell[warmed]] = True
    blind = ~sees[shell]
    lent = None
    if not sees.any():
        seen |= _nearest_of_each_shell(near, shell)
    elif blind.any():
        lent = _from_skin(points, np.flatnonzero(blind), np.flatnonzero(~blind))
    power = _CONDUCTION / np.maximum(near.distances, _CLOSEST) ** 2
    heat = csr_matrix((power[seen], (near.points[seen], near.bones[seen])), shape=(len(points), len(heads)))
    return Sources(heat=heat, lent=lent, warmed=warmed, blind=~sees)


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
