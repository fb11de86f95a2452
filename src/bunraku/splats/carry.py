"""Skin weights for splats: those of the nearest point of the mesh, between its face's three corners."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.geometry.mesh import Mesh
from bunraku.geometry.nearest import nearest_on_surface
from bunraku.rig.character import Character
from bunraku.rig.rig import Rig
from bunraku.splats.splats import Splats


def carry_weights(points: Float[Tensor, "N 3"], mesh: Mesh, weights: Float[Tensor, "V J"]) -> Float[Tensor, "N J"]:
    """`points` [m, world], the mesh at rest. Rows sum to 1 as those of the vertices do."""
    if len(weights) != len(mesh.vertices):
        raise BadValue(f"the mesh has {len(mesh.vertices)} vertices but skin weights for {len(weights)}; one row for each is needed.")
    vertices, faces = mesh.vertices.detach().double().cpu().numpy(), mesh.faces.cpu().numpy()
    found = nearest_on_surface(points.detach().double().cpu().numpy(), vertices, faces)
    share = torch.from_numpy(found.weight).to(weights)
    corners = mesh.faces.to(weights.device)[torch.from_numpy(found.face).to(weights.device)]
    return sum((share[:, k, None] * weights[corners[:, k]] for k in range(3)), start=weights.new_zeros(len(points), weights.shape[1]))


def carry_rig(splats: Splats, character: Character) -> Rig:
    """The character's rig with one row of weights per splat, for splats in the character's rest pose."""
    if splats.batch:
        raise BadValue(f"weights are carried to splats at rest; these have {tuple(splats.batch)} frames. Give the splats before they were deformed.")
    return replace(character.rig, weights=carry_weights(splats.means, character.mesh, character.rig.weights))
