"""The door: a skeleton for a mesh without one, fitted from the template that is asked for, or from the one that fits best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from bunraku.errors import BadValue
from bunraku.geometry.mesh import Mesh
from bunraku.kinematics.skeleton import SIDES, Skeleton
from bunraku.rig.fit.branches import Landscape, survey
from bunraku.rig.fit.embed import Embedding, embed
from bunraku.rig.fit.inside import Volume, both_sides, solid
from bunraku.rig.fit.place import joint_places
from bunraku.rig.fit.symmetry import MirrorPlane, lengthwise_planes, mirror_planes
from bunraku.rig.fit.templates import Template, template_named, templates

_ALIKE = 0.7  # of the volume that must have its mirror image, if one side may stand for the other
_TURNED = 1.2  # cost of a body that faces −X or +X; twice that for one that looks along −Z
_USUAL, _POOR = 4.0, 14.0  # a cost up to the first is nothing unusual; beyond it confidence falls e-fold with every one of the second


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    skeleton: Skeleton  # in the mesh's own space and unit, standing as the mesh does
    template: str
    confidence: float  # 0 … 1: how clearly this template fits better than the others, and how well
    scores: Mapping[str, float]  # of all templates tried, 0 … 1, the best first
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Found:
    """A template embedded in a body that has been turned to look along ±z."""

    plane: MirrorPlane
    land: Landscape
    embedding: Embedding
    cost: float
    whole: bool  # left and right were looked at one by one

    @property
    def v_world_ahead(self) -> Float[np.ndarray, "3"]:
        return self.plane.R_body_world.T @ (0.0, 0.0, float(self.embedding.facing))


def fit_skeleton(mesh: Mesh, template: str | None = None, on_progress: Callable[[str], None] | None = None) -> Fit:
    """The joints of a template, placed in the mesh. Without a template all are tried. Sides are the body's own; it may face any way but must stand upright."""
    tell = on_progress or (lambda text: None)
    kinds = [template_named(template)] if template else list(templates().values())
    vertices, faces = mesh.vertices.double().numpy(), mesh.faces.numpy()
    if not len(faces):
        raise BadValue(f"the mesh has {len(vertices)} vertices and no faces, so it has no inside; give a mesh with triangles.")
    tell("looking for the mirror plane")
    planes = mirror_planes(vertices, faces)
    tell("measuring the body")
    tried = [_try(plane, solid(vertices @ plane.R_body_world.T, faces), kinds) for plane in planes]
    if any(tried) and all(found.whole for attempt in tried for found in attempt):
        tried += [_try(plane, solid(vertices @ plane.R_body_world.T, faces), kinds) for plane in lengthwise_planes(vertices, faces)]
    best: dict[str, _Found] = {}
    for found in (found for attempt in tried for found in attempt):
        name = found.embedding.template.name
        if name not in best or found.cost < best[name].cost:
            best[name] = found
    if not best:
        of = f"the limbs of '{template}'; choose another of {', '.join(templates())}" if template else "limbs; give it some"
        raise BadValue(f"the body has no ends that could be {of}, or give a skeleton.")
    tell("placing joints")
    ranked = sorted(best.values(), key=lambda found: found.cost)
    chosen = ranked[0]
    places = _in_world(chosen, joint_places(chosen.land, chosen.embedding))
    scores = _scores(ranked)
    return Fit(
        skeleton=_skeleton(chosen.embedding, places),
        template=chosen.embedding.template.name,
        confidence=scores[chosen.embedding.template.name],
        scores=scores,
        notes=tuple(_notes(chosen, template is None, scores)),
    )


def _try(plane: MirrorPlane, volume: Volume, kinds: Sequence[Template]) -> list[_Found]:
    shared, alike = both_sides(volume, plane.offset)
    whole = alike < _ALIKE
    land = survey(volume if whole else shared, plane.offset, not whole)
    found = []
    for kind in kinds:
        for facing in (1, -1):
            embedding = embed(kind, land, facing)
            if embedding is not None:
                ahead = facing * plane.R_body_world[2, 2]
                cost = embedding.cost + _TURNED * (1 - float(ahead))
                found.append(_Found(plane=plane, land=land, embedding=embedding, cost=cost, whole=whole))
    return found


def _in_world(found: _Found, places: Mapping[str, Float[np.ndarray, "3"]]) -> dict[str, Float[np.ndarray, "3"]]:
    """Joints in the mesh's own space; where the body is its own mirror image, so are its joints."""
    placed = dict(places)
    if not found.whole:
        mirror = np.array([-1.0, 1.0, 1.0]), np.array([2 * found.plane.offset, 0.0, 0.0])
        for name in places:
            twin = name.replace("left", "right") if "left" in name else name.replace("right", "left")
            placed[name] = (places[name] + places.get(twin, places[name]) * mirror[0] + mirror[1]) / 2
    return {name: found.plane.R_body_world.T @ place for name, place in placed.items()}


def _scores(ranked: Sequence[_Found]) -> dict[str, float]:
    """How likely each template is beside the others, times how well it fits at all."""
    costs = np.array([found.cost for found in ranked])
    share = np.exp(-(costs - costs.min()) / 2)
    quality = np.exp(-np.maximum(costs - _USUAL, 0) / _POOR)
    return {found.embedding.template.name: float(value) for found, value in zip(ranked, share / share.sum() * quality, strict=True)}


def _skeleton(embedding: Embedding, places: Mapping[str, Float[np.ndarray, "3"]]) -> Skeleton:
    """Joints of absent limbs are left out."""
    named = [(side, joint) for joint in embedding.template.joints for side in (SIDES if "{side}" in joint.name else ("",))]
    named = [(side, joint) for side, joint in named if joint.name.replace("{side}", side) in places]
    names = [joint.name.replace("{side}", side) for side, joint in named]
    parents = [names.index(joint.parent.replace("{side}", side)) if joint.parent else -1 for side, joint in named]
    points = np.stack([places[name] for name in names])
    offsets = points - np.where(np.array(parents)[:, None] >= 0, points[parents], 0.0)
    return Skeleton(
        name=embedding.template.name,
        joints=tuple(names),
        parents=tuple(parents),
        offsets=torch.tensor(offsets, dtype=torch.float32),
        roles={joint.role.replace("{side}", side): number for number, (side, joint) in enumerate(named) if joint.role},
    )


def _notes(found: _Found, chosen: bool, scores: Mapping[str, float]) -> list[str]:
    kind, ahead = found.embedding.template, found.v_world_ahead
    notes = []
    if chosen:
        second = [name for name in scores if name != kind.name][:1]
        beside = f"; next best: {second[0]}, {scores[second[0]]:.0%}" if second else ""
        notes.append(f"chose the template {kind.name} ({kind.title}), {scores[kind.name]:.0%} sure{beside}")
    if ahead[2] < 0.98:
        axis = ("−" if ahead.sum() < 0 else "+") + {0: "X", 2: "Z"}[int(np.abs(ahead).argmax())]
        where = axis if np.abs(ahead).max() > 0.999 else f"{np.degrees(np.arctan2(ahead[0], ahead[2])):.0f}° from +Z towards +X"
        notes.append(f"the body seems to face {where}, not +Z; left and right are its own")
    if found.whole:
        notes.append("left and right differ too much to stand for each other; each side was fitted by itself")
    volume = found.land.volume
    if volume.leaked:
        notes.append("the mesh is open; what lies inside it was estimated")
    if volume.left_out:
        notes.append(f"{volume.left_out} loose parts were left out")
    missing = [limb.name for limb in kind.limbs if limb.name not in found.embedding.limbs]
    if missing:
        notes.append(f"found no {' and no '.join(missing)}")
    if found.cost > _USUAL + _POOR:
        notes.append("the fit is poor; look at the picture and move the joints, or choose another template")
    return notes
