"""How clean motions are: skating, contacts, jitter; the mean over motions of each motion's number, in the released definitions.

`evaluate/feet.py` has the definitions: skate is the mean speed of foot joints while the motion itself says that they stand,
contact accuracy the share of those contacts that speed and height agree with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from bunraku.evaluate.clip import prepare
from bunraku.evaluate.feet import feet_metrics
from bunraku.evaluate.metric import metric
from bunraku.evaluate.smoothness import smoothness_metrics
from bunraku.kinematics.motion import Motion


@dataclass(frozen=True, kw_only=True)
class QualityMetrics:
    """None where no motion has the number (no contacts, too few frames)."""

    skate: float | None = metric("cm/s", "mean speed of foot joints in contact")
    skate_max: float | None = metric("cm/s", "largest speed of a foot joint in contact")
    skate_from_height: float | None = metric("cm/s", "mean speed of toes lower than 5 cm")
    skate_ratio: float | None = metric("1", "share of the steps of toes lower than 5 cm that are faster than 20 cm/s")
    contact_accuracy: float | None = metric("1", "share of contacts that speed and height agree with")
    contact_share: float | None = metric("1", "share of frames in which any foot stands")
    penetration: float | None = metric("mm", "mean depth of the lowest sole point over the frames that penetrate")
    jerk: float | None = metric("m/s³", "mean third derivative of joint positions")
    speed: float | None = metric("m/s", "mean speed of the hips over the ground")


def quality(motion: Motion) -> QualityMetrics:
    """Of one motion, on a ground at y = 0."""
    clip = prepare(motion, 0.0)
    feet, smoothness = feet_metrics(clip), smoothness_metrics(clip)
    steps = clip.poses.p_world_joint[:, clip.hips][:, [0, 2]].diff(dim=0).norm(dim=-1)
    return QualityMetrics(
        skate=feet.skate,
        skate_max=feet.skate_max,
        skate_from_height=feet.skate_from_height,
        skate_ratio=feet.skate_ratio,
        contact_accuracy=feet.contact_consistency,
        contact_share=feet.contact_share,
        penetration=feet.penetration_mean,
        jerk=smoothness.jerk_mean,
        speed=float(steps.mean()) * motion.fps if len(steps) else None,
    )


def mean_quality(each: Iterable[QualityMetrics]) -> QualityMetrics:
    """The mean of each number over the motions that have it."""
    rows = list(each)
    means = {}
    for field in fields(QualityMetrics):
        values = [value for row in rows if (value := getattr(row, field.name)) is not None]
        means[field.name] = sum(values) / len(values) if values else None
    return QualityMetrics(**means)
