"""Two clips as one: the second is set down where the first ends, and something leads over (kimodo §3).

The transition between them is made by a plain blend, or by whatever redraws frames of a motion: a generator's `regenerate`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from bunraku.errors import BadValue, SkeletonMismatch
from bunraku.kinematics.edit import join, place
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.heading import heading_of
from bunraku.kinematics.motion import Motion
from bunraku.math.curves import smooth_step
from bunraku.math.rotations import slerp

GAP = 0.5  # [s] between the clips
MEMORY = 5  # frames at the end of the first clip from which its speed is taken

Redraw = Callable[[Motion, range], Motion]  # a motion and the frames of it that should be made anew

_WHO = "person|man|woman|human|humanoid|someone|somebody|figure|character|he|she"
_SUBJECT = re.compile(rf"^\s*(?:a|an|the|one|this)?\s*(?:{_WHO})\s+(?:is\s+(?=\w+ing\b))?", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, eq=False)
class Stitched:
    """A motion made of two, and its caption."""

    motion: Motion
    text: str
    first: range
    gap: range  # the frames that neither clip has
    second: range


def stitch(first: Motion, second: Motion, texts: tuple[str, str], *, gap: float = GAP, transition: Redraw | None = None) -> Stitched:
    """The first clip, `gap` seconds of transition, the second clip turned and moved to go on from there.

    `transition` is given the whole motion with a blend in the gap, and the gap; it may change those frames only, which is checked.
    """
    frames = round(gap * first.fps)
    if frames < 1 or first.fps != second.fps:
        raise BadValue(f"clips at {first.fps:g} and {second.fps:g} fps with {gap:g} s between them; one frame rate and at least one frame are needed.")
    if first.skeleton.joints != second.skeleton.joints:
        raise SkeletonMismatch(f"'{first.skeleton.name}' and '{second.skeleton.name}' cannot be stitched. Use retarget(motion, skeleton) first.")
    second = _set_down(first, second, frames)
    blended = join([first, _blend(first, second, frames), second])
    between = range(len(first), len(first) + frames)
    motion = blended if transition is None else transition(blended, between)
    if len(motion) != len(blended) or not _kept(blended, motion, between):
        raise BadValue(f"the transition changed more than the frames {between.start} to {between.stop} that it was asked for; it must keep all others.")
    return Stitched(
        motion=replace(motion, contacts=None if motion.contacts is None or first.contacts is None else motion.contacts),
        text=joined_text(*texts),
        first=range(len(first)),
        gap=between,
        second=range(between.stop, len(motion)),
    )


def joined_text(first: str, second: str) -> str:
    """ "A person walks." and "the man sits down" → "A person walks, then sits down." """
    first, second = first.strip().rstrip(". "), second.strip().rstrip(". ")
    if not first or not second:
        return f"{first or second}."
    told = _SUBJECT.sub("", second)
    both_continuous = bool(re.match(r"\w+ing\b", told)) == bool(re.match(r"\w+ing\b", _SUBJECT.sub("", first)))
    if told != second and _SUBJECT.match(first) and both_continuous:
        return f"{first[:1].upper()}{first[1:]}, then {told[:1].lower()}{told[1:]}."
    return f"{first[:1].upper()}{first[1:]}, then {second[:1].lower()}{second[1:]}."


def _set_down(first: Motion, second: Motion, frames: int) -> Motion:
    """The second clip facing as the first ends, as far ahead as the first was going."""
    p_end = forward_kinematics(first[-1:]).p_world_joint
    p_start = forward_kinematics(second[:1]).p_world_joint
    turn = float(heading_of(first.skeleton, p_end)[0] - heading_of(second.skeleton, p_start)[0])
    turned = place(second, (0.0, 0.0), turn)
    memory = min(MEMORY, len(first) - 1)
    speed = (first.root_position[-1] - first.root_position[-1 - memory]) / max(memory, 1)
    later = turned[: memory + 1]
    speed_after = (later.root_position[-1] - later.root_position[0]) / max(len(later) - 1, 1)
    ahead = first.root_position[-1] + (speed + speed_after) / 2 * (frames + 1)
    shift = ahead - turned.root_position[0]
    return place(turned, (float(shift[0]), float(shift[2])), 0.0)


def _blend(first: Motion, second: Motion, frames: int) -> Motion:
    """From the last frame of the first clip to the first of the second."""
    t = smooth_step(torch.arange(1, frames + 1) / (frames + 1)).to(first.quats)
    a, b = first[-1:], second[:1]
    return replace(
        first[-1:],
        root_position=a.root_position + (b.root_position - a.root_position) * t[:, None],
        quats=slerp(a.quats.expand(frames, -1, -1), b.quats.expand(frames, -1, -1), t[:, None].expand(-1, len(first.skeleton))),
        contacts=None if a.contacts is None or b.contacts is None else (a.contacts & b.contacts).expand(frames, -1),
    )


def _kept(before: Motion, after: Motion, between: range) -> bool:
    rest = torch.ones(len(before), dtype=torch.bool)
    rest[between.start : between.stop] = False
    near = [torch.allclose(getattr(before, name)[rest], getattr(after, name)[rest], atol=1e-3) for name in ("root_position",)]
    turned = (before.quats[rest] * after.quats[rest]).sum(-1).abs() > 1 - 1e-5
    return all(near) and bool(turned.all())
