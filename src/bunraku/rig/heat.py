"""Skin weights by heat: bones warm the skin that they see from inside, the warmth spreads over the surface, and every bone's share is its weight.

`(L + M H) w_b = M H p_b` for each bone b (AKD supplement Eq. 1, after Pinocchio): L the cotangent Laplacian, M the areas, `H_j = n c / d_j²`
where the n closest bones (one, unless several tie) are seen from vertex j, `p_b = 1/n` for these and 0 for the others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import overload

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.spatial import KDTree
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.geometry.components import shells
from bunraku.geometry.laplacian import surface_laplacian
from bunraku.geometry.weld import Welded, weld
from bunraku.rig.heat_report import HeatReport
from bunraku.rig.heat_solve import solve_heat
from bunraku.rig.heat_sources import Sources, heat_sources
from bunraku.rig.nearest_bones import nearest_bones

_ASTRAY = 1e-2  # a row that sums to 1 worse than this was not solved
_NOTHING = 1e-8  # a weight below this is noise of the solve


@overload
def heat_weights(vertices: Tensor, faces: Tensor, bone_heads: Tensor, bone_tails: Tensor) -> tuple[Tensor, HeatReport]: ...
@overload
def heat_weights(vertices: np.ndarray, faces: np.ndarray, bone_heads: np.ndarray, bone_tails: np.ndarray) -> tuple[np.ndarray, HeatReport]: ...


def heat_weights(
    vertices: Float[Tensor, "V 3"] | Float[np.ndarray, "V 3"],
    faces: Int[Tensor, "T 3"] | Int[np.ndarray, "T 3"],
    bone_heads: Float[Tensor, "B 3"] | Float[np.ndarray, "B 3"],
    bone_tails: Float[Tensor, "B 3"] | Float[np.ndarray, "B 3"],
) -> tuple[Float[Tensor, "V B"] | Float[np.ndarray, "V B"], HeatReport]:
    """How much each vertex follows each bone (rows sum to 1), and what of the mesh had to be repaired. Any unit of length will do."""
    if isinstance(vertices, Tensor):
        given = [value.detach().cpu().numpy() for value in (vertices, faces, bone_heads, bone_tails)]  # type: ignore[union-attr]
        weights, report = heat_weights(*given)
        return torch.from_numpy(weights).to(vertices), report
    ends = [np.asarray(end, np.float64) for end in (bone_heads, bone_tails)]
    corners = np.asarray(faces, np.int64)
    _require_numbers(vertices, corners, *ends)
    welded = weld(vertices, corners)
    heads, tails = (welded.to_unit(end) for end in ends)
    weights, sources, count = _skin_weights(welded, heads, tails)
    weights = _clipped(weights)[welded.of_vertex]
    return weights.astype(vertices.dtype), _report(welded, weights, sources, count)


def _skin_weights(welded: Welded, heads: Float[np.ndarray, "B 3"], tails: Float[np.ndarray, "B 3"]) -> tuple[Float[np.ndarray, "P B"], Sources | None, int]:
    """Of all points: by heat where there are faces, as the nearest skin where there are none; with no face at all, the nearest bone's."""
    skin = np.unique(welded.faces)
    if not len(skin):
        return _closest_bone(welded.points, heads, tails), None, 0
    rank = np.full(len(welded.points), -1)
    rank[skin] = np.arange(len(skin))
    points, faces = welded.points[skin], rank[welded.faces]
    count, shell = shells(faces, len(points))
    sources = heat_sources(points, faces, heads, tails, shell)
    on_skin, unsolved = _solved(points, faces, sources, heads, tails)
    weights = np.empty((len(welded.points), len(heads)))
    weights[skin] = on_skin
    loose = rank < 0
    if loose.any():
        weights[loose] = on_skin[KDTree(points).query(welded.points[loose])[1]]
    return weights, replace(sources, unsolved=unsolved), count


def _solved(
    points: Float[np.ndarray, "P 3"], faces: Int[np.ndarray, "S 3"], sources: Sources, heads: Float[np.ndarray, "B 3"], tails: Float[np.ndarray, "B 3"]
) -> tuple[Float[np.ndarray, "P B"], int]:
    """The weights, and how many points are so thin that double precision fails there: they follow their nearest bone."""
    with np.errstate(all="ignore"):
        try:
            weights = solve_heat(*surface_laplacian(points, faces), sources)
        except RuntimeError:  # the factorisation met a pivot that rounding had made 0
            weights = np.full((len(points), len(heads)), np.nan)
        lost = ~(np.abs(weights.sum(1) - 1) < _ASTRAY)
    if lost.any():
        weights[lost] = _closest_bone(points[lost], heads, tails)
    return weights, int(lost.sum())


def _closest_bone(points: Float[np.ndarray, "P 3"], heads: Float[np.ndarray, "B 3"], tails: Float[np.ndarray, "B 3"]) -> Float[np.ndarray, "P B"]:
    near = nearest_bones(points, np.zeros_like(points), heads, tails)
    weights = np.zeros((len(points), len(heads)))
    weights[near.points, near.bones] = 1
    return weights


def _clipped(weights: Float[np.ndarray, "P B"]) -> Float[np.ndarray, "P B"]:
    """From 0 to 1, rows summing to 1 but for the last bit."""
    weights = np.where(weights > _NOTHING, weights, 0)
    return weights / weights.sum(1, keepdims=True)


def _report(welded: Welded, weights: Float[np.ndarray, "V B"], sources: Sources | None, count: int) -> HeatReport:
    strongest = np.bincount(weights.argmax(1), minlength=weights.shape[1])
    return HeatReport(
        vertices=len(weights),
        bones=weights.shape[1],
        shells=count,
        repeated=welded.repeated,
        flat_faces=welded.flat,
        doubled_faces=welded.doubled,
        unsolved=0 if sources is None else sources.unsolved,
        loose=len(welded.points) - len(np.unique(welded.faces)),
        turned_faces=0 if sources is None else sources.turned,
        warmed=0 if sources is None else int(sources.warmed.sum()),
        carried_shells=0 if sources is None or not sources.holds.any() else int((~sources.holds).sum()),
        boneless=sources is None or not sources.holds.any(),
        idle_bones=tuple(np.flatnonzero(strongest == 0).tolist()),
    )


def _require_numbers(vertices: np.ndarray, faces: np.ndarray, heads: np.ndarray, tails: np.ndarray) -> None:
    if not len(vertices) or not len(heads):
        raise BadValue(f"skin weights need vertices and bones; got {len(vertices)} vertices and {len(heads)} bones.")
    if heads.shape != tails.shape:
        raise BadValue(f"every bone needs a head and a tail; got {len(heads)} heads and {len(tails)} tails.")
    for name, value in (("vertices", vertices), ("bones", heads), ("bones", tails)):
        if not np.isfinite(value).all():
            raise BadValue(f"some {name} are not finite numbers (NaN or infinity); remove or repair them.")
    if len(faces) and (faces.min() < 0 or faces.max() >= len(vertices)):
        raise BadValue(f"a face names vertex {faces.min() if faces.min() < 0 else faces.max()}, but there are {len(vertices)} vertices.")
