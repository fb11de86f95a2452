"""Which side of a face is outside: faces turned so that neighbours agree, and pieces so that their normals point out of the body.

Closed pieces are outside where their volume is positive. Open ones and loose triangles are asked with rays: behind a face there is more of the
body than in front of it. What rays cannot tell (a flat sheet) stays as it was given.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from bunraku.geometry.visibility import Occluder

_ASKED = 32  # faces of a piece that rays are sent from
_LEAN = 0.1  # so much more often must rays hit in front than behind before a piece is turned


def turned_outward(points: Float[np.ndarray, "P 3"], faces: Int[np.ndarray, "S 3"], occluder: Occluder) -> Bool[np.ndarray, " S"]:
    """The faces whose corners must be listed the other way round."""
    left, right, agree, closed_sides = _neighbours(faces, len(points))
    turned, patch = _agreeing(len(faces), left, right, agree)
    sign = np.where(turned, -1.0, 1.0)
    closed = np.bincount(patch, closed_sides) == 3 * np.bincount(patch)
    a, b, c = np.moveaxis(points[faces], 1, 0)
    normals = np.cross(b - a, c - a) * sign[:, None]
    centre = _mean_of(patch, (a + b + c) / 3)[patch]
    volume = np.bincount(patch, np.einsum("nd,nd->n", a - centre, normals))
    inside_out = closed & (volume < 0)
    open_faces = np.flatnonzero(~closed[patch])
    if len(open_faces):
        asked = _some_of_each(open_faces, patch)
        excess = _hits_in_front(((a + b + c) / 3)[asked], normals[asked], occluder)
        inside_out |= np.bincount(patch[asked], excess, len(closed)) > _LEAN * np.bincount(patch[asked], minlength=len(closed)).clip(1)
    return turned ^ inside_out[patch]


def _neighbours(
    faces: Int[np.ndarray, "S 3"], points: int
) -> tuple[Int[np.ndarray, " E"], Int[np.ndarray, " E"], Bool[np.ndarray, " E"], Int[np.ndarray, " S"]]:
    """Pairs of faces that share an edge with nobody else, whether they agree on which side is out, and how many such edges each face has."""
    start, end = faces.ravel(), np.roll(faces, -1, axis=1).ravel()
    key = np.minimum(start, end) * points + np.maximum(start, end)
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    two = first[np.diff(first, append=len(order)) == 2]
    one, other = order[two], order[two + 1]
    sides = np.bincount(one // 3, minlength=len(faces)) + np.bincount(other // 3, minlength=len(faces))
    return one // 3, other // 3, start[one] != start[other], sides


def _agreeing(
    count: int, left: Int[np.ndarray, " E"], right: Int[np.ndarray, " E"], agree: Bool[np.ndarray, " E"]
) -> tuple[Bool[np.ndarray, " S"], Int[np.ndarray, " S"]]:
    """Faces to turn so that all neighbours agree, as few as possible in each patch, and the patch of every face."""
    graph = coo_matrix((np.ones(len(left), bool), (left, right)), shape=(count, count))
    patch = connected_components(graph, directed=False)[1]
    if agree.all():
        return np.zeros(count, bool), patch
    # each face as given and turned round, in one graph: sides that belong together are connected in it
    far = np.where(agree, right, right + count)
    near = np.where(agree, right + count, right)
    double = coo_matrix((np.ones(2 * len(left), bool), (np.concatenate([left, left + count]), np.concatenate([far, near]))), shape=(2 * count, 2 * count))
    side = connected_components(double, directed=False)[1]
    one_sided = side[:count] == side[count:]  # a Möbius band: no turning helps
    first = np.unique(patch, return_index=True)[1]
    turned = (side[:count] != side[first][patch]) & ~one_sided
    most = np.bincount(patch, turned) * 2 > np.bincount(patch)
    return turned ^ (most[patch] & ~one_sided), patch


def _some_of_each(faces: Int[np.ndarray, " N"], patch: Int[np.ndarray, " S"]) -> Int[np.ndarray, " A"]:
    """Up to 32 faces of each patch, evenly taken."""
    order = faces[np.argsort(patch[faces], kind="stable")]
    of = patch[order]
    size = np.bincount(of)
    place = np.arange(len(order)) - np.concatenate([[0], np.cumsum(size)[:-1]])[of]
    return order[place % np.maximum(size[of] // _ASKED, 1) == 0]


def _hits_in_front(centres: Float[np.ndarray, "A 3"], normals: Float[np.ndarray, "A 3"], occluder: Occluder) -> Float[np.ndarray, " A"]:
    """1 where something lies in front of a face and nothing behind it, −1 the other way round."""
    far = 4 * normals / np.linalg.norm(normals, axis=1, keepdims=True)  # out of a unit box
    return occluder.blocked(centres, centres + far).astype(float) - occluder.blocked(centres, centres - far)


def _mean_of(patch: Int[np.ndarray, " S"], values: Float[np.ndarray, "S 3"]) -> Float[np.ndarray, "K 3"]:
    count = np.bincount(patch)[:, None]
    return np.stack([np.bincount(patch, column) for column in values.T], axis=1) / count
