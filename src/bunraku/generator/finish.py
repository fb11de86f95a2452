"""From features to a finished clip: decoded, cleaned up against its constraints and what borders on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from bunraku.generator.missed import Numbering
from bunraku.generator.surroundings import Surroundings
from bunraku.kinematics.edit import join, place
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.heading import heading_of
from bunraku.kinematics.motion import Motion
from bunraku.timeline import shift_constraints
from bunraku.timeline.constraints import Constraint, PoseKey

CONTEXT = 5  # frames of bordering motion that clean-up sees and must not move, so that nothing jumps where they meet


@dataclass(frozen=True, kw_only=True, eq=False)
class Rough:
    """A clip as the model drew it, and what it must agree with."""

    motion: Motion  # the new frames alone
    constraints: Sequence[Constraint]
    around: Surroundings | None = None
    loop: bool = False


def clean(clips: Sequence[Rough], on_progress: Callable[[float], None] | None = None) -> list[Motion]:
    """The new frames of every clip, with constraints met and feet standing still."""
    from bunraku.generator.cleanup import cleanup_all

    opened = [_with_context(clip) for clip in clips]
    numbering = [
        Numbering(frame=_kept_before(clip) - own.start, constraint=len(asked) - len(clip.constraints))
        for clip, (_, asked, own) in zip(clips, opened, strict=True)
    ]
    cleaned = cleanup_all([motion for motion, _, _ in opened], [asked for _, asked, _ in opened], numbering=numbering, on_progress=on_progress)
    done = [motion[own] for motion, (_, _, own) in zip(cleaned, opened, strict=True)]
    loops = [number for number, clip in enumerate(clips) if clip.loop and len(clip.motion) > 1]
    if loops:  # feet that were nailed at one end only: once more, with the ends held to each other
        ends = [[*_closed(done[number]), *clips[number].constraints] for number in loops]
        open_ones = [replace(done[number], provenance=clips[number].motion.provenance) for number in loops]  # what was noted of them is said again
        numbering = [Numbering(frame=_kept_before(clips[number]), constraint=2) for number in loops]
        for number, motion in zip(loops, cleanup_all(open_ones, ends, numbering=numbering), strict=True):
            done[number] = motion
    return done


def _kept_before(clip: Rough) -> int:
    """How many frames of the result come before the clip's own."""
    return 0 if clip.around is None or clip.around.kept_before is None else len(clip.around.kept_before)


def _with_context(clip: Rough) -> tuple[Motion, list[Constraint], slice]:
    """The clip between a few frames of what borders on it, its constraints with those frames held, and which frames are its own."""
    around = clip.around
    before = None if around is None or around.before is None else around.before[-CONTEXT:]
    after = None if around is None or around.after is None else around.after[:CONTEXT]
    lead, frames = 0 if before is None else len(before), len(clip.motion)
    held: list[Constraint] = []
    for part, start in ((before, 0), (after, lead + frames)):
        if part is not None:
            held.append(PoseKey(frames=torch.arange(start, start + len(part)), poses=part))
    parts = [part for part in (before, clip.motion, after) if part is not None]
    whole = join(parts) if len(parts) > 1 else clip.motion
    return whole, [*held, *shift_constraints(clip.constraints, lead)], slice(lead, lead + frames)


def _closed(motion: Motion) -> list[Constraint]:
    """The first frame held, and the last held to it, moved and turned to where the clip ends."""
    p = forward_kinematics(motion).p_world_joint
    yaw = [float(heading_of(motion.skeleton, p[frame])) for frame in (0, -1)]
    (x, _, z), (to_x, _, to_z) = p[0, 0].tolist(), p[-1, 0].tolist()
    first = motion[:1]
    last = place(place(first, (-x, -z), 0.0), (to_x, to_z), yaw[1] - yaw[0])
    end = len(motion) - 1
    return [PoseKey(frames=torch.tensor([0]), poses=first), PoseKey(frames=torch.tensor([end]), poses=last)]
