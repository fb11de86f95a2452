"""Limbs through the body: overlaps between capsules of parts that should never meet."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.evaluate.capsules import Capsule, body_capsules, distant_pairs, segment_distance
from bunraku.evaluate.clip import Clip, prepare
from bunraku.evaluate.metric import metric
from bunraku.kinematics.motion import rest_motion

CHUNK = 2048  # frames measured at a time, so that a long clip does not need gigabytes


@dataclass(frozen=True, kw_only=True)
class CollisionMetrics:
    """None for a skeleton whose roles give no two parts that could meet."""

    collisions: int | None = metric("1", "pairs of body parts that overlap, summed over frames")
    collision_frames: int | None = metric("1", "frames with at least one overlap")
    collision_depth_max: float | None = metric("mm", "deepest overlap of two parts' cores")


def collision_metrics(clip: Clip) -> CollisionMetrics:
    resting = _resting_overlaps(clip)
    pairs = [(a, b) for a, b in distant_pairs(body_capsules(clip)) if (a.name, b.name) not in resting]
    if not pairs:
        return CollisionMetrics()
    pair_count, frame_count, deepest = 0, 0, 0.0
    for start in range(0, len(clip.motion), CHUNK):
        depth = overlap_depths(pairs, slice(start, start + CHUNK))
        pair_count += int((depth > 0).sum())
        frame_count += int((depth > 0).any(dim=0).sum())
        deepest = max(deepest, float(depth.max()))
    return CollisionMetrics(collisions=pair_count, collision_frames=frame_count, collision_depth_max=1000 * deepest)


def overlap_depths(pairs: list[tuple[Capsule, Capsule]], frames: slice) -> Float[Tensor, "P F"]:
    """How deep the two parts of each pair are in one another [m], negative where they are apart."""
    a0, a1 = (torch.stack([end[frames] for end in ends]) for ends in ([a.p_a for a, _ in pairs], [a.p_b for a, _ in pairs]))
    b0, b1 = (torch.stack([end[frames] for end in ends]) for ends in ([b.p_a for _, b in pairs], [b.p_b for _, b in pairs]))
    radii = torch.tensor([a.radius + b.radius for a, b in pairs], dtype=a0.dtype)
    return radii[:, None] - segment_distance(a0, a1, b0, b1)


def _resting_overlaps(clip: Clip) -> set[tuple[str, str]]:
    """Pairs that meet already at rest, as a big head and its shoulders do: their overlap says nothing about the motion."""
    pairs = distant_pairs(body_capsules(prepare(rest_motion(clip.skeleton), ground=0.0)))
    if not pairs:
        return set()
    depths = overlap_depths(pairs, slice(None))[:, 0].tolist()
    return {(a.name, b.name) for (a, b), depth in zip(pairs, depths, strict=True) if depth > 0}
