"""Would the body fall over? Where it stands nearly still, its centre of mass must lie above its feet.

Segment masses and centres are those of D. A. Winter, Biomechanics and Motor Control of Human Movement (2009), table 4.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.evaluate.clip import Clip, Feet
from bunraku.evaluate.metric import metric
from bunraku.kinematics.skeleton import SIDES
from bunraku.math.curves import velocity

STILL = 0.15  # [m/s] a centre of mass slower than this is held by the feet, not by momentum
MARGIN = 0.05  # [m] half the width of a foot, which a line of joints does not have
DIRECTIONS = 72  # in which the support is measured; the error of a distance is below 0.1 %

LEG_AND_ARM = (  # upper end, lower end, share of body mass, centre from the upper end as a share of the length
    ("hip", "knee", 0.100, 0.433),
    ("knee", "foot", 0.0465, 0.433),
    ("foot", "toe", 0.0145, 0.5),
    ("shoulder", "elbow", 0.028, 0.436),
    ("elbow", "hand", 0.016, 0.430),
)
HAND_MASS = 0.006  # at the wrist
TRUNK_MASS, TRUNK_CENTRE = 0.497, 0.5  # hips to the middle of the shoulders
HEAD_MASS = 0.081  # at the head joint, about the height of the ears


@dataclass(frozen=True, kw_only=True)
class BalanceMetrics:
    """None without the trunk and both legs, or without a frame of nearly still standing."""

    still_share: float | None = metric("1", "share of frames that stand nearly still: a foot in contact, the centre of mass slower than 0.15 m/s")
    support_share: float | None = metric("1", "share of those frames with the centre of mass above the feet or within 5 cm")
    support_outside_max: float | None = metric("cm", "furthest of the centre of mass outside the feet in those frames")


def balance_metrics(clip: Clip) -> BalanceMetrics:
    p_com = centre_of_mass(clip)
    if p_com is None or clip.feet is None:
        return BalanceMetrics()
    feet = clip.feet
    still = (velocity(p_com, clip.fps).norm(dim=-1) < STILL * feet.scale) & feet.contacts.any(dim=-1)
    still_share = float(still.double().mean())
    if not still.any():
        return BalanceMetrics(still_share=still_share)
    outside = _outside_support(p_com[:, [0, 2]], feet)[still].clamp_min(0)
    return BalanceMetrics(
        still_share=still_share,
        support_share=float((outside <= MARGIN * feet.scale).double().mean()),
        support_outside_max=100 * float(outside.max()),
    )


def centre_of_mass(clip: Clip) -> Float[Tensor, "F 3"] | None:
    """The body's centre of mass in the world [m]; shares of missing arms or head are left out. None without trunk and legs."""
    has, at = clip.skeleton.has, clip.position
    if not has("hips", *(f"{side}_{part}" for side in SIDES for part in ("hip", "knee", "foot", "shoulder"))):
        return None
    shoulders = 0.5 * (at("left_shoulder") + at("right_shoulder"))
    parts = [(TRUNK_MASS, torch.lerp(at("hips"), shoulders, TRUNK_CENTRE))]
    if has("head"):
        parts.append((HEAD_MASS, at("head")))
    for side in SIDES:
        for top, end, mass, centre in LEG_AND_ARM:
            if has(f"{side}_{top}", f"{side}_{end}"):
                parts.append((mass, torch.lerp(at(f"{side}_{top}"), at(f"{side}_{end}"), centre)))
        if has(f"{side}_hand"):
            parts.append((HAND_MASS, at(f"{side}_hand")))
    total = sum(mass for mass, _ in parts)
    return torch.stack([mass / total * p for mass, p in parts]).sum(dim=0)


def _outside_support(p: Float[Tensor, "F 2"], feet: Feet) -> Float[Tensor, " F"]:
    """How far points on the ground lie outside the convex hull of the soles in contact [m]; negative inside."""
    soles, standing = [], []
    for side, p_sole in feet.soles.items():
        soles.append(p_sole[..., [0, 2]])
        standing.append(feet.side_contacts(side)[:, None].expand(p_sole.shape[:2]))
    return outside_hull(p, torch.cat(soles, dim=1), torch.cat(standing, dim=1))


def outside_hull(p: Float[Tensor, "F 2"], corners: Float[Tensor, "F N 2"], present: Bool[Tensor, "F N"]) -> Float[Tensor, " F"]:
    """The distance of points from the convex hull of their corners that are present, by its support function.

    The distance from a convex set is the largest amount by which the point lies further out than the set, over all directions.
    """
    outside = torch.full_like(p[:, 0], -torch.inf)
    for step in range(DIRECTIONS):
        angle = 2 * math.pi * step / DIRECTIONS
        direction = torch.tensor([math.cos(angle), math.sin(angle)], dtype=p.dtype)
        reach = (corners @ direction).masked_fill(~present, -torch.inf).amax(dim=-1)
        outside = torch.maximum(outside, p @ direction - reach)
    return outside
