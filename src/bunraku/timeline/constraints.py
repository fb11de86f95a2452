"""What the body must do at chosen frames. A closed union: whatever handles constraints handles these five.

Every constraint holds at K frames, numbered from the start of the timeline; the k-th row of each array belongs to `frames[k]`.
Positions are metres in the world, headings yaw angles (0 faces +Z, positive towards +X), turns unit quaternions wxyz.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor

from bunraku.kinematics.motion import Motion

EFFECTORS = ("left_hand", "right_hand", "left_foot", "right_foot", "hips")  # roles that can be constrained on their own


@dataclass(frozen=True, kw_only=True, eq=False)
class RootPath:
    """Where the smoothed root passes: a few waypoints, or a path with one point for every frame of a stretch."""

    frames: Int[Tensor, " K"]
    xz: Float[Tensor, "K 2"]  # [m], world x and z
    heading: Float[Tensor, " K"] | None = None  # [rad]


@dataclass(frozen=True, kw_only=True, eq=False)
class Heading:
    """Which way the hips face."""

    frames: Int[Tensor, " K"]
    heading: Float[Tensor, " K"]  # [rad]


@dataclass(frozen=True, kw_only=True, eq=False)
class PoseKey:
    """The pose of the whole body, or of a part of it: the released formats give a hand or foot by the whole pose around it.

    With `effectors` only those parts must be met; the hips of the pose then say about where the body is, as in the release.
    """

    frames: Int[Tensor, " K"]
    poses: Motion  # K frames; its frame rate means nothing
    smooth_xz: Float[Tensor, "K 2"] | None = None  # [m] the smoothed root there; None: below the hips
    effectors: tuple[str, ...] | None = None  # of EFFECTORS; None: the whole body


@dataclass(frozen=True, kw_only=True, eq=False)
class EffectorTarget:
    """Where one hand, foot or the hips is, how it is turned, or both; nothing is said of the rest of the body."""

    frames: Int[Tensor, " K"]
    effector: str  # of EFFECTORS
    position: Float[Tensor, "K 3"] | None = None  # [m], world
    quats: Float[Tensor, "K 4"] | None = None  # wxyz, joint in world


@dataclass(frozen=True, kw_only=True, eq=False)
class FootPlan:
    """Which parts of the feet stand on the ground: columns as `skeleton.CONTACT_ROLES`."""

    frames: Int[Tensor, " K"]
    contacts: Bool[Tensor, "K 4"]


Constraint = RootPath | Heading | PoseKey | EffectorTarget | FootPlan
