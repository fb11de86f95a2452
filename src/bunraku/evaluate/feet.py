"""Feet against the ground: do they slide while they stand, sink into it, hover over it?

Speeds are three-dimensional and run from one frame to the next, so the last frame has none, as in the released metrics.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.evaluate.clip import UP, Clip, Feet
from bunraku.evaluate.metric import metric
from bunraku.kinematics.contacts import contact_heights, contact_joints, contacts_from_positions
from bunraku.kinematics.skeleton import CONTACT_ROLES

TOE_HEIGHT = 0.05  # [m] a toe joint below it is on the floor
SKATE_SPEED = 0.2  # [m/s] a toe on the floor that is faster skates
SUNK = 0.001  # [m] a sole less deep than this is on the ground, not in it


@dataclass(frozen=True, kw_only=True)
class FeetMetrics:
    """All None for a skeleton without feet."""

    contact_share: float | None = metric("1", "share of frames in which any foot stands")
    skate: float | None = metric("cm/s", "mean speed of foot joints in contact")
    skate_max: float | None = metric("cm/s", "largest speed of a foot joint in contact")
    skate_from_height: float | None = metric("cm/s", "mean speed of toes lower than 5 cm")
    skate_ratio: float | None = metric("1", "share of the steps of toes lower than 5 cm that are faster than 20 cm/s")
    contact_consistency: float | None = metric("1", "share of stored contacts that speed and height agree with")
    ground_level: float | None = metric("cm", "height the feet seem to stand on, against the ground")
    penetration_mean: float | None = metric("mm", "mean depth of the lowest sole point, over the frames that penetrate")
    penetration_max: float | None = metric("mm", "largest depth of the lowest sole point")
    penetration_share: float | None = metric("1", "share of frames deeper than 1 mm")
    float_mean: float | None = metric("mm", "mean height of the lowest sole point of a foot in contact")
    float_max: float | None = metric("mm", "largest height of the lowest sole point of a foot in contact")


def feet_metrics(clip: Clip) -> FeetMetrics:
    if clip.feet is None:
        return FeetMetrics()
    feet = clip.feet
    return FeetMetrics(
        contact_share=float(feet.contacts.any(dim=-1).double().mean()),
        contact_consistency=_consistency(clip, feet),
        ground_level=100 * (feet.level - clip.ground),
        **_skate(clip, feet),
        **_toe_skate(clip, feet),
        **_penetration(clip, feet),
        **_float(clip, feet),
    )


def _skate(clip: Clip, feet: Feet) -> dict[str, float]:
    columns, joints = contact_joints(clip.skeleton)
    speed = _speed(clip.poses.p_world_joint[:, joints], clip.fps)[feet.contacts[:-1, columns]]
    return {"skate": 100 * float(speed.mean()), "skate_max": 100 * float(speed.max())} if len(speed) else {}


def _toe_skate(clip: Clip, feet: Feet) -> dict[str, float]:
    toes = [clip.skeleton.roles[role] for role in CONTACT_ROLES if role.endswith("toe") and clip.skeleton.has(role)]
    if not toes or len(clip.motion) < 2:
        return {}
    p_toe = clip.poses.p_world_joint[:, toes]
    speed = _speed(p_toe, clip.fps)
    on_floor = p_toe[..., UP] - clip.ground < contact_heights(clip.skeleton, toes, TOE_HEIGHT).to(p_toe)
    stays = on_floor[:-1] & on_floor[1:]
    found = {}
    if on_floor[:-1].any():
        found["skate_from_height"] = 100 * float(speed[on_floor[:-1]].mean())
    if stays.any():
        found["skate_ratio"] = float((speed[stays] > SKATE_SPEED * feet.scale).double().mean())
    return found


def _consistency(clip: Clip, feet: Feet) -> float | None:
    if not feet.stored or len(clip.motion) < 2:
        return None
    columns, _ = contact_joints(clip.skeleton)
    measured = contacts_from_positions(clip.skeleton, clip.poses.p_world_joint, clip.fps, ground=clip.ground)
    return float((measured == feet.contacts)[:-1, columns].double().mean())


def _penetration(clip: Clip, feet: Feet) -> dict[str, float]:
    lowest = torch.cat([p_sole[..., UP] for p_sole in feet.soles.values()], dim=-1).amin(dim=-1)
    depth = (clip.ground - lowest).clamp_min(0)
    sunk = depth > SUNK * feet.scale
    mean = float(depth[sunk].mean()) if sunk.any() else 0.0
    return {"penetration_mean": 1000 * mean, "penetration_max": 1000 * float(depth.max()), "penetration_share": float(sunk.double().mean())}


def _float(clip: Clip, feet: Feet) -> dict[str, float]:
    heights = [_standing_heights(p_sole[..., UP], feet.side_contacts(side)) for side, p_sole in feet.soles.items()]
    above = (torch.cat(heights) - clip.ground).clamp_min(0)
    return {"float_mean": 1000 * float(above.mean()), "float_max": 1000 * float(above.max())} if len(above) else {}


def _standing_heights(sole_y: Float[Tensor, "F N"], standing: Bool[Tensor, " F"]) -> Float[Tensor, " S"]:
    return sole_y.amin(dim=-1)[standing]


def _speed(p: Float[Tensor, "F C 3"], fps: float) -> Float[Tensor, "G C"]:
    return p.diff(dim=0).norm(dim=-1) * fps
