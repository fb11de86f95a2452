"""A body with one limb, for tests of finding limbs."""

from __future__ import annotations

import torch

from bunraku.geometry.mesh import Mesh
from bunraku.geometry.primitives import capsule
from bunraku.kinematics.skeleton import Skeleton
from bunraku.rig.character import Character
from bunraku.rig.rig import rig_for


def worm() -> Character:
    """A stem on a long foot, and an arm of three bones that hangs beside it."""
    parts = [capsule(torch.tensor([0.0, 0.2, 0.0]), torch.tensor([0.0, 1.4, 0.0]), 0.12, 0.12, segments=8, rings=2, spans=4)]
    parts.append(capsule(torch.tensor([0.0, 0.1, -0.9]), torch.tensor([0.0, 0.1, 0.9]), 0.05, 0.05, segments=8, rings=2, spans=4))
    for joint in range(3):
        top = 1.2 - 0.3 * joint
        parts.append(capsule(torch.tensor([0.3, top, 0.0]), torch.tensor([0.3, top - 0.3, 0.0]), 0.07, 0.06, segments=8, rings=2, spans=2))
    sizes = [len(part.vertices) for part in parts]
    starts = [sum(sizes[:i]) for i in range(5)]
    mesh = Mesh(vertices=torch.cat([part.vertices for part in parts]), faces=torch.cat([part.faces + start for part, start in zip(parts, starts, strict=True)]))
    bones = Skeleton(
        name="worm", joints=("stem", "other", "a", "b", "c"), parents=(-1, 0, 0, 2, 3),
        offsets=torch.tensor([[0.0, 0.2, 0.0], [0.0, 1.0, 0.0], [0.3, 1.0, 0.0], [0.0, -0.3, 0.0], [0.0, -0.3, 0.0]]),
    )  # fmt: skip
    owner = torch.repeat_interleave(torch.tensor([1, 1, 2, 3, 4]), torch.tensor(sizes))
    return Character(name="worm", mesh=mesh, rig=rig_for(bones, torch.nn.functional.one_hot(owner, 5).float()))
