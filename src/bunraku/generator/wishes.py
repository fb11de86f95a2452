"""Constraints sorted by what they ask for, frame by frame: the form in which a motion can be bent to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool
from torch import Tensor

from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.kinematics.warp import on_hinges
from bunraku.math.rotations import quat_to_matrix
from bunraku.timeline.constraints import EFFECTORS, Constraint, EffectorTarget, FootPlan, Heading, PoseKey, RootPath


@dataclass(kw_only=True, eq=False)
class WishField:
    """Values that are given in some frames; of two for one frame the first counts."""

    values: Tensor  # (F …)
    known: Bool[Tensor, " F"]

    def add(self, frames: Tensor, values: Tensor) -> None:
        for k, f in enumerate(frames.tolist()):
            if not self.known[f]:
                self.values[f], self.known[f] = values[k].to(self.values), True


@dataclass(kw_only=True, eq=False)
class Wishes:
    """All constraints of one clip, sorted by what they ask for."""

    quats: WishField  # (F J 4) whole poses; their roots are at `root`
    root: WishField
    translations: WishField | None
    path: WishField  # (F 2) the smoothed root
    heading: WishField
    contacts: WishField  # (F 4)
    places: dict[str, WishField] = field(default_factory=dict)  # effector → (F 3)
    turns: dict[str, WishField] = field(default_factory=dict)  # effector → (F 3 3)

    @staticmethod
    def of(motion: Motion, constraints: Sequence[Constraint]) -> Wishes:
        def blank(like: Tensor) -> WishField:
            return WishField(values=like.clone(), known=torch.zeros(len(motion), dtype=torch.bool))

        plane = motion.root_position[:, [0, 2]]
        stretched = any(isinstance(c, PoseKey) and c.poses.translations is not None for c in constraints) or motion.translations is not None
        offsets = motion.skeleton.offsets.to(motion.quats).expand(len(motion), -1, 3)
        w = Wishes(
            quats=blank(motion.quats),
            root=blank(motion.root_position),
            translations=blank(offsets) if stretched else None,
            path=blank(plane),
            heading=blank(plane[:, 0]),
            contacts=blank(torch.zeros(len(motion), 4, dtype=torch.bool)),
        )
        for effector in EFFECTORS:
            w.places[effector] = blank(motion.root_position)
            w.turns[effector] = blank(torch.eye(3, dtype=torch.float64).expand(len(motion), 3, 3))
        for constraint in constraints:
            w._add(constraint, motion.skeleton)
        return w

    def _add(self, constraint: Constraint, skeleton: Skeleton) -> None:
        frames = constraint.frames.cpu()
        match constraint:
            case RootPath(xz=xz, heading=heading):
                self.path.add(frames, xz)
                if heading is not None:
                    self.heading.add(frames, heading)
            case Heading(heading=heading):
                self.heading.add(frames, heading)
            case FootPlan(contacts=contacts):
                self.contacts.add(frames, contacts)
            case EffectorTarget(effector=effector, position=position, quats=quats):
                if position is not None:
                    self.places[effector].add(frames, position)
                if quats is not None:
                    self.turns[effector].add(frames, quat_to_matrix(quats.double()))
            case PoseKey(poses=poses, effectors=None):
                poses = on_hinges(poses.to("cpu", torch.float64))
                self.quats.add(frames, poses.quats)
                self.root.add(frames, poses.root_position)
                if self.translations is not None:
                    self.translations.add(frames, skeleton.offsets.expand(len(poses), -1, 3) if poses.translations is None else poses.translations)
            case PoseKey(poses=poses, effectors=effectors):
                world = forward_kinematics(poses.to("cpu", torch.float64))
                for effector in effectors or ():
                    self.places[effector].add(frames, world.p_world_joint[:, skeleton.role(effector)])
                    self.turns[effector].add(frames, world.R_world_joint[:, skeleton.role(effector)])

    @property
    def whole(self) -> Bool[Tensor, " F"]:
        return self.quats.known

    def anywhere(self) -> Bool[Tensor, " F"]:
        """Frames in which anything at all is asked for."""
        fields = [self.quats, self.path, self.heading, *self.places.values(), *self.turns.values()]
        return torch.stack([f.known for f in fields]).any(dim=0)
