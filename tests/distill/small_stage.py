"""A puppet of two bones on its stage, and clips of it whose motion is known."""

from __future__ import annotations

import math
from functools import lru_cache

import torch

from bunraku.distill.bone_boxes import BoneBoxes, bone_boxes
from bunraku.distill.stage import Shot, Stage, set_stage
from bunraku.distill.trajectory import ORDER, Timing, Trajectory
from bunraku.splats import from_mesh
from tests.splats.puppet import puppet

TIMING = Timing(frames=6, fps=8.0)
SIDE = 32  # [px]


@lru_cache
def stage() -> tuple[Stage, BoneBoxes]:
    character = puppet()
    made = set_stage(character, from_mesh(character, views=0, count=150), TIMING.fps, Shot(aside=20.0))
    return made, bone_boxes(character, 0.0)


def rest(basis: str = "frames") -> Trajectory:
    return Trajectory(puppet().rig, TIMING, basis=basis)  # type: ignore[arg-type]


def waving(most: float = 0.5) -> Trajectory:
    """The upper half tilts to and fro."""
    made = rest()
    made.angles.data[:, 0, ORDER.index("z")] = most * torch.sin(torch.linspace(0, 2 * math.pi, TIMING.frames))
    return made


def clip(trajectory: Trajectory) -> torch.Tensor:
    with torch.no_grad():
        return stage()[0].film(trajectory.poses(), SIDE, SIDE)
