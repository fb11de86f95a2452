"""A way out of bad local minima: in frames where a limb is caught in one, it borrows the pose it has a few frames away.

Descent from one fixed pose can leave an arm hanging for some frames of a throw, because raising it either way first makes things
worse. Its pose just before or after the throw is near the right one, so trying that is enough; descent then does the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.inverse import Target, misses
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton

REACH = (1, 2, 4, 8, 16)  # [frames] how far away poses are borrowed
MUCH_BETTER = 0.8  # a borrowed pose must leave less than this share of the frame's squared misses


def borrow_limbs(motion: Motion, targets: Sequence[Target]) -> Motion:
    """The motion with single limbs in single frames posed as in a nearby frame, wherever that meets the targets much better.

    It is the very same object if no frame is helped.
    """
    quats, cost = motion.quats, _cost(motion, targets)
    frames = torch.arange(len(motion))
    for limb in unbranched_chains(motion.skeleton):
        for reach in REACH:
            for lender in ((frames - reach).clamp_min(0), (frames + reach).clamp_max(len(motion) - 1)):
                tried = quats.clone()
                tried[:, limb] = quats[lender][:, limb]
                new_cost = _cost(replace(motion, quats=tried), targets)
                better = new_cost < MUCH_BETTER * cost
                quats = torch.where(better[:, None, None], tried, quats)
                cost = torch.where(better, new_cost, cost)
    return motion if torch.equal(quats, motion.quats) else replace(motion, quats=quats)


def unbranched_chains(skeleton: Skeleton) -> list[list[int]]:
    """The joints below the root in runs without a branch: a robot's two legs, its waist, its two arms."""
    chains: list[list[int]] = []
    of_joint: dict[int, list[int]] = {}
    for joint, parent in enumerate(skeleton.parents[1:], start=1):
        if parent in of_joint and len(skeleton.children[parent]) == 1:
            of_joint[joint] = of_joint[parent]
        else:
            of_joint[joint] = []
            chains.append(of_joint[joint])
        of_joint[joint].append(joint)
    return chains


def _cost(motion: Motion, targets: Sequence[Target]) -> Float[Tensor, " F"]:
    return misses(forward_kinematics(motion), targets).square().sum(dim=-1)
