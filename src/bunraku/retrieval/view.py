"""What the retriever sees of a motion: how a body moves, wherever it is and whichever way it faces.

    turn         1    turning of the hips [rad/s]
    positions    3J   joints [m], counted from below the hips and in the direction they face
    velocities   3J   of joints in the world [m/s], in the direction the hips face
    contacts     4    of skeleton.CONTACT_ROLES

Nothing here depends on the smoothed root, so that a crop looks the same as that stretch of the whole clip does.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.generator.features import FeatureLayout, on_ground
from bunraku.kinematics.skeleton import CONTACT_ROLES, Skeleton
from bunraku.kinematics.symmetry import NO_PARTNER, mirror_pairs


def view_width(layout: FeatureLayout) -> int:
    """V, the numbers a frame."""
    return 1 + 6 * layout.joints + len(CONTACT_ROLES)


def motion_view(layout: FeatureLayout, features: Float[Tensor, "*batch F D"], valid: Bool[Tensor, "*batch F"] | None = None) -> Float[Tensor, "*batch F V"]:
    """The view of a motion's features (not normalised); of frames that are not valid, 0. The last valid frame turns as the one before."""
    cos, sin = _facing(features[..., layout.heading])
    p = features[..., layout.joint_positions].unflatten(-1, (layout.joints, 3))
    v = features[..., layout.joint_velocities].unflatten(-1, (layout.joints, 3))
    seen = [_turned_back(vectors, cos, sin).flatten(-2) for vectors in (p - on_ground(p[..., :1, :]), v)]
    view = torch.cat([_turning(cos, sin, layout.fps, valid)[..., None], *seen, features[..., layout.contacts]], dim=-1)
    return view if valid is None else view * valid[..., None]


def _facing(heading: Float[Tensor, "*batch F 2"]) -> tuple[Float[Tensor, "*batch F"], Float[Tensor, "*batch F"]]:
    """Cosine and sine of a heading that may not be of length 1."""
    psi = torch.atan2(heading[..., 1], heading[..., 0])
    return psi.cos(), psi.sin()


def _turned_back(p_world: Float[Tensor, "*batch F J 3"], cos: Float[Tensor, "*batch F"], sin: Float[Tensor, "*batch F"]) -> Float[Tensor, "*batch F J 3"]:
    """Vectors in the frame of a body whose heading has this cosine and sine."""
    x, y, z = p_world.unbind(-1)
    cos, sin = cos[..., None], sin[..., None]
    return torch.stack([cos * x - sin * z, y, sin * x + cos * z], dim=-1)


def _turning(cos: Float[Tensor, "*batch F"], sin: Float[Tensor, "*batch F"], fps: float, valid: Bool[Tensor, "*batch F"] | None) -> Float[Tensor, "*batch F"]:
    if cos.shape[-1] < 2:
        return torch.zeros_like(cos)
    across = sin[..., 1:] * cos[..., :-1] - cos[..., 1:] * sin[..., :-1]
    along = cos[..., 1:] * cos[..., :-1] + sin[..., 1:] * sin[..., :-1]
    turns = torch.atan2(across, along) * fps
    turns = torch.cat([turns, turns[..., -1:]], dim=-1)
    if valid is None:
        return turns
    frames = torch.arange(cos.shape[-1], device=cos.device)
    last_step = (valid.sum(dim=-1, keepdim=True) - 2).clamp_min(0)
    turns = turns.gather(-1, torch.minimum(frames, last_step))
    return turns * (valid.sum(dim=-1, keepdim=True) > 1)


def mirror_view(skeleton: Skeleton, view: Float[Tensor, "*batch F V"]) -> Float[Tensor, "*batch F V"]:
    """The view of the same motion with left and right swapped, on a skeleton whose sides are alike."""
    joints = len(skeleton)
    partner = [joint if other == NO_PARTNER else other for joint, other in enumerate(mirror_pairs(skeleton))]
    across = torch.tensor([-1.0, 1.0, 1.0], device=view.device, dtype=view.dtype)
    vectors = view[..., 1:-4].unflatten(-1, (2, joints, 3))[..., partner, :] * across
    sides = [CONTACT_ROLES.index(_other_side(role)) for role in CONTACT_ROLES]
    return torch.cat([-view[..., :1], vectors.flatten(-3), view[..., -4:][..., sides]], dim=-1)


def _other_side(role: str) -> str:
    side, part = role.split("_")
    return f"{'right' if side == 'left' else 'left'}_{part}"
