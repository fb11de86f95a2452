"""What a denoiser's guess at the clean motion is charged for: the seven terms of kimodo §4.3 (Eq. 1), and two of ours.

    root, heading, positions, velocities, rotations, contacts    block by block, in normalised features
    forward     where the predicted rotations put the joints, against where they are
    motion      how fast the predicted rotations and root move the joints: what jitters is charged here
    skate       … and the feet while they stand, against a walking speed of the foot

Every term is a smooth L1 (Huber with beta 1) of features in units of their spread. A clip counts as one, however long it is.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from bunraku.generator.features import FeatureLayout
from bunraku.generator.stats import Stats
from bunraku.kinematics.contacts import CONTACT_SPEED, contact_joints
from bunraku.math.rotations import rot6d_to_matrix


@dataclass(frozen=True, kw_only=True)
class LossWeights:
    """γ of each term. The first seven are the paper's."""

    root: float = 10.0
    heading: float = 2.0
    positions: float = 10.0
    velocities: float = 3.0
    rotations: float = 10.0
    contacts: float = 4.0
    forward: float = 5.0
    motion: float = 0.0
    skate: float = 0.0


class MotionLoss(nn.Module):
    """The terms for one body and its statistics, on normalised features."""

    mean: Tensor
    scale: Tensor
    spread_by: Tensor
    carried_by: Tensor
    bones: Tensor

    def __init__(self, layout: FeatureLayout, stats: Stats, weights: LossWeights = LossWeights()) -> None:
        super().__init__()
        self.layout, self.weights = layout, weights
        spread = stats.features
        parents = torch.tensor(layout.skeleton.parents).clamp_min(0)
        below = torch.zeros(layout.joints, layout.joints)  # which bones lead from the root to a joint
        for joint in range(1, layout.joints):
            below[joint] = below[parents[joint]]
            below[joint, joint] = 1.0
        self.register_buffer("mean", spread.mean.clone())
        self.register_buffer("scale", spread.scale.clone())
        self.register_buffer("bones", layout.skeleton.offsets.float().clone())
        self.register_buffer("carried_by", parents)
        self.register_buffer("spread_by", below)

    def forward(
        self, guess: Float[Tensor, "B F D"], clean: Float[Tensor, "B F D"], valid: Bool[Tensor, "B F"] | None = None
    ) -> dict[str, Float[Tensor, ""]]:
        """The weighted terms by name; their sum is the loss."""
        guess, clean = guess.float(), clean.float()
        here = torch.ones_like(clean[..., 0]) if valid is None else valid.to(clean.dtype)
        away = _huber(guess - clean)
        layout = self.layout
        blocks = {
            "root": layout.smooth_root,
            "heading": layout.heading,
            "positions": layout.joint_positions,
            "velocities": layout.joint_velocities,
            "rotations": layout.joint_rotations,
            "contacts": layout.contacts,
        }
        terms = {name: _mean(away[..., columns].mean(-1), here) for name, columns in blocks.items()}
        if self.weights.forward or self.weights.motion or self.weights.skate:
            terms |= self._by_rotations(guess, clean, here)
        return {field.name: getattr(self.weights, field.name) * terms[field.name] for field in fields(self.weights) if getattr(self.weights, field.name)}

    def _by_rotations(self, guess: Tensor, clean: Tensor, here: Tensor) -> dict[str, Tensor]:
        """The terms that ask where the predicted rotations carry the joints."""
        layout, world, true = self.layout, guess * self.scale + self.mean, clean * self.scale + self.mean
        columns = layout.joint_positions
        placed = self.joints_by_rotations(world, true)  # around the true root joint, counted from the smoothed root
        terms = {"forward": _mean(_huber((placed - true[..., columns]) / self.scale[columns]).mean(-1), here)}
        if not (self.weights.motion or self.weights.skate) or guess.shape[1] < 2:
            return terms | dict.fromkeys(("motion", "skate"), guess.new_zeros(()))
        p = self.joints_by_rotations(world, world).unflatten(-1, (layout.joints, 3))
        p = torch.cat([p[..., :1] + world[..., None, 0:1], p[..., 1:2], p[..., 2:] + world[..., None, 2:3]], dim=-1)
        speed = (p[:, 1:] - p[:, :-1]) * layout.fps
        off = speed - true[:, :-1, layout.joint_velocities].unflatten(-1, (layout.joints, 3))
        moves = here[:, 1:]
        scale = self.scale[layout.joint_velocities].unflatten(-1, (layout.joints, 3))
        terms["motion"] = _mean(_huber(off / scale).mean((-1, -2)), moves)
        parts, joints = contact_joints(layout.skeleton)
        standing = (true[:, :-1, layout.contacts][..., parts] > 0.5).to(off.dtype)
        slides = _huber(off[:, :, joints] / CONTACT_SPEED).mean(-1)
        terms["skate"] = _mean((slides * standing).mean(-1), moves)
        return terms

    def joints_by_rotations(self, features: Float[Tensor, "B F D"], root: Float[Tensor, "B F D"]) -> Float[Tensor, "B F _"]:
        """Joint positions [m] as the columns of joint positions count them, from the rotations of `features` and the root joint of `root`."""
        layout = self.layout
        R_world = rot6d_to_matrix(features[..., layout.joint_rotations].unflatten(-1, (layout.joints, 6)))
        bones = (R_world[..., self.carried_by, :, :] * self.bones[:, None, :]).sum(-1)
        from_root = torch.einsum("jk,bfkc->bfjc", self.spread_by, bones)
        return (from_root + root[..., None, layout.position_columns(0)]).flatten(-2)


def _huber(x: Tensor) -> Tensor:
    size = x.abs()
    return torch.where(size < 1, 0.5 * x * x, size - 0.5)


def _mean(values: Float[Tensor, "B F"], here: Float[Tensor, "B F"]) -> Float[Tensor, ""]:
    """Over the frames of each clip, then over the clips: so ranks that share a batch get the loss of the whole."""
    return ((values * here).sum(1) / here.sum(1).clamp_min(1)).mean()
