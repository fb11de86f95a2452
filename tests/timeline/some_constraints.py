"""Constraints of every type made from a seed, and how two of them are compared."""

from __future__ import annotations

import torch

from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import exp_quat, quat_normalize
from bunraku.timeline import EFFECTORS, Constraint, EffectorTarget, FootPlan, Heading, PoseKey, RootPath

TYPES = ("path", "path with heading", "heading", "pose", "hand pose", "position", "turn", "both", "feet", "stretched pose")


def some_constraint(kind: str, seed: int, body: Skeleton | None = None, rows: int = 3, last: int = 300) -> Constraint:
    g = torch.Generator().manual_seed(seed)
    body = body or skeleton("soma30")

    def noise(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=g)

    frames = torch.randperm(last, generator=g)[:rows]
    match kind:
        case "path":
            return RootPath(frames=frames, xz=noise(rows, 2))
        case "path with heading":
            return RootPath(frames=frames, xz=noise(rows, 2), heading=noise(rows))
        case "heading":
            return Heading(frames=frames, heading=noise(rows))
        case "position" | "turn" | "both":
            effector = EFFECTORS[seed % len(EFFECTORS)]
            position = None if kind == "turn" else noise(rows, 3)
            return EffectorTarget(frames=frames, effector=effector, position=position, quats=None if kind == "position" else quat_normalize(noise(rows, 4)))
        case "feet":
            return FootPlan(frames=frames, contacts=noise(rows, 4) > 0)
    poses = Motion(
        skeleton=body,
        fps=30.0,
        root_position=noise(rows, 3),
        quats=exp_quat(0.7 * noise(rows, len(body), 3)),
        translations=0.1 * noise(rows, len(body), 3) if kind == "stretched pose" else None,
    )
    return PoseKey(
        frames=frames,
        poses=poses,
        smooth_xz=noise(rows, 2) if seed % 2 else None,
        effectors=("left_hand", "hips")[: 1 + seed % 2] if kind == "hand pose" else None,
    )


def difference(a: Constraint, b: Constraint) -> float:
    """The largest difference of numbers [m, rad]; infinite where they are not of one kind."""
    if type(a) is not type(b) or a.frames.tolist() != b.frames.tolist():
        return float("inf")
    worst = [0.0]
    for name in ("xz", "heading", "position", "smooth_xz", "quats"):
        x, y = getattr(a, name, None), getattr(b, name, None)
        if (x is None) != (y is None):
            return float("inf")
        if x is not None:
            worst.append(float((x - y).abs().max()))
    if isinstance(a, PoseKey) and isinstance(b, PoseKey):
        if a.effectors != b.effectors or a.poses.skeleton.joints != b.poses.skeleton.joints:
            return float("inf")
        worst += [float((a.poses.root_position - b.poses.root_position).abs().max()), _turned(a.poses.quats, b.poses.quats)]
        if (a.poses.translations is None) != (b.poses.translations is None):
            return float("inf")
        if a.poses.translations is not None:
            worst.append(float((a.poses.translations - b.poses.translations).abs().max()))
    if isinstance(a, FootPlan) and isinstance(b, FootPlan):
        worst.append(float((a.contacts != b.contacts).any()))
    if isinstance(a, EffectorTarget) and isinstance(b, EffectorTarget) and a.effector != b.effector:
        return float("inf")
    return max(worst)


def _turned(a: torch.Tensor, b: torch.Tensor) -> float:
    """Nothing for the same numbers; q and −q are the same turn."""
    return float(torch.minimum((a - b).abs().amax(-1), (a + b).abs().amax(-1)).max())
