"""Moving a body so that its *smoothed* root passes where it is asked to.

The smoothed root is blind to sway of less than 6 cm and pulled along by more, so its wishes cannot be passed on frame by frame.
Two things find the way. (1) A correction is made, spread, and measured again until nothing is missed. (2) Along a dense path this
alone would take very long; but there the path itself says where it was pulled: its fourth differences are the forces that bent it,
and wherever one acts the hips must be 6 cm to that side. Elsewhere they keep the sway they had.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.kinematics.smooth_root import MARGIN, smoothed_root
from bunraku.kinematics.spread import follow, spans, spread

ROUNDS = 40
MOMENTUM = 0.5  # of the last correction, carried on: where the hips must first move far to be felt, the same is asked again and again
ENOUGH = 9e-4  # [m]
FADE = 1.0  # [s] of a waypoint's correction
SWAY_FADE = 0.25  # [s] of a change of sway
FORCE = 1e-5 * 30.0**4  # [m/s⁴] a path that is bent this much was pulled
DENSE = 12  # frames in a row that make a path
_PLANE = [0, 2]


def steer(
    p_world_root: Float[Tensor, "F 3"], wished: Float[Tensor, "F 2"], known: Bool[Tensor, " F"], free: Float[Tensor, " F"], fps: float
) -> Float[Tensor, "F 2"]:
    """The displacement (F 2) in x and z [m] after which the smoothed root is at `wished` where `known`.

    `free` (0 … 1) says how far each frame may be moved: 0 where the root's own place is asked for.
    """
    if not bool(known.any()):
        return torch.zeros_like(wished)
    p = p_world_root.double()
    target = wished.double()
    dense = _dense(known)
    away = _missed(p, target, known)
    if float(away.norm(dim=-1).max()) < ENOUGH:
        return torch.zeros_like(wished)
    shift = spread(away, known, FADE * fps) * free[:, None]
    if bool(dense.any()):
        shift = shift + _sway_change(_moved(p, shift), target, dense, fps) * free[:, None]
    best, least, step = shift, float("inf"), torch.zeros_like(shift)
    for _ in range(ROUNDS):
        away = _missed(_moved(p, shift), target, known)
        worst = float(away[known].norm(dim=-1).max())
        if worst < least:
            best, least = shift, worst
        if worst < ENOUGH:
            break
        correction = torch.where(dense[:, None], follow(away, 100 * dense.to(away), 6.0), spread(away, known, FADE * fps))
        step = correction * free[:, None] + MOMENTUM * step
        shift = shift + step
    return best.to(wished)


def _moved(p: Float[Tensor, "F 3"], shift: Float[Tensor, "F 2"]) -> Float[Tensor, "F 3"]:
    return torch.stack([p[:, 0] + shift[:, 0], p[:, 1], p[:, 2] + shift[:, 1]], dim=-1)


def _missed(p: Float[Tensor, "F 3"], target: Float[Tensor, "F 2"], known: Bool[Tensor, " F"]) -> Float[Tensor, "F 2"]:
    """What is missing at each known frame [m]. By the release's definition the last frame but one of any path lies beside its
    neighbours, which no body could follow; where they are known too, it is let go."""
    away = torch.where(known[:, None], target - smoothed_root(p)[:, _PLANE], torch.zeros_like(target))
    if len(p) > 2 and bool(known[-3:].all()):
        away[-2] = (away[-3] + away[-1]) / 2
    return away


def _dense(known: Bool[Tensor, " F"]) -> Bool[Tensor, " F"]:
    """The frames of unbroken stretches that are long enough to be a path."""
    dense = torch.zeros_like(known)
    for span in spans(known):
        if len(span) >= DENSE:
            dense[span.start : span.stop] = True
    return dense


def _sway_change(p: Float[Tensor, "F 3"], target: Float[Tensor, "F 2"], dense: Bool[Tensor, " F"], fps: float) -> Float[Tensor, "F 2"]:
    """How hips that are near the wished path must sway otherwise for it to be the one that they pull along."""
    force = torch.zeros_like(target)
    bent = _on_time(target)
    force[2:-2] = bent[:-4] - 4 * bent[1:-3] + 6 * bent[2:-2] - 4 * bent[3:-1] + bent[4:]
    inner = dense.clone()
    for k in range(1, 5):  # at the ends of a path its differences say nothing
        inner[k:] &= dense[:-k]
        inner[:-k] &= dense[k:]
    inner[:3] = inner[-4:] = False
    strength = force.norm(dim=-1)
    pulled = 0.98 * MARGIN * force / strength.clamp_min(1e-12)[:, None]
    sway = p[:, _PLANE] - bent
    certainty = (strength * fps**4 / FORCE).clamp_max(1) ** 2 * inner
    return follow(pulled - sway, 1e4 * certainty, SWAY_FADE * fps)


def _on_time(path: Float[Tensor, "F 2"]) -> Float[Tensor, "F 2"]:
    """A smoothed path moved back by the half frame that it is late, but for its ends."""
    return torch.cat([path[:1], (path[1:] + path[:-1]) / 2])
