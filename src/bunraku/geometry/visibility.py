"""What lies between two points: rays against the triangles of a mesh, all at once (Embree)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int

_CLEAR = 1e-4  # of a unit box: how far a segment must be from its ends before a hit counts; a vertex touches its own faces
_STEP = 1e-5  # of a unit box: how far behind a hit the search goes on
_FACING = 1e-6  # a face seen this much edge-on is passed by
_FAR = 4.0  # of a unit box: out of it from anywhere inside
_LAYERS = 64  # faces that a segment may pass through before it is given up as blocked


class Occluder:
    """Triangles that rays can hit, in a unit box around the origin (Embree counts in float32)."""

    def __init__(self, points: Float[np.ndarray, "P 3"], faces: Int[np.ndarray, "S 3"]) -> None:
        from embreex.mesh_construction import TriangleMesh
        from embreex.rtcore_scene import EmbreeScene

        self._scene = EmbreeScene()
        self._mesh = TriangleMesh(self._scene, points.astype(np.float32), faces.astype(np.int32))

    def blocked(self, start: Float[np.ndarray, "N 3"], end: Float[np.ndarray, "N 3"]) -> Bool[np.ndarray, " N"]:
        """Does anything lie between, whichever way it faces? Ends count as clear."""
        origin, way, reach = _between(start, end)
        return self._scene.run(origin, way, dists=reach, query="OCCLUDED") >= 0

    def entered(self, start: Float[np.ndarray, "N 3"], end: Float[np.ndarray, "N 3"], outward: Float[np.ndarray, "S 3"]) -> Bool[np.ndarray, " N"]:
        """Does the way from start to end go into the body from outside? Faces that it leaves through do not count. `outward`: normals of the faces."""
        origin, way, reach = _between(start, end)
        return self._meets(origin, way, reach, lambda rays, faces: np.einsum("nd,nd->n", outward[faces], way[rays]) < -_FACING)

    def surrounded(
        self, start: Float[np.ndarray, "N 3"], end: Float[np.ndarray, "N 3"], shell: Int[np.ndarray, " N"], of_face: Int[np.ndarray, " S"]
    ) -> Bool[np.ndarray, " N"]:
        """Does the ray that goes on behind `end` meet the shell that `start` belongs to?"""
        way = _between(start, end)[1]
        origin, reach = end.astype(np.float32), np.full(len(end), _FAR, np.float32)
        return self._meets(origin, way, reach, lambda rays, faces: of_face[faces] == shell[rays])

    def _meets(
        self,
        origin: Float[np.ndarray, "N 3"],
        way: Float[np.ndarray, "N 3"],
        reach: Float[np.ndarray, " N"],
        wanted: Callable[[Int[np.ndarray, " M"], Int[np.ndarray, " M"]], Bool[np.ndarray, " M"]],
    ) -> Bool[np.ndarray, " N"]:
        """Which rays meet a wanted face, whatever they pass before it. One that passes very many faces is taken to."""
        origin, reach = origin.copy(), reach.copy()
        found = np.zeros(len(origin), bool)
        waiting = np.flatnonzero(reach > 0)
        for _ in range(_LAYERS):
            hit = self._scene.run(origin[waiting], way[waiting], dists=reach[waiting], output=True)
            met = hit["primID"] >= 0
            waiting, face, far = waiting[met], hit["primID"][met], hit["tfar"][met]
            good = wanted(waiting, face)
            found[waiting[good]] = True
            waiting, far = waiting[~good], far[~good] + np.float32(_STEP)
            origin[waiting] += far[:, None] * way[waiting]
            reach[waiting] -= far
            waiting = waiting[reach[waiting] > 0]
            if not len(waiting):
                return found
        found[waiting] = True
        return found


def _between(
    start: Float[np.ndarray, "N 3"], end: Float[np.ndarray, "N 3"]
) -> tuple[Float[np.ndarray, "N 3"], Float[np.ndarray, "N 3"], Float[np.ndarray, " N"]]:
    """Rays from start to end, both shortened: origin, direction (unit), length."""
    arm = end - start
    length = np.linalg.norm(arm, axis=1)
    way = arm / np.where(length > 0, length, 1)[:, None]
    clear = np.minimum(_CLEAR, length / 4)
    return (start + clear[:, None] * way).astype(np.float32), way.astype(np.float32), (length - 2 * clear).astype(np.float32)
