"""Where the feet of a retargeted body go: the source's steps at the target's scale, each planted foot nailed to one spot.

A foot path is scaled by the length of thigh and shin, so that every leg bends as the source's does, and widened where the hips are
broader. Every stance (a foot or its toe in contact) gets one fixed spot; between stances the correction that this needs fades from
one to the next, so that swings stay smooth.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.kinematics.contacts import body_scale, rest_ground
from bunraku.kinematics.forward import WorldPoses, rest_poses
from bunraku.kinematics.neutral import facing_yaw, limb_start
from bunraku.kinematics.skeleton import CONTACT_ROLES, SIDES, Skeleton
from bunraku.math.curves import smooth_step

MAX_DIP = 0.10  # [m, person-sized]
MAX_FLOAT = 0.03  # [m, person-sized]
MAX_DRIFT = 0.06  # [m, person-sized] a "stance" that slides further than this is a slide, and stays one
BRIDGE_SECONDS = 0.1  # a contact that flickers off for less than this counts as held


@dataclass(frozen=True, kw_only=True)
class Legs:
    """What matters of a skeleton's legs, from its rest pose [m]."""

    length: float  # hip joint to ankle, leg straight
    width: float  # between the lines in which the legs hang
    foot_height: float  # ankle above the sole
    toe_height: float  # toe joint above the sole
    foot_length: float  # ankle to toe joint, along the ground; 0 without toes

    @property
    def standing(self) -> float:
        """Hip joint to sole, leg straight [m]."""
        return self.length + self.foot_height


@dataclass(frozen=True, kw_only=True, eq=False)
class FootPlan:
    """Wished positions of one foot; `planted` says in which frames they must hold."""

    p_world_foot: Float[Tensor, "F 3"]
    p_world_toe: Float[Tensor, "F 3"] | None
    foot_planted: Bool[Tensor, " F"]
    toe_planted: Bool[Tensor, " F"]


def measure_legs(skeleton: Skeleton) -> Legs:
    p = rest_poses(skeleton).p_world_joint
    ground = rest_ground(skeleton)

    def bone(upper: str, lower: str) -> float:
        return _mean(float((p[skeleton.role(f"{s}_{upper}")] - p[skeleton.role(f"{s}_{lower}")]).norm()) for s in SIDES)

    def height(part: str) -> float:
        return _mean(float(p[skeleton.role(f"{s}_{part}"), 1]) - ground for s in SIDES)

    toes = skeleton.has("left_toe", "right_toe")
    along = [p[skeleton.role(f"{s}_toe")] - p[skeleton.role(f"{s}_foot")] for s in SIDES] if toes else []
    return Legs(
        length=bone("hip", "knee") + bone("knee", "foot"),
        width=float((p[limb_start(skeleton, "left_hip", "left_knee")] - p[limb_start(skeleton, "right_hip", "right_knee")]).norm()),
        foot_height=height("foot"),
        toe_height=height("toe") if toes else 0.0,
        foot_length=_mean(float(torch.hypot(v[0], v[2])) for v in along) if toes else 0.0,
    )


def plan_foot(side: str, source: Skeleton, poses: WorldPoses, contacts: Bool[Tensor, "F 4"], fps: float, source_legs: Legs, legs: Legs) -> FootPlan:
    """The steps of one foot for a body with `legs`, from the source's world poses and contacts."""
    scale = legs.length / source_legs.length
    p_foot = _scaled_path(side, "foot", source, poses, source_legs.foot_height, legs.foot_height, source_legs, legs)
    on_foot = contacts[:, CONTACT_ROLES.index(f"{side}_foot")]
    on_toe = contacts[:, CONTACT_ROLES.index(f"{side}_toe")]
    if not (source.has(f"{side}_toe") and legs.foot_length):
        planted = _bridge(on_foot | on_toe, fps)
        held = _held(side, "foot", source, poses, _flat_or_whole(_spans(planted), _bridge(on_foot, fps)))
        p_foot = _nail(p_foot, [(span, _on_sole(_spot(p_foot, span, on_foot), legs.foot_height, scale)) for span in held])
        return FootPlan(
            p_world_foot=_not_through_ground(p_foot, legs.foot_height, scale), p_world_toe=None, foot_planted=planted, toe_planted=torch.zeros_like(planted)
        )
    p_toe = _scaled_path(side, "toe", source, poses, source_legs.toe_height, legs.toe_height, source_legs, legs)
    on_foot, on_toe = _bridge(on_foot, fps), _bridge(on_toe, fps)
    foot_spots, toe_spots = [], []
    for span in _spans(on_foot | on_toe):
        foot_spot, toe_spot = _flat_spots(p_foot, p_toe, span, on_foot & on_toe, legs.foot_length)
        foot_held, toe_held = (_held(side, part, source, poses, _spans(on, span)) for part, on in (("foot", on_foot), ("toe", on_toe)))
        foot_spots += [(stance, _on_sole(foot_spot, legs.foot_height, scale)) for stance in foot_held]
        toe_spots += [(stance, _on_sole(toe_spot, legs.toe_height, scale)) for stance in toe_held]
    return FootPlan(
        p_world_foot=_not_through_ground(_nail(p_foot, foot_spots), legs.foot_height, scale),
        p_world_toe=_not_through_ground(_nail(p_toe, toe_spots), legs.toe_height, scale),
        foot_planted=on_foot,
        toe_planted=on_toe,
    )


def _scaled_path(side: str, part: str, source: Skeleton, poses: WorldPoses, height_source: float, height: float, source_legs: Legs, legs: Legs) -> Tensor:
    """The path of an ankle or toe at the target's scale: soles that touch keep touching, hips that are wider stand wider.

    Hips that are narrower do not stand narrower: flesh has its width wherever the joints lie in it, and feet that pass would collide.
    """
    scale = legs.length / source_legs.length
    p = poses.p_world_joint[:, source.role(f"{side}_{part}")] * scale
    yaw = facing_yaw(source, poses.p_world_joint)
    wider = max(legs.width - scale * source_legs.width, 0.0) / 2 * (1 if side == "left" else -1)
    lateral = torch.stack([torch.cos(yaw), torch.zeros_like(yaw), -torch.sin(yaw)], dim=-1)
    p = p + wider * lateral + torch.tensor([0.0, height - scale * height_source, 0.0]).to(p)
    return _not_through_ground(p, height, scale)


def _not_through_ground(p: Float[Tensor, "F 3"], height: float, scale: float) -> Float[Tensor, "F 3"]:
    """A joint that dips a little below where it stands on y = 0 is put there; one far below has another ground, and is left.

    What is deeper than MAX_DIP is put higher by less and less, so that a foot on its way down, off a platform, does not jump.
    """
    depth, dip = (height - p[:, 1]).clamp_min(0), MAX_DIP * scale
    raised = torch.minimum(depth, (2 * dip - depth).clamp_min(0))
    return p + raised[:, None] * torch.tensor([0.0, 1.0, 0.0]).to(p)


def _flat_spots(p_foot: Tensor, p_toe: Tensor, span: range, flat: Tensor, foot_length: float) -> tuple[Tensor, Tensor]:
    """Where ankle and toe stand during a stance: centred on the source's foot, but as far apart as the target's foot is long.

    A foot that never lies flat in a stance (a clip that begins on tiptoe) says nothing about its length.
    """
    foot, toe = _spot(p_foot, span, flat), _spot(p_toe, span, flat)
    if not flat[span.start : span.stop].any():
        return foot, toe
    along = (toe - foot) * torch.tensor([1.0, 0.0, 1.0]).to(foot)
    excess = (foot_length - along.norm()) * torch.nn.functional.normalize(along, dim=0) / 2
    return foot - excess, toe + excess


def _flat_or_whole(spans: list[range], flat: Bool[Tensor, " F"]) -> list[range]:
    """Of each stance the part in which the foot lies flat, or all of it where it never does: an ankle above raised heels moves without sliding."""
    return [part for span in spans for part in _spans(flat, span) or [span]]


def _spot(p: Tensor, span: range, preferred: Tensor) -> Float[Tensor, "3"]:
    """The median place during a span, over its preferred frames if there are any."""
    inside = torch.zeros(len(p), dtype=torch.bool)
    inside[span.start : span.stop] = True
    chosen = inside & preferred
    return p[chosen if chosen.any() else inside].median(dim=0).values


def _on_sole(spot: Float[Tensor, "3"], height: float, scale: float) -> Float[Tensor, "3"]:
    """A spot so near its standing height on y = 0 that it must mean it."""
    return torch.stack([spot[0], torch.where((spot[1] - height).abs() < MAX_FLOAT * scale, height, spot[1]), spot[2]])


def _held(side: str, part: str, source: Skeleton, poses: WorldPoses, spans: list[range]) -> list[range]:
    """The stances in which the source's own joint stays where it is. Asked of the source: the target's wider steps turn with its hips."""
    p = poses.p_world_joint[:, source.role(f"{side}_{part}")]
    furthest = MAX_DRIFT * body_scale(source)
    stances = [(span, p[span.start : span.stop]) for span in spans]
    return [span for span, stood in stances if (stood - stood.median(dim=0).values).norm(dim=-1).max() <= furthest]


def _nail(p: Float[Tensor, "F 3"], spots: list[tuple[range, Tensor]]) -> Float[Tensor, "F 3"]:
    """The path moved so that it rests on its spot during each span; corrections fade into each other in between."""
    if not spots:
        return p
    out = p.clone()
    for span, spot in spots:
        out[span.start : span.stop] = spot
    first, last = spots[0], spots[-1]
    out[: first[0].start] += first[1] - p[first[0].start]
    out[last[0].stop :] += last[1] - p[last[0].stop - 1]
    for (a, spot_a), (b, spot_b) in pairwise(spots):
        gap = b.start - a.stop
        if gap > 0:
            t = smooth_step(torch.arange(1, gap + 1, dtype=p.dtype) / (gap + 1))[:, None]
            out[a.stop : b.start] += (spot_a - p[a.stop - 1]) * (1 - t) + (spot_b - p[b.start]) * t
    return out


def _bridge(mask: Bool[Tensor, " F"], fps: float) -> Bool[Tensor, " F"]:
    """Contacts with short gaps filled, and one frame longer: to be slow at a frame is to be in the same place at the next."""
    out = mask.clone()
    for a, b in pairwise(_spans(mask)):
        if b.start - a.stop <= BRIDGE_SECONDS * fps:
            out[a.stop : b.start] = True
    return torch.cat([out[:1], out[1:] | out[:-1]])


def _spans(mask: Bool[Tensor, " F"], inside: range | None = None) -> list[range]:
    start, stop = (0, len(mask)) if inside is None else (inside.start, inside.stop)
    steps = torch.diff(mask[start:stop].to(torch.int8), prepend=torch.zeros(1, dtype=torch.int8), append=torch.zeros(1, dtype=torch.int8))
    starts, stops = (steps == 1).nonzero()[:, 0].tolist(), (steps == -1).nonzero()[:, 0].tolist()
    return [range(start + a, start + b) for a, b in zip(starts, stops, strict=True)]


def _mean(values: object) -> float:
    values = list(values)  # type: ignore[call-overload]
    return sum(values) / len(values)
