"""Which way a body faces: the yaw of its hips, from where the two hip joints are. 0 faces +Z, positive turns towards +X."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.kinematics.skeleton import Skeleton


def heading_of(skeleton: Skeleton, p_world_joint: Float[Tensor, "*batch J 3"]) -> Float[Tensor, "*batch"]:
    """The heading [rad] of world joint positions."""
    d = p_world_joint[..., skeleton.role("right_hip"), :] - p_world_joint[..., skeleton.role("left_hip"), :]
    return torch.atan2(d[..., 2], -d[..., 0])


def heading_vector(heading: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch 2"]:
    """(cos, sin) of a heading, as the released models and files hold it."""
    return torch.stack([heading.cos(), heading.sin()], dim=-1)
