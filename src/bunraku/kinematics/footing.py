"""Feet that stand are nailed down: every unbroken stance of a foot gets one place on the ground, whatever the ground's shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.kinematics.contacts import body_scale, rest_ground
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.skeleton import CONTACT_ROLES, SIDES, Skeleton
from bunraku.kinematics.spread import spans, spread
from bunraku.math.curves import smooth_step

Ground = Callable[[Tensor, Tensor], Tensor]  # height y of the ground [m] at world x, z
Kept = tuple[Bool[Tensor, " F"], Float[Tensor, "F 3"]]  # in which frames a joint's place is given, and where it is

MAX_FLOAT = 0.08  # [m, person-sized] a foot that "stands" higher than this over the ground stands on something else
MAX_SLIDE = 0.4  # [m, person-sized] a "stance" that leads further than this from its middle is a slide, and stays one
BRIDGE_SECONDS = 0.1  # a contact that flickers off for less than this counts as held
FADE = 0.3  # [s] of what given places change of a foot's path


@dataclass(frozen=True, kw_only=True, eq=False)
class Nail:
    """Where one joint of a foot goes: to its spots while it stands, in between as it did, led smoothly from one to the next."""

    joint: int
    side: str
    p_world: Float[Tensor, "F 3"]  # [m]
    planted: Bool[Tensor, " F"]
    slides: tuple[range, ...] = ()  # contacts that were not nailed, for the foot goes too far


def height_over(ground: Ground, p_world: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch"]:
    return p_world[..., 1] - ground(p_world[..., 0], p_world[..., 2]).to(p_world)


def nail_feet(
    skeleton: Skeleton,
    p_world_joint: Float[Tensor, "F J 3"],
    contacts: Bool[Tensor, "F 4"],
    fps: float,
    ground: Ground,
    kept: Mapping[int, Kept],
    planned: Bool[Tensor, " F"],
) -> list[Nail]:
    """Nails for the feet of a clip. A stance that holds a frame in which the foot's place is given (`kept`) stands there;
    contacts in `planned` frames were asked for, and stand on the ground however far away it is."""
    nails = []
    for side in SIDES:
        roles = [role for role in (f"{side}_foot", f"{side}_toe") if skeleton.has(role)]
        joints = [skeleton.role(role) for role in roles]
        on = [_held(contacts[:, CONTACT_ROLES.index(role)], planned, fps) for role in roles]
        paths = [_through_kept(p_world_joint[:, j], kept.get(j), fps) for j in joints]
        foot = _Foot(skeleton, joints, ground)
        spots_at = [path.clone() for path in paths]
        slides = []
        for span in spans(torch.stack(on, dim=-1).any(dim=-1)) if joints else []:
            inside = torch.zeros(len(contacts), dtype=torch.bool)
            inside[span.start : span.stop] = True
            stands = [o & inside for o in on]
            given = [_given(kept.get(j), s) for j, s in zip(joints, stands, strict=True)]
            spots = foot.place(paths, stands, given, force=bool((planned & inside).any()))
            ways = [_along(points, spot, len(contacts)) for points, spot in zip(given, spots, strict=True)]
            nailed = max(foot.drift(path[s] - way[s]) for path, way, s in zip(paths, ways, stands, strict=True)) <= 1
            slides += [] if nailed else [span]
            for k, way in enumerate(ways):
                on[k] = on[k] if nailed else on[k] & ~inside
                spots_at[k] = torch.where((stands[k] & nailed)[:, None], way, spots_at[k])
        for k, joint in enumerate(joints):
            p_world = paths[k] + spread(spots_at[k] - paths[k], on[k], FADE * fps)
            p_world = torch.where(on[k][:, None], p_world, foot.not_below(p_world, paths[k], k))
            nails.append(Nail(joint=joint, side=side, p_world=p_world, planted=on[k], slides=tuple(slides)))
    return nails


def within_reach(p_world: Float[Tensor, "F 3"], p_centre: Float[Tensor, "F 3"], reach: Float[Tensor, " F"], most_lift: float) -> Float[Tensor, "F 3"]:
    """Places further than `reach` from a centre, brought to that distance: straight towards it, but rising no more than about
    `most_lift` [m] as long as moving along the ground will do. Feet slide, they do not fly."""
    away = p_world - p_centre
    straight = (reach / away.norm(dim=-1).clamp_min(1e-9)).clamp_max(1)
    rise = -away[:, 1] * (1 - straight)
    drop = (away[:, 1] + most_lift * torch.tanh(rise / most_lift)).clamp(-reach, reach)
    level = away * torch.tensor([1.0, 0.0, 1.0]).to(away)
    along = ((reach**2 - drop**2).clamp_min(0).sqrt() / level.norm(dim=-1).clamp_min(1e-9)).clamp_max(1)
    near = level * along[:, None] + drop[:, None] * torch.tensor([0.0, 1.0, 0.0]).to(away)
    return torch.where((straight < 1)[:, None], p_centre + near, p_world)


class _Foot:
    """One foot at rest: how high its joints stand, how far ankle and toe are apart."""

    def __init__(self, skeleton: Skeleton, joints: Sequence[int], ground: Ground) -> None:
        p_rest = rest_poses(skeleton).p_world_joint
        self.heights = [float(p_rest[j, 1]) - rest_ground(skeleton) for j in joints]
        self.length = float((p_rest[joints[0]] - p_rest[joints[-1]]).norm()) if joints else 0.0
        self.max_float, self.max_slide = MAX_FLOAT * body_scale(skeleton), MAX_SLIDE * body_scale(skeleton)
        self.ground = ground

    def place(self, paths: list[Tensor], stands: list[Tensor], given: list[list[tuple[int, Tensor]]], *, force: bool) -> list[Tensor]:
        """One spot for each joint: the middle of where it is while the whole foot stands, or else while it stands itself."""
        flat = torch.stack(stands).all(dim=0)
        inside = torch.stack(stands).any(dim=0)
        spots = []
        for path, own in zip(paths, stands, strict=True):
            chosen = flat if bool(flat.any()) else own if bool(own.any()) else inside
            spots.append(path[chosen].median(dim=0).values)
        moved = [points[0][1] - spot for points, spot in zip(given, spots, strict=True) if points]
        if moved and not all(given):  # a foot is one piece: where one end is given, the other goes along
            along = moved[0] * torch.tensor([1.0, 0.0, 1.0]).to(moved[0])
            spots = [spot if points else spot + along for spot, points in zip(spots, given, strict=True)]
        spots = [points[0][1] if points else self._grounded(spot, k, force) for k, (spot, points) in enumerate(zip(spots, given, strict=True))]
        if len(spots) == 2 and bool(flat.any()):
            spots = self._as_long_as_it_is(spots, [bool(points) for points in given], force)
        return spots

    def drift(self, away: Float[Tensor, "S 3"]) -> float:
        """How far a foot goes from its spot, against how far it may."""
        return float(away[:, [0, 2]].norm(dim=-1).max()) / self.max_slide if len(away) else 0.0

    def not_below(self, p_world: Float[Tensor, "F 3"], before: Float[Tensor, "F 3"], k: int) -> Float[Tensor, "F 3"]:
        """A path lifted where it was pushed into the ground: not above where it stands, nor above where it was before."""
        lowest = height_over(self.ground, before).clamp_max(self.heights[k])
        lift = (lowest - height_over(self.ground, p_world)).clamp_min(0)
        return p_world + lift[:, None] * torch.tensor([0.0, 1.0, 0.0]).to(p_world)

    def _grounded(self, spot: Float[Tensor, "3"], k: int, force: bool) -> Float[Tensor, "3"]:
        above = float(height_over(self.ground, spot)) - self.heights[k]
        return spot if above > self.max_float and not force else spot - torch.tensor([0.0, above, 0.0]).to(spot)

    def _as_long_as_it_is(self, spots: list[Tensor], fixed: list[bool], force: bool) -> list[Float[Tensor, "3"]]:
        """Ankle and toe set as far apart as they are on the body, on ground that may slope between them. Each gives way by half,
        or the one that is free by all."""
        shares = [0.0 if own else 1.0 if other else 0.5 for own, other in zip(fixed, fixed[::-1], strict=True)]
        for _ in range(4):
            way = spots[1] - spots[0]
            level = way * torch.tensor([1.0, 0.0, 1.0]).to(way)
            wished = max(self.length**2 - float(way[1]) ** 2, (0.1 * self.length) ** 2) ** 0.5
            excess = (wished - level.norm()) * torch.nn.functional.normalize(level, dim=0)
            moved = [spots[0] - shares[0] * excess, spots[1] + shares[1] * excess]
            spots = [p if fixed[k] else self._grounded(p, k, force) for k, p in enumerate(moved)]
        return spots


def _held(contact: Bool[Tensor, " F"], planned: Bool[Tensor, " F"], fps: float) -> Bool[Tensor, " F"]:
    """Contacts with short gaps filled, and one frame longer: to be slow at a frame is to be in the same place at the next."""
    out = contact.clone()
    for a, b in pairwise(spans(contact)):
        if b.start - a.stop <= BRIDGE_SECONDS * fps and not bool(planned[a.stop : b.start].any()):
            out[a.stop : b.start] = True
    return torch.cat([out[:1], out[1:] | out[:-1]])


def _through_kept(path: Float[Tensor, "F 3"], kept: Kept | None, fps: float) -> Float[Tensor, "F 3"]:
    return path if kept is None else path + spread(kept[1] - path, kept[0], FADE * fps)


def _given(kept: Kept | None, stands: Bool[Tensor, " F"]) -> list[tuple[int, Tensor]]:
    return [] if kept is None else [(f, kept[1][f]) for f in (kept[0] & stands).nonzero()[:, 0].tolist()]


def _along(given: list[tuple[int, Tensor]], spot: Float[Tensor, "3"], frames: int) -> Float[Tensor, "F 3"]:
    """The spot; or, where several places are given in one stance, smoothly from one to the next."""
    path = spot.expand(frames, 3).clone()
    for (a, p_a), (b, p_b) in pairwise(given):
        t = smooth_step(torch.arange(b - a, dtype=spot.dtype) / (b - a))[:, None]
        path[a:b] = p_a + (p_b - p_a) * t
    if given:
        path[given[-1][0] :] = given[-1][1]
    return path
