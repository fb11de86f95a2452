"""What no body can do: be somewhere else too soon, turn too fast, or reach further than its limbs are long."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.kinematics.contacts import body_scale
from bunraku.kinematics.skeleton import Skeleton
from bunraku.timeline.claims import ABOUT, HEADING, SMOOTH_ROOT, Claim
from bunraku.timeline.conflicts import wrapped
from bunraku.timeline.constraints import EFFECTORS

ROOT_SPEED = 12.0  # [m/s] of a person: the fastest sprinter
EFFECTOR_SPEED = 40.0  # [m/s] the hand of a pitcher
TURN_SPEED = math.radians(720)  # [rad/s]
STRETCH = 0.02  # [m] by which targets on the very end of a limb may miss it
# [m] how far a person's hips may be from what is known of them: sway around the smoothed root, and poses that say it roughly
SLACK = {"hips": 0.0, SMOOTH_ROOT: 0.25, ABOUT: 0.5}


def require_reachable(claims: Sequence[Claim], skeleton: Skeleton, fps: float) -> None:
    """Raises at the first claim that cannot be met together with the others."""
    size = body_scale(skeleton) if skeleton.has("hips") else 1.0
    places = {thing: track for thing in (*SLACK, *EFFECTORS) if (track := _track(claims, "place", thing)) is not None}
    for thing, track in places.items():
        if thing in SLACK:
            _check_speed(track.flat(), f"{'hips' if thing == 'hips' else 'body'}", ROOT_SPEED * size, fps, 2 * SLACK[ABOUT] * size * (thing == ABOUT))
        else:
            _check_speed(track, thing.replace("_", " "), EFFECTOR_SPEED * size, fps, 0.0)
    roots = {thing: track for thing, track in places.items() if thing in SLACK}
    for (a, root_a), (b, root_b) in combinations(roots.items(), 2):
        _check_together(root_a.flat(), root_b.flat(), ROOT_SPEED * size, fps, (SLACK[a] + SLACK[b]) * size)
    # hips of a cartwheel may flip their heading, so only headings that were asked for as such must turn like a body
    headings = _track([claim for claim in claims if claim.explicit], "angle", HEADING)
    if headings is not None:
        _check_turning(headings, fps)
    for effector in EFFECTORS:
        target = _track([claim for claim in claims if claim.explicit], "place", effector)
        if target is not None:
            for thing, root in roots.items():
                _check_reach(target, effector, root, SLACK[thing] * size + STRETCH * size, skeleton)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Track:
    """What all constraints together say of one thing, in the order of time; of one frame, what the first in the list says."""

    frames: Int[Tensor, " K"]
    values: Float[Tensor, "K D"]
    sources: list[str]

    def flat(self) -> _Track:
        """On the ground: x and z."""
        return replace(self, values=self.values[:, [0, 2]] if self.values.shape[-1] == 3 else self.values)

    def who(self, row: int, other: int) -> str:
        a, b = self.sources[row], self.sources[other]
        return a if a == b else f"{a} and {b}"


def _track(claims: Sequence[Claim], kind: str, thing: str) -> _Track | None:
    chosen = [claim for claim in claims if (claim.kind, claim.thing) == (kind, thing)]
    if not chosen:
        return None
    frames = torch.cat([claim.frames for claim in chosen])
    owner = torch.cat([torch.full((len(claim.frames),), i) for i, claim in enumerate(chosen)])
    order = torch.argsort(frames, stable=True)
    order = order[torch.cat([torch.ones(1, dtype=torch.bool), frames[order][1:] != frames[order][:-1]])]
    values = torch.cat([claim.values[:, 0] for claim in chosen])
    return _Track(frames=frames[order], values=values[order], sources=[chosen[i].source for i in owner[order].tolist()])


def _check_speed(track: _Track, named: str, limit: float, fps: float, slack: float) -> None:
    way = ((track.values[1:] - track.values[:-1]).norm(dim=-1) - slack).clamp_min(0)
    speed = way * fps / (track.frames[1:] - track.frames[:-1])
    if len(speed) and float(speed.max()) > limit:
        row = int(speed.argmax())
        when = f"between frames {int(track.frames[row])} and {int(track.frames[row + 1])}"
        raise BadValue(
            f"{track.who(row, row + 1)} would move the {named} at {float(speed[row]):.1f} m/s {when}; at most {limit:g} m/s can be reached. Leave more time."
        )


def _check_together(a: _Track, b: _Track, limit: float, fps: float, slack: float) -> None:
    """Two ways to say where the body is: at every frame of one, against the nearest frame of the other in time."""
    after = torch.searchsorted(b.frames, a.frames).clamp_max(len(b.frames) - 1)
    for nearest in (after, (after - 1).clamp_min(0)):
        gap = (a.frames - b.frames[nearest]).abs()
        excess = (a.values - b.values[nearest]).norm(dim=-1) - slack - limit * gap / fps
        if float(excess.max()) > 0:
            row = int(excess.argmax())
            other = int(nearest[row])
            far = f"{float((a.values[row] - b.values[other]).norm()):.2f} m apart"
            who = f"{a.sources[row]} (frame {int(a.frames[row])}) and {b.sources[other]} (frame {int(b.frames[other])})"
            raise BadValue(f"{who} have the body {far}, which it cannot cover in {int(gap[row]) / fps:.2f} s. Move one of them, or leave more time.")


def _check_turning(track: _Track, fps: float) -> None:
    speed = wrapped(track.values[1:, 0] - track.values[:-1, 0]).abs() * fps / (track.frames[1:] - track.frames[:-1])
    if len(speed) and float(speed.max()) > TURN_SPEED:
        row = int(speed.argmax())
        turning = f"{track.who(row, row + 1)} would turn the body at {math.degrees(float(speed[row])):.0f}°/s"
        when = f"between frames {int(track.frames[row])} and {int(track.frames[row + 1])}"
        raise BadValue(f"{turning} {when}; at most {math.degrees(TURN_SPEED):.0f}°/s can be reached. Leave more time.")


def _check_reach(target: _Track, effector: str, root: _Track, slack: float, skeleton: Skeleton) -> None:
    """The effector against where the hips are known to be, in the frames of both."""
    rows = torch.isin(target.frames, root.frames).nonzero()[:, 0]
    if len(rows) == 0:
        return
    roots = torch.searchsorted(root.frames, target.frames[rows])
    if root.values.shape[-1] == 2:
        target = target.flat()
    reach = reach_from_hips(skeleton, effector) + slack
    away = (target.values[rows] - root.values[roots]).norm(dim=-1)
    if float(away.max()) > reach:
        worst = int(away.argmax())
        row = int(rows[worst])
        asks = f"{target.sources[row]} asks for the {effector.replace('_', ' ')}"
        far = f"{float(away[worst]):.2f} m from where {root.sources[int(roots[worst])]} has the body at frame {int(target.frames[row])}"
        raise BadValue(f"{asks} {far}; '{skeleton.name}' reaches {reach:.2f} m. Move one of them.")


def reach_from_hips(skeleton: Skeleton, effector: str) -> float:
    """All bones from the hips to an effector in a line [m]: further than it can get, never less."""
    hips, joint = skeleton.role("hips") if skeleton.has("hips") else 0, skeleton.role(effector)
    chain = skeleton.path(hips, joint) or skeleton.path(0, joint)
    return float(skeleton.offsets[chain[1:]].norm(dim=-1).sum())
