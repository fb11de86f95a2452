"""The rhythm of the feet: how often a step repeats, and whether left and right alternate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.evaluate.clip import UP, Clip
from bunraku.evaluate.metric import metric

SHORTEST, LONGEST = 0.25, 2.5  # [s] cycles looked for: from a sprint to a slow walk
PERIODIC = 0.6  # a clip repeats if its feet, moved by one cycle, correlate with themselves at least this much
ALIKE = 0.5  # left and right must correlate at least this much for a phase between them: a still foot has none
MOVING = 0.03  # [m] feet that move less than this (root mean square) against the hips have no rhythm


@dataclass(frozen=True, kw_only=True)
class RhythmMetrics:
    """None where the feet do not move periodically."""

    cadence: float | None = metric("1/s", "cycles per second of one foot (two steps of a walk)")
    phase: float | None = metric("cycles", "how far left and right foot are apart in the cycle: 0.5 alternate (walk), 0 together (hop)")
    periodicity: float | None = metric("1", "correlation of the feet with themselves one cycle later, 1 = exact repetition")


def rhythm_metrics(clip: Clip) -> RhythmMetrics:
    tracks = foot_tracks(clip)
    if tracks is None or clip.feet is None or float(tracks.square().sum(-1).mean().sqrt()) < MOVING * clip.feet.scale:
        return RhythmMetrics()
    tracks = _unrolled(tracks)
    shortest, longest = round(SHORTEST * clip.fps), min(round(LONGEST * clip.fps), 2 * len(tracks) // 3)
    same = _correlations(tracks, tracks, range(longest + 1))
    cycle = _first_peak(same, shortest)
    if cycle is None:
        return RhythmMetrics()
    lag = round(cycle)
    left, right = tracks[:, :1], tracks[:, 1:]
    shifts = _correlations(left, right, range(-(lag // 2) - 1, lag // 2 + 2))
    repeats = RhythmMetrics(cadence=clip.fps / cycle, periodicity=float(same[lag]))
    if float(shifts.max()) < ALIKE:
        return repeats
    shift = abs(_peak_position(shifts, int(shifts.argmax())) - (lag // 2 + 1))
    phase = shift / cycle % 1
    return replace(repeats, phase=min(phase, 1 - phase))


def foot_tracks(clip: Clip) -> Float[Tensor, "F 2 2"] | None:
    """Where each foot is against the hips, (left right) × (forward up), less its mean; None without two feet or a direction to face."""
    has, at = clip.skeleton.has, clip.position
    if not has("hips", "left_foot", "right_foot", "left_hip", "right_hip"):
        return None
    left = at("left_hip") - at("right_hip")
    up = torch.zeros_like(left)
    up[:, UP] = 1
    forward = torch.nn.functional.normalize(torch.linalg.cross(left, up), dim=-1)
    feet = torch.stack([at("left_foot"), at("right_foot")], dim=1) - at("hips")[:, None]
    tracks = torch.stack([(feet * forward[:, None]).sum(-1), feet[..., UP]], dim=-1)
    return tracks - tracks.mean(dim=0)


def _unrolled(tracks: Float[Tensor, "F 2 2"]) -> Float[Tensor, "G 2 2"]:
    """A clip that is made to be looped, often of one cycle only, three times in a row; any other as it is.

    Its feet end where they began, pass the seam without a jolt, and move there; a clip that begins and ends standing is none.
    """
    steps = tracks.diff(dim=0).flatten(1)
    if len(steps) < 2:
        return tracks
    pace, bend = (values.norm(dim=-1).quantile(0.9) for values in (steps, steps.diff(dim=0)))
    near = max(1, len(steps) // 10)
    pace_at_seam = torch.cat([steps[:near], steps[-near:]]).norm(dim=-1).mean()
    # two bends lie between the last step and the first where the first frame is not repeated
    seam, jolt = (tracks[0] - tracks[-1]).norm(), (steps[0] - steps[-1]).norm()
    if jolt > 2.5 * bend or seam > 1.2 * pace or pace_at_seam < 0.2 * pace:
        return tracks
    once = tracks[:-1] if seam < 0.1 * pace else tracks  # the first frame repeated as the last is one frame, not two
    return torch.cat([once, once, once])


def _correlations(a: Float[Tensor, "F N 2"], b: Float[Tensor, "F N 2"], lags: range) -> Float[Tensor, " L"]:
    """For each lag, the correlation of a with b moved so many frames earlier, over the frames both have."""
    found = []
    for lag in lags:
        early, late = (a[: len(a) - lag], b[lag:]) if lag >= 0 else (a[-lag:], b[: len(b) + lag])
        power = (early.square().sum() * late.square().sum()).sqrt()
        found.append((early * late).sum() / power.clamp_min(torch.finfo(a.dtype).tiny))
    return torch.stack(found)


def _first_peak(same: Float[Tensor, " L"], shortest: int) -> float | None:
    """The lag in frames, between samples, of the first high maximum of the self-correlation after it has fallen off."""
    fallen = (same < PERIODIC).nonzero()
    if not len(fallen):
        return None
    start = max(shortest, int(fallen[0]))
    inner = same[1:-1]
    peaks = 1 + ((inner >= same[:-2]) & (inner > same[2:]) & (inner >= PERIODIC)).nonzero()[:, 0]
    peaks = peaks[peaks >= start]
    if not len(peaks):
        return None
    # the first among the nearly highest: later ones are two cycles, lower ones half a cycle of feet that swing alike
    high = peaks[same[peaks] >= same[peaks].max() - 0.1]
    return _peak_position(same, int(high[0]))


def _peak_position(values: Float[Tensor, " L"], i: int) -> float:
    """The top of the parabola through a maximum and its two neighbours."""
    if not 0 < i < len(values) - 1:
        return float(i)
    before, here, after = (float(v) for v in values[i - 1 : i + 2])
    bend = before - 2 * here + after
    return i + (0.5 * (before - after) / bend if bend < 0 else 0.0)
