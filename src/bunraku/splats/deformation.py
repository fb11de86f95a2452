"""Splats that follow bones: `mean' = Σ w_j (R_j mean + t_j) + Σ R_j arm_j`, `factor' = (Σ w_j R_j) factor`, the map's exact gradient.

Without arms (a plain `Rig`) that is linear blend skinning; with them (`carry_rig`) splats ride on the faces of the mesh. Covariances
become `G Σ Gᵀ` with nothing decomposed. Opacities and colours stay; colours that depend on direction are held in the world as the
paper has it, or turned with the skin.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.kinematics.forward import WorldPoses
from bunraku.kinematics.motion import Motion
from bunraku.math.rotations import nearest_rotation
from bunraku.rig.character import Character
from bunraku.rig.rig import Rig
from bunraku.rig.skinning import rest_to_posed
from bunraku.splats.carry import SplatRig, carry_rig
from bunraku.splats.harmonics import basis
from bunraku.splats.splats import COEFFICIENTS, Splats

_DIRECTIONS = 48  # at which harmonics are compared; three times their number makes the least squares well conditioned


def deform(splats: Splats, rig: Rig | Character, motion: Motion | WorldPoses, *, turn_colours: bool = False) -> Splats:
    """The splats in every frame: means (F N 3) and factors (F N 3 3). Differentiable in the motion (or world poses) and in the splats.

    `rig` has one row of weights for each splat (`carry_rig`); a character is given such a rig first, which takes longer than the rest.
    `turn_colours`: harmonics turn with the skin (with the rotation nearest to its gradient), in a single frame.
    """
    if splats.batch:
        raise BadValue(f"these splats are deformed already: they have {tuple(splats.batch)} frames. Give the splats of the rest pose.")
    if isinstance(rig, Character):
        rig = carry_rig(splats, rig)
    if len(rig.weights) != len(splats):
        raise BadValue(f"the rig has weights for {len(rig.weights)} points, but there are {len(splats)} splats. Use carry_rig(splats, character).")
    moved, weights = rest_to_posed(rig, motion).to(splats.means), rig.weights.to(splats.means)
    if splats.means.device.type == "cpu" and splats.means.dtype == torch.float32 and not weights.requires_grad:
        from bunraku.splats.cpu_deformation import carried_fast as carry
    else:
        carry = carried
    means, factors = carry(splats.means, splats.factors, weights, rig.arms.to(splats.means) if isinstance(rig, SplatRig) else None, moved)
    if not turn_colours or splats.degree == 0:
        return replace(splats, means=means, factors=factors)
    if len(moved) > 1:
        given = f"splats of degree {splats.degree} share their colours over a clip, and turned ones differ in each of {len(moved)} frames"
        raise BadValue(f"{given}; deform one at a time, motion[i:i + 1], or leave turn_colours off.")
    G, _ = _blend(weights, moved[0])
    return replace(splats, means=means, factors=factors, sh=turned_harmonics(splats.sh, nearest_rotation(G)))


def carried(
    means: Float[Tensor, "N 3"],
    factors: Float[Tensor, "N 3 3"],
    weights: Float[Tensor, "N J"],
    arms: Float[Tensor, "N J 3"] | None,
    moved: Float[Tensor, "F J 3 4"],
) -> tuple[Float[Tensor, "F N 3"], Float[Tensor, "F N 3 3"]]:
    """The specification, on any device and in any precision; `moved` is how each joint carries what is fixed to it."""
    G, t = _blend(weights, moved)
    placed = (G @ means[:, :, None]).squeeze(-1) + t
    if arms is not None:
        placed = placed + arms.flatten(-2) @ moved[..., :3].transpose(-1, -2).flatten(1, 2)
    return placed, G @ factors


def skin_gradients(rig: Rig, motion: Motion | WorldPoses) -> Float[Tensor, "F N 3 3"]:
    """The local gradient G of the skin at each splat of `rig`, in every frame."""
    return _blend(rig.weights, rest_to_posed(rig, motion).to(rig.weights))[0]


def _blend(weights: Float[Tensor, "N J"], moved: Float[Tensor, "*F J 3 4"]) -> tuple[Float[Tensor, "*F N 3 3"], Float[Tensor, "*F N 3"]]:
    T = (weights @ moved.flatten(-2)).unflatten(-1, (3, 4))
    return T[..., :3], T[..., 3]


def turned_harmonics(sh: Float[Tensor, "N K 3"], R: Float[Tensor, "*batch N 3 3"]) -> Float[Tensor, "*batch N K 3"]:
    """Colours that turn with R: what was seen along v is now seen along R v. For G, give `math.rotations.nearest_rotation(G)`.

    Within one degree harmonics only mix among themselves; the mixture is read off at a few directions.
    """
    if sh.shape[1] == 1:
        return sh.expand(*R.shape[:-3], *sh.shape)
    directions = _even_directions(_DIRECTIONS).to(R)
    degree = COEFFICIENTS.index(sh.shape[1])
    before = basis(directions @ R, degree)  # each direction as it was: Rᵀ v
    here = basis(directions, degree)
    turned = [sh[:, :1].expand(*R.shape[:-3], -1, -1, -1)]
    for order in range(1, degree + 1):
        band = slice(order**2, (order + 1) ** 2)
        mixture = torch.linalg.pinv(here[:, band]) @ before[..., band]
        turned.append(mixture @ sh[:, band])
    return torch.cat(turned, dim=-2)


def _even_directions(count: int) -> Float[Tensor, "M 3"]:
    number = torch.arange(count, dtype=torch.float64)
    height, around = 1 - (2 * number + 1) / count, number * 2.399963229728653  # the golden angle
    level = (1 - height**2).sqrt()
    return torch.stack([level * around.cos(), height, level * around.sin()], dim=-1)
