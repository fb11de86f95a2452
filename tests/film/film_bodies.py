"""Small motions for the tests of films: a walker, and a box on one joint that goes where it is told."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from bunraku.geometry.primitives import box
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.kinematics.walk import walk
from bunraku.rig.character import Character
from bunraku.rig.rig import rig_for

POINT = Skeleton(name="point", joints=("root",), parents=(-1,), offsets=torch.zeros(1, 3))


def walker(seconds: float = 1.0, fps: float = 10.0) -> Motion:
    return walk(skeleton("soma30"), seconds=seconds, fps=fps)


def cube(side: float = 1.0) -> Character:
    """A cube about its one joint."""
    mesh = box(torch.zeros(3), torch.full((3,), side), torch.eye(3), rounding=0.01 * side, grid=2)
    return Character(name="cube", mesh=mesh, rig=rig_for(POINT, torch.ones(len(mesh.vertices), 1)))


def moved(places: Sequence[Sequence[float]] | torch.Tensor, fps: float = 10.0) -> Motion:
    """The joint at these places, never turned."""
    p = torch.as_tensor(places, dtype=torch.float32)
    return Motion(skeleton=POINT, fps=fps, root_position=p, quats=torch.tensor([1.0, 0, 0, 0]).expand(len(p), 1, 4).clone())
