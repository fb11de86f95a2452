"""Skin for splats: the weights of the nearest point of the mesh, between its face's three corners, and how that point rides on the face.

A face of a skinned mesh stays flat: a point on it follows its corners, `Σ_k b_k Σ_j w_kj (R_j x_k + t_j)`, and not the joints with blended
weights, `Σ_j w_j (R_j x + t_j)` with `w_j = Σ_k b_k w_kj`. On long faces the two differ by more than a splat. The difference is
`Σ_j R_j a_j` with the arms `a_j = Σ_k b_k w_kj (x_k − Σ b x)`, which add up to nothing, so that rest poses and rigid motions are as they were.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.geometry.mesh import Mesh
from bunraku.geometry.nearest import nearest_on_surface
from bunraku.rig.character import Character
from bunraku.rig.rig import Rig
from bunraku.splats.splats import Splats


@dataclass(frozen=True, kw_only=True, eq=False)
class SplatRig(Rig):
    """A rig with a row of weights for each splat, and arms that make it ride on its face as the face moves."""

    arms: Float[Tensor, "V J 3"]  # [m], turned by their joint and added


def carry_weights(points: Float[Tensor, "N 3"], mesh: Mesh, weights: Float[Tensor, "V J"]) -> Float[Tensor, "N J"]:
    """`points` [m, world], the mesh at rest. Rows sum to 1 as those of the vertices do."""
    return _carry(points, mesh, weights)[0]


def carry_rig(splats: Splats, character: Character) -> SplatRig:
    """The character's rig for splats in the character's rest pose."""
    if splats.batch:
        raise BadValue(f"weights are carried to splats at rest; these have {tuple(splats.batch)} frames. Give the splats before they were deformed.")
    rig = character.rig
    weights, arms = _carry(splats.means, character.mesh, rig.weights)
    return SplatRig(skeleton=rig.skeleton, weights=weights, T_world_joint_rest=rig.T_world_joint_rest, arms=arms)


def _carry(points: Float[Tensor, "N 3"], mesh: Mesh, weights: Float[Tensor, "V J"]) -> tuple[Float[Tensor, "N J"], Float[Tensor, "N J 3"]]:
    """Weights and arms."""
    if len(weights) != len(mesh.vertices):
        raise BadValue(f"the mesh has {len(mesh.vertices)} vertices but skin weights for {len(weights)}; one row for each is needed.")
    vertices, faces = mesh.vertices.detach().double().cpu().numpy(), mesh.faces.cpu().numpy()
    found = nearest_on_surface(points.detach().double().cpu().numpy(), vertices, faces)
    corners = mesh.faces.cpu()[torch.from_numpy(found.face)].to(weights.device)
    place = mesh.vertices.detach().to(weights)[corners]  # N 3 3: corner, axis
    share = torch.from_numpy(found.weight).to(weights)[:, :, None]
    blended, arms = weights.new_zeros(len(points), weights.shape[1]), weights.new_zeros(len(points), weights.shape[1], 3)
    for k in range(3):
        part = share[:, k] * weights[corners[:, k]]
        blended += part
        arms += part[:, :, None] * (place[:, k] - (share * place).sum(1))[:, None]
    return blended, arms
