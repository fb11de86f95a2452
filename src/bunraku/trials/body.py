"""A motion as the behaviour checks see it: speeds, heights and turns of the body, found by role."""

from __future__ import annotations

import math
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.kinematics.contacts import rest_ground
from bunraku.kinematics.forward import forward_kinematics, rest_poses
from bunraku.kinematics.heading import heading_of
from bunraku.kinematics.motion import Motion

SMOOTHING = 0.3  # [s] over which speeds are averaged: longer than the sway within a step
OFF_GROUND = 0.05  # [m]
STILL = 0.3  # [m/s] a slower foot stands


class Body:
    """Heights are above the ground on which the skeleton rests; `rest_hips` is how high it stands."""

    def __init__(self, motion: Motion) -> None:
        self.motion, self.fps = motion, motion.fps
        self.p = forward_kinematics(motion).p_world_joint
        rest = rest_poses(motion.skeleton).p_world_joint
        self.ground = rest_ground(motion.skeleton)
        self._rest = rest[:, 1] - self.ground
        self.rest_hips = float(self._rest[motion.skeleton.role("hips")])

    def at(self, role: str) -> Float[Tensor, "F 3"]:
        return self.p[:, self.motion.skeleton.role(role)]

    def height(self, role: str) -> Float[Tensor, " F"]:
        """[m] above the ground y = 0."""
        return self.at(role)[:, 1]

    def lift(self, role: str) -> Float[Tensor, " F"]:
        """[m] above where the joint rests."""
        return self.height(role) - self._rest[self.motion.skeleton.role(role)]

    @cached_property
    def speed(self) -> Float[Tensor, " G"]:
        """[m/s] of the hips over the ground, averaged over SMOOTHING; one value where the clip is shorter."""
        xz = self.at("hips")[:, [0, 2]]
        window = min(max(round(SMOOTHING * self.fps), 1), len(xz) - 1)
        return (xz[window:] - xz[:-window]).norm(dim=-1) * self.fps / window if window else torch.zeros(1)

    @property
    def distance(self) -> float:
        """[m] along the path of the hips, the sway of steps averaged out."""
        return float(self.speed.mean()) * (len(self.motion) - 1) / self.fps

    @cached_property
    def yaw(self) -> Float[Tensor, " F"]:
        """[rad] turned since the first frame, without jumps at half a turn; to the left is positive."""
        steps = heading_of(self.motion.skeleton, self.p).diff()
        steps = torch.atan2(steps.sin(), steps.cos())
        return torch.cat([torch.zeros(1), steps.cumsum(0)])

    @property
    def forward(self) -> float:
        """[m/s] on the way in the direction the hips face, on average: below 0 it goes backwards."""
        heading, steps = heading_of(self.motion.skeleton, self.p)[:-1], self.at("hips").diff(dim=0) * self.fps
        return float((steps[:, 0] * heading.sin() + steps[:, 2] * heading.cos()).mean()) if len(steps) else 0.0

    @cached_property
    def airborne(self) -> float:
        """[s] the longest time with both feet off the ground: higher than they were shortly before and will be shortly after, and moving.

        So neither stairs, nor a box that is stood on, nor a floor that was captured some centimetres too high are taken for a jump.
        """
        roles = [role for role in ("left_foot", "left_toe", "right_foot", "right_toe") if self.motion.skeleton.has(role)]
        lowest = torch.stack([self.lift(role) for role in roles]).amin(dim=0)
        up = lowest > self._level(lowest) + OFF_GROUND
        for side in ("left", "right"):
            step = self.at(f"{side}_foot").diff(dim=0).norm(dim=-1) * self.fps
            up &= _widened(torch.cat([step, step[-1:]]) if len(step) else torch.zeros(1), 2) > STILL
        return longest_run(up) / self.fps

    def _level(self, lowest: Float[Tensor, " F"]) -> Float[Tensor, " F"]:
        """Of the lowest places of the feet within a second before and within a second after, the higher one."""
        reach = max(round(self.fps), 1)
        padded = torch.nn.functional.pad(lowest, (reach, reach), value=math.inf)
        least = padded.unfold(0, reach + 1, 1).amin(dim=-1)
        before, after = least[: len(lowest)], least[-len(lowest) :]
        return torch.maximum(before, after)

    @cached_property
    def thighs(self) -> Float[Tensor, " F"]:
        """[rad] by which the less lifted thigh is away from hanging straight down."""
        angles = []
        for side in ("left", "right"):
            bone = self.at(f"{side}_knee") - self.at(f"{side}_hip")
            angles.append(torch.acos((-bone[:, 1] / bone.norm(dim=-1).clamp_min(1e-9)).clamp(-1, 1)))
        return torch.stack(angles).amin(dim=0)

    def path(self, role: str, about: str) -> float:
        """[m] that a joint moves in all, seen from another."""
        return float((self.at(role) - self.at(about)).diff(dim=0).norm(dim=-1).sum())

    def swings(self, role: str, about: str, least: float) -> int:
        """How often a joint turns back by at least `least` [m], seen from another, along the line on which it moves the most."""
        away = self.at(role) - self.at(about)
        away = away - away.mean(0)
        along = away @ torch.linalg.svd(away, full_matrices=False).Vh[0] if len(away) > 1 else away[:, 0]
        turns, rising, furthest = 0, None, float(along[0])
        for value in along.tolist():
            if rising is None:
                rising = None if abs(value - furthest) < least else value > furthest
                furthest = furthest if rising is None else value
            elif (value > furthest) == rising:
                furthest = value
            elif abs(value - furthest) >= least:
                turns, rising, furthest = turns + 1, not rising, value
        return turns


def longest_run(marks: Bool[Tensor, " F"]) -> int:
    """Frames of the longest unbroken stretch that is marked."""
    longest = run = 0
    for mark in marks.tolist():
        run = run + 1 if mark else 0
        longest = max(longest, run)
    return longest


def _widened(values: Float[Tensor, " F"], frames: int) -> Float[Tensor, " F"]:
    """The largest value within so many frames to either side."""
    padded = torch.nn.functional.pad(values, (frames, frames), value=-math.inf)
    return padded.unfold(0, 2 * frames + 1, 1).amax(dim=-1)
