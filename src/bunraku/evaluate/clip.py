"""What every metric looks at, worked out once per motion: world poses, foot contacts, the ground, the size of the body."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.evaluate.metric import metric
from bunraku.kinematics.contacts import body_scale, contacts_from_positions, ground_from_positions, sole_positions
from bunraku.kinematics.forward import WorldPoses, forward_kinematics
from bunraku.kinematics.motion import Motion, is_finite
from bunraku.kinematics.skeleton import CONTACT_ROLES, Skeleton

UP = 1  # the axis that points up


@dataclass(frozen=True, kw_only=True, eq=False)
class Feet:
    """The feet of a clip and when they stand."""

    contacts: Bool[Tensor, "F 4"]  # columns: skeleton.CONTACT_ROLES
    stored: bool  # the motion came with them; otherwise detected at `level`
    soles: dict[str, Float[Tensor, "F _ 3"]]  # side → points of its sole, world [m]
    level: float  # [m] the height the feet seem to stand on
    scale: float  # the body against a person: lengths meant for people are multiplied by it

    def side_contacts(self, side: str) -> Bool[Tensor, " F"]:
        """Where any joint of that side's foot is in contact."""
        return self.contacts[:, [c for c, role in enumerate(CONTACT_ROLES) if role.startswith(side)]].any(dim=-1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Clip:
    """A motion made ready to be measured."""

    motion: Motion
    poses: WorldPoses
    ground: float  # [m] where the ground is meant to be
    feet: Feet | None  # None where the skeleton has no foot roles

    @property
    def skeleton(self) -> Skeleton:
        return self.motion.skeleton

    @property
    def fps(self) -> float:
        return self.motion.fps

    @property
    def hips(self) -> int:
        """The joint that stands for the whole body."""
        return self.skeleton.roles.get("hips", 0)

    def position(self, role: str) -> Float[Tensor, "F 3"]:
        return self.poses.p_world_joint[:, self.skeleton.role(role)]


@dataclass(frozen=True, kw_only=True)
class ClipMetrics:
    """How long and how far."""

    duration: float | None = metric("s", "frames / fps")
    frames: int | None = metric("1", "number of frames")
    fps: float | None = metric("1/s", "frames per second")
    distance: float | None = metric("m", "length of the hips' path on the ground")
    speed: float | None = metric("m/s", "distance over the time between first and last frame")


def prepare(motion: Motion, ground: float) -> Clip:
    """Derives what the metrics need; a motion that is not finite is refused."""
    _refuse_non_finite(motion)
    motion = motion.to("cpu")
    poses = forward_kinematics(motion)
    return Clip(motion=motion, poses=poses, ground=ground, feet=_feet(motion, poses))


def clip_metrics(clip: Clip) -> ClipMetrics:
    frames = len(clip.motion)
    p_ground = clip.poses.p_world_joint[:, clip.hips][:, [0, 2]]
    distance = float(p_ground.diff(dim=0).norm(dim=-1).sum())
    speed = distance * clip.fps / (frames - 1) if frames > 1 else None
    return ClipMetrics(duration=clip.motion.seconds, frames=frames, fps=float(clip.fps), distance=distance, speed=speed)


def _feet(motion: Motion, poses: WorldPoses) -> Feet | None:
    skeleton, p, fps = motion.skeleton, poses.p_world_joint, motion.fps
    if not any(skeleton.has(role) for role in CONTACT_ROLES):
        return None
    level = ground_from_positions(skeleton, p, fps)
    stored = motion.contacts is not None
    contacts = motion.contacts.cpu() if motion.contacts is not None else contacts_from_positions(skeleton, p, fps, ground=level)
    return Feet(contacts=contacts, stored=stored, soles=sole_positions(skeleton, p, poses.R_world_joint), level=level, scale=body_scale(skeleton))


def _refuse_non_finite(motion: Motion) -> None:
    if is_finite(motion):
        return
    wrong = ~torch.isfinite(motion.quats).all(dim=-1)
    wrong[:, 0] |= ~torch.isfinite(motion.root_position).all(dim=-1)
    if motion.translations is not None:
        wrong |= ~torch.isfinite(motion.translations).all(dim=-1)
    frame, joint = wrong.nonzero()[0].tolist()
    raise BadValue(
        f"this motion cannot be measured: frame {frame}, joint '{motion.skeleton.joints[joint]}', holds numbers that are not finite. "
        "Cut the motion before that frame or repair its source."
    )
