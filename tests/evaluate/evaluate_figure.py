"""A symmetric figure whose every number is known, and motions made from it."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import axis_quat, quat_multiply

# joint, parent, offset [m] of a figure of 0.95 m hips that stands on y = 0 in a T-pose; limbs are mirrored below
TRUNK = [
    ("hips", None, (0, 0.95, 0)),
    ("spine", "hips", (0, 0.1, 0)),
    ("chest", "spine", (0, 0.15, 0)),
    ("neck", "chest", (0, 0.25, 0)),
    ("head", "neck", (0, 0.15, 0)),
]
LIMBS = [
    ("shoulder", "chest", (0.18, 0.2, 0)),
    ("elbow", "shoulder", (0.28, 0, 0)),
    ("hand", "elbow", (0.26, 0, 0)),
    ("hip", "hips", (0.1, -0.05, 0)),
    ("knee", "hip", (0, -0.42, 0)),
    ("foot", "knee", (0, -0.40, 0)),
    ("toe", "foot", (0, -0.05, 0.14)),
]


def make_figure(size: float = 1.0) -> Skeleton:
    rows = list(TRUNK)
    for side, sign in (("left", 1), ("right", -1)):
        rows += [(f"{side}_{name}", parent if parent in ("hips", "chest") else f"{side}_{parent}", (sign * x, y, z)) for name, parent, (x, y, z) in LIMBS]
    names = tuple(row[0] for row in rows)
    return Skeleton(
        name="figure",
        joints=names,
        parents=tuple(-1 if row[1] is None else names.index(row[1]) for row in rows),
        offsets=size * torch.tensor([row[2] for row in rows], dtype=torch.float64),
        roles={name: i for i, name in enumerate(names)},
        tips={names.index(f"{side}_toe"): (0.0, 0.0, 0.06 * size) for side in ("left", "right")},
    )


def turn(motion: Motion, joint: str, axis: str, degrees: Tensor | float) -> Motion:
    """The motion with one joint turned further, about an axis of its own, by an angle or one angle per frame."""
    j = motion.skeleton.index[joint]
    angle = torch.deg2rad(torch.as_tensor(degrees, dtype=torch.float64)).expand(len(motion))
    quats = motion.quats.clone()
    quats[:, j] = quat_multiply(quats[:, j], axis_quat(axis, angle))
    return replace(motion, quats=quats)


def ramp(frames: int, step: float) -> Tensor:
    """0, step, 2 · step …"""
    return step * torch.arange(frames, dtype=torch.float64)


def move(motion: Motion, x: Tensor | float = 0.0, y: Tensor | float = 0.0, z: Tensor | float = 0.0) -> Motion:
    step = torch.stack([torch.as_tensor(v, dtype=torch.float64).expand(len(motion)) for v in (x, y, z)], dim=-1)
    return replace(motion, root_position=motion.root_position + step)


def walk(skeleton: Skeleton, frames: int = 91, fps: float = 30.0, hertz: float = 1.0, apart: float = 0.5, speed: float = 1.2, start: float = 0.0) -> Motion:
    """Legs that swing like pendulums, left and right `apart` cycles from each other, while the hips go forward."""
    t = start + torch.arange(frames, dtype=torch.float64) / fps
    motion = rest_motion(skeleton, frames, fps)
    for side, offset in (("left", 0.0), ("right", apart)):
        swing = 2 * math.pi * (hertz * t - offset)
        motion = turn(motion, f"{side}_hip", "x", 25 * torch.sin(swing))
        motion = turn(motion, f"{side}_knee", "x", 20 - 20 * torch.cos(swing))
        motion = turn(motion, f"{side}_shoulder", "z", -60 if side == "left" else 60)
        motion = turn(motion, f"{side}_elbow", "y", (-1 if side == "left" else 1) * (20 + 10 * torch.sin(swing)))
    return move(motion, z=speed * t * float(skeleton.offsets[0, 1]) / 0.95)


def mirrored(motion: Motion) -> Motion:
    """Left and right exchanged, for a skeleton with symmetric offsets and no turns at rest."""
    names = [name.replace("left", "@").replace("right", "left").replace("@", "right") for name in motion.skeleton.joints]
    other = [motion.skeleton.index[name] for name in names]
    contacts = None if motion.contacts is None else motion.contacts[:, [2, 3, 0, 1]]
    flip = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64)
    return replace(motion, quats=motion.quats[:, other] * flip, root_position=motion.root_position * torch.tensor([-1.0, 1.0, 1.0]), contacts=contacts)
