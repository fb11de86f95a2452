"""A tree of joints: names, parents, where each joint rests in its parent, and which part of a body it plays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import RoleMissing, SkeletonProblem
from bunraku.math.rotations import quat_identity

SIDES = ("left", "right")

# A role names the *joint*, not the bone below it: left_elbow is where the forearm begins, left_foot is the ankle,
# left_toe the ball of the foot, left_hand the wrist. The hips joint is the one that carries legs and spine.
TRUNK_ROLES = ("hips", "spine", "chest", "neck", "head")
LIMB_ROLES = ("collar", "shoulder", "elbow", "hand", "hip", "knee", "foot", "toe")
ROLES = TRUNK_ROLES + tuple(f"{side}_{part}" for side in SIDES for part in LIMB_ROLES)

# The joints whose contact with the ground is tracked, in the column order of every contact array.
CONTACT_ROLES = ("left_foot", "left_toe", "right_foot", "right_toe")


@dataclass(frozen=True, kw_only=True, eq=False)
class Hinges:
    """Joints that turn about one axis only, as a robot's do. H hinges, in the order of the robot's position vector."""

    joints: tuple[str, ...]
    axes: Float[Tensor, "H 3"]  # unit, in the joint's own frame
    lower: Float[Tensor, " H"]  # [rad]
    upper: Float[Tensor, " H"]  # [rad]


@dataclass(frozen=True, kw_only=True, eq=False)
class Skeleton:
    """Joints in an order where every parent comes before its children; the root is joint 0 and has parent −1.

    The rest pose is described by `offsets` and `rest_quats`: joint j sits at `offsets[j]` in its parent's frame, turned there
    by `rest_quats[j]`. For the root the parent is the world.
    """

    name: str
    joints: tuple[str, ...]
    parents: tuple[int, ...]
    offsets: Float[Tensor, "J 3"]  # [m]
    rest_quats: Float[Tensor, "J 4"] | Any = None  # wxyz, joint in parent; None = no turn, then filled in
    roles: Mapping[str, int] = field(default_factory=dict)
    tips: Mapping[int, tuple[float, float, float]] = field(default_factory=dict)  # end of a leaf bone in its joint's frame [m]
    hinges: Hinges | None = None

    def __post_init__(self) -> None:
        _check_tree(self.name, self.joints, self.parents)
        offsets = torch.as_tensor(self.offsets)
        if not offsets.is_floating_point():
            offsets = offsets.float()
        if offsets.shape != (len(self.joints), 3):
            shape = tuple(offsets.shape)
            raise SkeletonProblem(f"skeleton '{self.name}' has {len(self.joints)} joints but offsets of shape {shape}; one row of 3 per joint is needed.")
        if not torch.isfinite(offsets).all():
            raise SkeletonProblem(f"skeleton '{self.name}' has offsets that are not finite numbers.")
        quats = quat_identity(len(self.joints), like=offsets) if self.rest_quats is None else torch.as_tensor(self.rest_quats)
        if quats.shape != (len(self.joints), 4) or not torch.isfinite(quats).all():
            given = f"{len(self.joints)} joints but rest turns of shape {tuple(quats.shape)}"
            raise SkeletonProblem(f"skeleton '{self.name}' has {given}; one finite wxyz row of 4 per joint is needed.")
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "rest_quats", quats)
        object.__setattr__(self, "roles", MappingProxyType(dict(self.roles)))
        object.__setattr__(self, "tips", MappingProxyType(dict(self.tips)))

    def __len__(self) -> int:
        return len(self.joints)

    def __repr__(self) -> str:
        return f"Skeleton({self.name!r}, {len(self)} joints, {len(self.roles)} roles)"

    def __deepcopy__(self, memo: dict[int, Any]) -> Skeleton:
        """Nothing in a skeleton changes: a copy of what holds one (a network, an average of its weights) may share it."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Read-only mappings cannot be pickled: a process that loads data gets plain ones and makes its own."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return partial(Skeleton, **{**values, "roles": dict(self.roles), "tips": dict(self.tips)}), ()

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Joint name → joint number."""
        return MappingProxyType({name: i for i, name in enumerate(self.joints)})

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        children: list[list[int]] = [[] for _ in self.joints]
        for joint, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(joint)
        return tuple(map(tuple, children))

    @cached_property
    def depth_levels(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """For each depth ≥ 1 of the tree: its joints, and the row of each one's parent among the joints one level above."""
        depth = [0] * len(self)
        for joint, parent in enumerate(self.parents):
            depth[joint] = 0 if parent < 0 else depth[parent] + 1
        levels, above = [], [0]
        for d in range(1, max(depth) + 1):
            joints = [j for j in range(len(self)) if depth[j] == d]
            levels.append((torch.tensor(joints), torch.tensor([above.index(self.parents[j]) for j in joints])))
            above = joints
        return tuple(levels)

    @cached_property
    def parents_or_self(self) -> Tensor:
        """(J,) parent numbers as a tensor, the root standing for its own parent: an index that is always valid."""
        return torch.tensor([max(parent, 0) for parent in self.parents])

    def ancestors(self, joint: int) -> list[int]:
        """The joint itself, its parent … up to the root."""
        chain = [joint]
        while self.parents[chain[-1]] >= 0:
            chain.append(self.parents[chain[-1]])
        return chain

    def path(self, top: int, joint: int) -> list[int]:
        """The joints from `top` down to `joint`, both included; empty if `joint` does not hang below `top`."""
        chain = self.ancestors(joint)
        return chain[: chain.index(top) + 1][::-1] if top in chain else []

    def has(self, *roles: str) -> bool:
        return all(role in self.roles for role in roles)

    def role(self, role: str) -> int:
        """The joint number that plays `role`."""
        if role not in self.roles:
            known = ", ".join(self.roles) or "none"
            example = f'{{"{role}": "JOINT"}}'
            raise RoleMissing(f"skeleton '{self.name}' has no joint with the role '{role}' (it has: {known}). Name it in a roles file: {example}.")
        return self.roles[role]


def _check_tree(name: str, joints: tuple[str, ...], parents: tuple[int, ...]) -> None:
    if not joints:
        raise SkeletonProblem(f"skeleton '{name}' has no joints.")
    if len(parents) != len(joints):
        raise SkeletonProblem(f"skeleton '{name}' has {len(joints)} joints but {len(parents)} parents.")
    if len(set(joints)) != len(joints):
        twice = next(joint for i, joint in enumerate(joints) if joint in joints[:i])
        raise SkeletonProblem(f"skeleton '{name}' has two joints named '{twice}'; joint names must differ.")
    roots = [joints[i] for i, parent in enumerate(parents) if parent < 0]
    if len(roots) != 1:
        raise SkeletonProblem(f"skeleton '{name}' has {len(roots)} roots ({', '.join(roots[:4])}); a skeleton is one tree with one root.")
    for joint, parent in enumerate(parents):
        if parent >= joint:
            wrong = f"joint '{joints[joint]}' comes before its parent (or the tree has a cycle)"
            raise SkeletonProblem(f"skeleton '{name}': {wrong}; order the joints from the root down.")
