"""Where captured motion breaks: joints that flip for a few frames are led across, clips that jump are cut there.

A body part does not turn by more than 60° within 1/30 s and by as little just before and after: that is a marker taken for another,
or a solver that lost a limb. Real throws and spins come near such speeds, but they get there over several frames.

    spike    there and back within a third of a second (feet, toes, hands and heads: a second): the frames between are interpolated
    break    it stays where it jumped to, or the whole body jumps: the clip is cut there
    flip     a foot or a head turned further than any ankle or neck can: interpolated for up to a second, or else these frames are dropped
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import quat_distance, slerp

TURN_STEP = math.radians(60) * 30  # [rad/s]
CERTAIN = math.radians(120) * 30  # [rad/s] a glitch however fast its neighbours are
SUDDEN = 3.0  # times as fast as just before and after
ROOT_STEP = 0.25 * 30  # [m/s]
BRIDGE, BRIDGE_ENDS = 0.34, 1.0  # [s] longest stretch that is interpolated; of feet, toes, hands, necks and heads
SAME_SIDE = math.radians(100)  # a joint that jumped and is turned further than this from how it is in most of the clip is flipped
IMPOSSIBLE = math.radians(115)  # from the rest pose: feet, toes, necks and heads do not turn so far
STATIC = 1.0  # [s] a piece shorter than this beside a break is dropped: a pose held before the performance begins
ENDS = ("foot", "toe", "hand", "neck", "head")
STIFF = ("foot", "toe", "neck", "head")


@dataclass(frozen=True, kw_only=True)
class Repair:
    """The good pieces of a clip, and what was done to get them."""

    pieces: tuple[range, ...]  # frames of the clip
    motion: Motion  # the whole clip, spikes interpolated
    repaired: int  # frames in which some joint was interpolated
    breaks: tuple[int, ...]  # frames at which the clip jumps
    dropped: int  # frames outside all pieces


def repair(motion: Motion) -> Repair:
    """Spikes interpolated, the clip cut where it jumps."""
    quats = motion.quats.clone()
    touched = torch.zeros(len(motion), dtype=torch.bool)
    breaks: dict[int, list[int]] = {}
    ends = _below(motion.skeleton, ENDS)
    for joint in range(len(motion.skeleton)):
        longest = round((BRIDGE_ENDS if joint in ends else BRIDGE) * motion.fps)
        for first, last in _clusters(_sudden_turns(motion.quats[:, joint], motion.fps), longest):
            before, after = first, last + 1  # frames first+1 … last are off; one more on either side is often half-way
            before, after = max(before - 1, 0), min(after + 1, len(motion) - 1)
            apart = float(quat_distance(motion.quats[before, joint], motion.quats[after, joint]))
            settles = last > first or joint in ends
            if settles and after - before <= longest + 3 and apart < (math.pi if joint in ends else SAME_SIDE * 0.75):
                t = torch.arange(1, after - before).to(quats) / (after - before)
                quats[before + 1 : after, joint] = slerp(motion.quats[before, joint], motion.quats[after, joint], t)
                touched[before + 1 : after] = True
            else:
                breaks.setdefault(last + 1, []).append(joint)
                breaks.setdefault(first + 1, []).append(joint)
    for frame in _root_jumps(motion):
        breaks.setdefault(frame, [])
    wrong = _bridge_flips(quats, motion, touched)
    mended = replace(motion, quats=quats)
    pieces = _pieces(mended, breaks, wrong)
    kept = sum(len(piece) for piece in pieces)
    return Repair(pieces=pieces, motion=mended, repaired=int(touched.sum()), breaks=tuple(sorted(breaks)), dropped=len(motion) - kept)


def _sudden_turns(quats: Float[Tensor, "F 4"], fps: float) -> list[int]:
    """Frames f such that the joint turns too fast from f to f + 1."""
    speed = quat_distance(quats[1:], quats[:-1]) * fps
    fast = (speed > TURN_STEP).nonzero()[:, 0].tolist()
    sudden = []
    for run in _runs(fast):
        before = float(speed[run.start - 1]) if run.start else 0.0
        after = float(speed[run.stop]) if run.stop < len(speed) else 0.0
        peak = float(speed[run.start : run.stop].max())
        if peak > CERTAIN or peak > SUDDEN * (before + after) / 2:
            sudden += list(run)
    return sudden


def _root_jumps(motion: Motion) -> list[int]:
    speed = (motion.root_position[1:] - motion.root_position[:-1]).norm(dim=-1) * motion.fps
    jumps = []
    for run in _runs((speed > ROOT_STEP).nonzero()[:, 0].tolist()):
        around = [float(speed[f]) for f in (run.start - 1, run.stop) if 0 <= f < len(speed)]
        if float(speed[run.start : run.stop].max()) > SUDDEN * (sum(around) / max(len(around), 1)):
            jumps += [run.start + 1, run.stop]
    return jumps


def _runs(frames: list[int]) -> list[range]:
    """Unbroken runs of rising numbers."""
    runs: list[range] = []
    for frame in frames:
        if runs and runs[-1].stop == frame:
            runs[-1] = range(runs[-1].start, frame + 1)
        else:
            runs.append(range(frame, frame + 1))
    return runs


def _clusters(frames: list[int], gap: int) -> list[tuple[int, int]]:
    """First and last of frames that follow each other within `gap`."""
    clusters: list[tuple[int, int]] = []
    for frame in frames:
        if clusters and frame - clusters[-1][1] <= gap:
            clusters[-1] = (clusters[-1][0], frame)
        else:
            clusters.append((frame, frame))
    return clusters


def _bridge_flips(quats: Float[Tensor, "F J 4"], motion: Motion, touched: Bool[Tensor, " F"]) -> Bool[Tensor, " F"]:
    """Interpolates short flips in place, marking them in `touched`; returns the frames of the long ones."""
    wrong = torch.zeros_like(touched)
    longest = round(BRIDGE_ENDS * motion.fps)
    for joint in sorted(_below(motion.skeleton, STIFF)):
        flipped = quat_distance(quats[:, joint], motion.skeleton.rest_quats[joint].to(quats)) > IMPOSSIBLE
        for run in _runs(flipped.nonzero()[:, 0].tolist()):
            before, after = run.start - 2, run.stop + 1  # one more frame on either side is on its way
            if len(run) > longest or before < 0 or after >= len(quats):
                wrong[max(run.start - 1, 0) : run.stop + 1] = True
                continue
            t = torch.arange(1, after - before).to(quats) / (after - before)
            quats[before + 1 : after, joint] = slerp(quats[before, joint], quats[after, joint], t)
            touched[before + 1 : after] = True
    return wrong


def _pieces(motion: Motion, breaks: dict[int, list[int]], wrong: Bool[Tensor, " F"]) -> tuple[range, ...]:
    """The stretches between breaks and flips that are long enough and turned the way most of the clip is."""
    edges = {frame for frame in breaks if 0 < frame < len(motion)}
    edges |= set((torch.diff(wrong.to(torch.int8)) != 0).nonzero()[:, 0].add(1).tolist())
    pieces = [range(a, b) for a, b in pairwise([0, *sorted(edges), len(motion)]) if not wrong[a]]
    if not edges:
        return tuple(pieces)
    longest = max(pieces, key=len, default=range(0))
    joints = sorted({joint for broken in breaks.values() for joint in broken})
    usual = {joint: _middle(motion.quats[longest.start : longest.stop, joint]) for joint in joints if len(longest)}

    def flipped(piece: range) -> bool:
        return any(float(quat_distance(_middle(motion.quats[piece.start : piece.stop, j]), usual[j])) > SAME_SIDE for j in joints)

    return tuple(piece for piece in pieces if len(piece) >= STATIC * motion.fps and not flipped(piece))


def _middle(quats: Float[Tensor, "F 4"]) -> Float[Tensor, "4"]:
    """The mean turn."""
    return torch.linalg.eigh(quats.T.double() @ quats.double()).eigenvectors[:, -1].to(quats)


def _below(skeleton: Skeleton, parts: tuple[str, ...]) -> set[int]:
    """The joints with these roles, of both sides, and all joints below them."""
    tops = {joint for role, joint in skeleton.roles.items() if role.split("_")[-1] in parts}
    return {joint for joint in range(len(skeleton)) if not tops.isdisjoint(skeleton.ancestors(joint))}
