"""The measures of a body that has only joints: how tall it is, where it stands, how thick each bone should look, which side it is on.

A standing humanoid (recognised by its roles) gets human proportions as fractions of its stature, so that a skeleton of any scale
looks the same. Every other skeleton gets the pipe model of trees: a bone is as thick as the square root of everything that hangs on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.skeleton import SIDES, Skeleton

_NEEDED = tuple(f"{side}_{part}" for side in SIDES for part in ("hip", "knee", "foot", "shoulder", "elbow", "hand"))

# Radii as fractions of the stature, at the joint that begins and the one that ends each limb segment.
LIMBS = (("hip", "knee", 0.052, 0.034), ("knee", "foot", 0.034, 0.023), ("shoulder", "elbow", 0.033, 0.025), ("elbow", "hand", 0.025, 0.017))
COLLAR = 0.024
LEG, TRUNK = 0.49, 0.30  # hip to ankle, and hips to shoulders, as fractions of the stature


@dataclass(frozen=True, kw_only=True, eq=False)
class Body:
    """A skeleton in its rest pose, measured."""

    skeleton: Skeleton
    p_world_joint: Float[Tensor, "J 3"]  # [m]
    R_world_joint: Float[Tensor, "J 3 3"]

    def at(self, role: str) -> Float[Tensor, "3"]:
        return self.p_world_joint[self.skeleton.role(role)]

    def middle(self, *roles: str) -> Float[Tensor, "3"]:
        return torch.stack([self.at(role) for role in roles]).mean(0)

    @cached_property
    def reach(self) -> float:
        """The longest side of the box around all joints and tips [m]; 1 for a skeleton of a single point."""
        points = torch.cat([self.p_world_joint, *(self.tip(joint)[None] for joint in self.skeleton.tips)])
        extent = float((points.amax(0) - points.amin(0)).max())
        return extent if extent > 0 else 1.0

    @cached_property
    def is_humanoid(self) -> bool:
        """Has two legs and two arms, and stands with the shoulders above the hips and those above the feet."""
        if not self.skeleton.has("hips", *_NEEDED):
            return False
        up = self.middle("left_shoulder", "right_shoulder") - self.middle("left_hip", "right_hip")
        down = self.middle("left_hip", "right_hip") - self.middle("left_foot", "right_foot")
        apart = (self.at("left_hip") - self.at("right_hip")).norm()
        return bool(up[1] > 0.7 * up.norm()) and bool(down[1] > 0.5 * down.norm()) and bool(apart > 0)

    @cached_property
    def stature(self) -> float:
        """The height of a human with these legs and this trunk [m]."""
        legs = [(self.at(f"{s}_hip") - self.at(f"{s}_knee")).norm() + (self.at(f"{s}_knee") - self.at(f"{s}_foot")).norm() for s in SIDES]
        trunk = (self.middle("left_shoulder", "right_shoulder") - self.middle("left_hip", "right_hip")).norm()
        return float((legs[0] + legs[1]) / 2 / LEG + trunk / TRUNK) / 2

    @cached_property
    def trunk_frame(self) -> tuple[Float[Tensor, "3"], Float[Tensor, "3"], Float[Tensor, "3"]]:
        """The trunk's left, up and front, at right angles."""
        up = normalize(self.middle("left_shoulder", "right_shoulder") - self.middle("left_hip", "right_hip"), dim=0)
        left = self.at("left_hip") - self.at("right_hip")
        left = normalize(left - (left @ up) * up, dim=0)
        return left, up, torch.linalg.cross(left, up)

    @cached_property
    def ground(self) -> float:
        """The height of the floor under the rest pose: y = 0 where the lowest joint is just above it, else that joint [m]."""
        lowest = float(self.p_world_joint[:, 1].min())
        return 0.0 if -0.01 * self.reach <= lowest <= 0.06 * self.reach else lowest

    @cached_property
    def upper_chest(self) -> int:
        """The joint that carries both shoulders."""
        right = set(self.skeleton.ancestors(self.skeleton.role("right_shoulder")))
        return next(joint for joint in self.skeleton.ancestors(self.skeleton.role("left_shoulder")) if joint in right)

    @cached_property
    def centre(self) -> int:
        """The hips; without that role the first joint that branches. What lies above it only carries the body through the world."""
        if self.skeleton.has("hips"):
            return self.skeleton.role("hips")
        return next((joint for joint, children in enumerate(self.skeleton.children) if len(children) > 1), 0)

    def tip(self, joint: int) -> Float[Tensor, "3"]:
        """The end of a leaf bone in the world; the joint itself where the skeleton names none."""
        offset = torch.tensor(self.skeleton.tips.get(joint, (0.0, 0.0, 0.0))).to(self.p_world_joint)
        return self.p_world_joint[joint] + self.R_world_joint[joint] @ offset

    def below(self, joint: int) -> set[int]:
        """The joint and everything that hangs on it."""
        found = {joint}
        for j, parent in enumerate(self.skeleton.parents):
            if parent in found:
                found.add(j)
        return found

    @cached_property
    def sides(self) -> tuple[str, ...]:
        """For each joint 'left', 'right' or 'trunk': by the roles of what it hangs on; beside a humanoid's, by where it rests."""
        own = {joint: role.split("_")[0] for role, joint in self.skeleton.roles.items() if role.startswith(SIDES)}
        margin = float("inf") if self.is_humanoid else 0.02 * self.reach
        x = (self.p_world_joint[:, 0] - self.p_world_joint[self.centre, 0]).tolist()
        sides: list[str] = []
        for joint, parent in enumerate(self.skeleton.parents):
            above = sides[parent] if parent >= 0 else "trunk"
            here = "left" if x[joint] > margin else "right" if x[joint] < -margin else "trunk"
            sides.append(own.get(joint, here if above == "trunk" else above))
        return tuple(sides)

    @cached_property
    def bones(self) -> tuple[int, ...]:
        """The joints whose bone, from the parent to the joint, is part of the body.

        Not those above the centre, nor what hangs up there beside it, nor handles: leaves far away among siblings that are limbs.
        """
        skeleton, above = self.skeleton, set(self.skeleton.ancestors(self.centre)[1:])
        length = (self.p_world_joint - self.p_world_joint[skeleton.parents_or_self]).norm(dim=-1)
        long = 3 * float(length[length > 1e-3 * self.reach].median()) if bool((length > 1e-3 * self.reach).any()) else 0.0
        playing = set(skeleton.roles.values()) | set(skeleton.tips)

        def is_handle(joint: int) -> bool:
            siblings = skeleton.children[skeleton.parents[joint]]
            far = float(length[joint]) > long and not skeleton.children[joint] and joint not in playing
            return far and any(skeleton.children[sibling] for sibling in siblings)

        joints = [joint for joint, parent in enumerate(skeleton.parents) if parent >= 0 and parent not in above]
        return tuple(joint for joint in joints if not is_handle(joint))

    @cached_property
    def pipe_radius(self) -> tuple[float, ...]:
        """A radius for the bone that ends in each joint: √(bone length hanging on it), not thicker than its unbranched run is long [m]."""
        skeleton = self.skeleton
        length = (self.p_world_joint - self.p_world_joint[skeleton.parents_or_self]).norm(dim=-1).tolist()
        hanging, run_below = list(length), list(length)
        for joint in range(len(skeleton) - 1, 0, -1):
            hanging[skeleton.parents[joint]] += hanging[joint]
            if len(skeleton.children[joint]) == 1:
                run_below[joint] += run_below[skeleton.children[joint][0]]
        total, run = max(sum(length), 1e-9), list(run_below)
        for joint in range(1, len(skeleton)):
            parent = skeleton.parents[joint]
            if len(skeleton.children[parent]) == 1:
                run[joint] = run[parent]
        thickest = 0.075 * self.reach
        return tuple(max(min(thickest * (hanging[j] / total) ** 0.5, 0.35 * run[j]), 0.004 * self.reach) for j in range(len(skeleton)))


def measure(skeleton: Skeleton) -> Body:
    poses = rest_poses(skeleton)
    return Body(skeleton=skeleton, p_world_joint=poses.p_world_joint.float(), R_world_joint=poses.R_world_joint.float())
