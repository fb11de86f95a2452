"""Light baked into a character's colours at rest, as captured and generated splats have it: in one flat colour a body is a silhouette."""

from __future__ import annotations

from dataclasses import replace

import torch

from bunraku.geometry.primitives import vertex_normals
from bunraku.rig.character import Character

_LAMP = (0.45, 0.75, 0.55)  # towards the lamp: above the left shoulder
_AMBIENT, _SKY = 0.42, 0.14  # of the light that comes from all around, and how much more of it from above


def lit_at_rest(character: Character) -> Character:
    """The character with colours that hold the light which its rest pose stands in; splats made of it show its form and carry the light along."""
    mesh = character.mesh
    normals = vertex_normals(mesh.vertices, mesh.faces) if mesh.normals is None else mesh.normals
    lamp = torch.nn.functional.normalize(torch.tensor(_LAMP).to(normals), dim=0)
    light = _AMBIENT + (1 - _AMBIENT) * (normals @ lamp).clamp_min(0) + _SKY * normals[:, 1]
    colours = torch.ones_like(mesh.vertices) if mesh.colours is None else mesh.colours
    return replace(character, mesh=replace(mesh, colours=(colours * light[:, None]).clamp(0, 1)))
