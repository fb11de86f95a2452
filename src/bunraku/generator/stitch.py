"""Clips longer or richer than one run of the model: drawn piece after piece, each led on from the frames before it (kimodo §4.4).

    known frames ──┐ last few                              ┌─► first few ── known frames
                   ▼                                       ▼
            [ overlap | ········ new frames of piece k ·······| overlap ]      one run of the model, its root starting at the origin
                        └────────────── kept ───────────────┘

The frames of the overlaps are given to the model as constraints; its own idea of them is dropped and the seam bent shut (`seam.py`).
All pieces number k of all clips run as one batch. Every clip has a seed of its own and comes out the same in any company.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.generator.conditioning import observe
from bunraku.generator.denoiser import Denoiser
from bunraku.generator.features import FeatureLayout, decode, shift_features, turn_features
from bunraku.generator.pieces import Piece, Stitching, Strand, piece_seed, plan, start_of
from bunraku.generator.sample import Request, Sampling, sample
from bunraku.generator.seam import bend_to
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.heading import heading_of
from bunraku.timeline import crop_constraints, place_constraints, shift_constraints
from bunraku.timeline.constraints import Constraint, PoseKey

LOOK_AHEAD = 0.5  # [s] a piece is drawn towards constraints that come so soon after its end, or the next would have to leap to them
AT_ONCE = 64  # clips in one batch: more do not run faster, and fill the memory
ENDS = ("left_hand", "right_hand", "left_foot", "right_foot")


def draw(
    denoiser: Denoiser,
    strands: Sequence[Strand],
    sampling: Sampling,
    *,
    most: int,
    stitching: Stitching | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> list[Float[Tensor, "F D"]]:
    """The features of every strand's new frames, in the world. `most`: frames in one run of the model."""
    stitching = Stitching() if stitching is None else stitching
    weavers = [_Weaver(strand, denoiser.layout, stitching, most) for strand in strands]
    stages = max(len(weaver.pieces) for weaver in weavers)
    batches = [batch for stage in range(stages) for batch in _batches(weavers, stage)]
    for number, batch in enumerate(batches):

        def on_step(step: float, before: int = number) -> None:
            if on_progress is not None:
                on_progress((before + step / sampling.steps) / len(batches))

        windows = [weaver.window(stage, goal) for weaver, stage, goal in batch]
        drawn = sample(denoiser, [window.request for window in windows], sampling, on_step)
        for (weaver, _, _), window, features in zip(batch, windows, drawn, strict=True):
            weaver.add(window, features)
    return [weaver.result() for weaver in weavers]


def _batches(weavers: Sequence[_Weaver], stage: int) -> Iterator[list[tuple[_Weaver, int, bool]]]:
    """Who takes part in the runs of one stage; a loop's last piece runs again once it is known where it leads."""
    here = [weaver for weaver in weavers if stage < len(weaver.pieces)]
    closing = [weaver for weaver in here if weaver.strand.loop and stage == len(weaver.pieces) - 1]
    for rows, goal in ((here, False), (closing, True)):
        for first in range(0, len(rows), AT_ONCE):
            yield [(weaver, stage, goal) for weaver in rows[first : first + AT_ONCE]]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Window:
    """One run of the model: `lead` known frames, the piece, and what is beyond it."""

    request: Request
    piece: Piece
    lead: int
    xz: tuple[float, float]  # [m] where the run's origin is in the world
    goal: Float[Tensor, "N D"] | None  # known frames at its end, in the world
    goal_at: int  # frame of the run

    @property
    def own(self) -> slice:
        return slice(self.lead, self.lead + self.piece.stop - self.piece.start)


class _Weaver:
    """A strand in the making."""

    def __init__(self, strand: Strand, layout: FeatureLayout, stitching: Stitching, most: int) -> None:
        self.strand, self.layout, self.overlap, self.most = strand, layout, stitching.overlap, most
        self.fade = round(stitching.fade_seconds * layout.fps)
        tail = len(self._after()) if strand.after is not None else self.overlap - 1 if strand.loop else 0
        self.pieces = plan(strand.prompt_frames, most, overlap=self.overlap, led=strand.before is not None, tail=tail)
        self.known = torch.zeros(0, layout.width) if strand.before is None else strand.before  # all frames up to where we are
        self.led = len(self.known)  # frames of them that are not new
        self.undone: Tensor | None = None  # the frames before a loop's last piece

    def result(self) -> Float[Tensor, "F D"]:
        return self.known[self.led :]

    def _after(self) -> Tensor:
        assert self.strand.after is not None
        return self.strand.after[: self.overlap]

    # --- what a run is told ---

    def window(self, number: int, closing: bool) -> _Window:
        """The run for piece `number`; `closing`: a loop's last piece for the second time, led back to where the clip began."""
        piece, strand = self.pieces[number], self.strand
        last = number == len(self.pieces) - 1
        goal = self._loop_goal() if closing else self._after() if last and strand.after is not None else None
        if last and strand.loop:  # this piece runs twice
            if closing:
                assert self.undone is not None
                self.known = self.undone
            self.undone = self.known
        lead = min(self.overlap, len(self.known))
        length = piece.stop - piece.start
        goal_at = lead + length - (1 if closing else 0)
        frames = lead + length if goal is None else goal_at + len(goal)
        keys: list[Constraint] = []
        if lead:
            heading, xz = self._lead(keys, lead)
        else:
            heading, xz = start_of(strand)
        if goal is not None:
            keys += self._keys(goal, goal_at)
        room = self.most - frames if goal is None else 0
        stop = piece.stop if last or room <= 0 else self._look_ahead(piece.stop, room)
        asked = shift_constraints(crop_constraints(strand.constraints, piece.start, stop), lead)
        told = place_constraints([*keys, *asked], (-xz[0], -xz[1]), 0.0)
        request = Request(
            frames=frames + stop - piece.stop,
            text=strand.text[piece.prompt],
            seed=piece_seed(strand.seed, number),
            heading=heading,
            observation=observe(self.layout, told, frames + stop - piece.stop) if told else None,
        )
        return _Window(request=request, piece=piece, lead=lead, xz=xz, goal=goal, goal_at=goal_at)

    def _lead(self, keys: list[Constraint], lead: int) -> tuple[float, tuple[float, float]]:
        """Puts the poses of the overlap among the keys; returns which way they face first, and where."""
        tail = self.known[-lead:]
        keys += self._keys(tail, 0)
        first = decode(self.layout, tail[:1]).motion
        heading = float(heading_of(self.layout.skeleton, forward_kinematics(first).p_world_joint[0]))
        return heading, (float(tail[0, 0]), float(tail[0, 2]))

    def _keys(self, features: Float[Tensor, "N D"], at: int) -> list[Constraint]:
        """Known frames as the release tells them: the whole body, and hands and feet with their turns."""
        frames = torch.arange(at, at + len(features))
        decoded = decode(self.layout, features)
        whole = PoseKey(frames=frames, poses=decoded.motion, smooth_xz=decoded.smooth_root[:, [0, 2]])
        ends = tuple(end for end in ENDS if self.layout.skeleton.has(end))
        return [whole, replace(whole, effectors=ends)] if ends else [whole]

    def _look_ahead(self, stop: int, room: int) -> int:
        """Up to the first frame soon after `stop` for which something is asked."""
        most = min(round(LOOK_AHEAD * self.layout.fps), room)
        soon = [int(f) for constraint in self.strand.constraints for f in constraint.frames if stop <= int(f) < stop + most]
        return min(soon) + 1 if soon else stop

    def _loop_goal(self) -> Float[Tensor, "N D"]:
        """The clip's first frames, moved and turned to where the clip ends."""
        first = self.known[self.led : self.led + self.overlap]
        return self._moved(first, first[0], self.known[-1])

    def _moved(self, features: Float[Tensor, "N D"], start: Float[Tensor, " D"], end: Float[Tensor, " D"]) -> Float[Tensor, "N D"]:
        """Features as the move over the ground leaves them that takes where `start` is and faces to where `end` does."""
        yaw = torch.atan2(end[4], end[3]) - torch.atan2(start[4], start[3])
        turned = turn_features(self.layout, shift_features(self.layout, features, -start[[0, 2]].expand(len(features), 2)), yaw.expand(len(features)))
        return shift_features(self.layout, turned, end[[0, 2]].expand(len(features), 2))

    # --- what a run gave ---

    def add(self, window: _Window, drawn: Float[Tensor, "F D"]) -> None:
        """Takes over the piece's frames, bent to what they border on."""
        drawn = shift_features(self.layout, drawn, drawn.new_tensor(window.xz).expand(len(drawn), 2))
        lead, end = window.lead, window.goal_at if window.goal is not None else window.own.stop
        fade = max(min(self.fade, end - lead), 1)
        if lead:
            drawn = bend_to(self.layout, drawn, self.known[-1], at=lead - 1, frames=fade, after=True)
        if window.goal is not None:
            goal = window.goal[0]
            if self.strand.loop and len(self.known) == self.led:  # one piece alone has begun anew, too
                goal = self._moved(drawn[lead : lead + 1], drawn[lead], goal)[0]
            drawn = bend_to(self.layout, drawn, goal, at=window.goal_at, frames=fade, after=False)
        self.known = torch.cat([self.known, drawn[window.own]])
