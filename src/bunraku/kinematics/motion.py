"""A clip: one skeleton, a frame rate, where the root is and how every joint is turned, frame by frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.errors import BadValue, SkeletonMismatch
from bunraku.kinematics.skeleton import Skeleton


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a motion comes from; travels with it through every file that can hold it."""

    prompt: str | None = None
    seed: int | None = None
    model: str | None = None
    version: str | None = None  # of bunraku, where bunraku made the motion
    source: str | None = None  # the file it was read from
    notes: Mapping[str, str] = field(default_factory=dict)  # what a reader had to assume: units, repairs

    def noted(self, **notes: str) -> Provenance:
        return replace(self, notes={**self.notes, **notes})


@dataclass(frozen=True, kw_only=True, eq=False)
class Motion:
    """F frames of a skeleton with J joints, in the world of `docs/conventions.md`: +Y up, metres, characters face +Z.

    `quats[:, j]` turns joint j in its parent's frame (the root: in the world) and equals `skeleton.rest_quats[j]` at rest.
    `translations`, where given, replaces `skeleton.offsets` frame by frame: bones that stretch, or a hips joint that moves
    below a fixed root. Its row for the root is ignored; `root_position` says where the root is.
    """

    skeleton: Skeleton
    fps: float
    root_position: Float[Tensor, "F 3"]  # [m], world
    quats: Float[Tensor, "F J 4"]  # wxyz, joint in parent
    translations: Float[Tensor, "F J 3"] | None = None  # [m], joint in parent
    contacts: Bool[Tensor, "F 4"] | None = None  # columns: skeleton.CONTACT_ROLES
    provenance: Provenance = Provenance()

    def __post_init__(self) -> None:
        frames, joints = self.quats.shape[0], len(self.skeleton)
        if not (self.fps > 0 and self.fps < float("inf")):
            raise BadValue(f"a motion needs a positive frame rate; got {self.fps} frames per second.")
        if frames == 0:
            raise BadValue("a motion needs at least one frame; got none.")
        if self.quats.shape != (frames, joints, 4):
            body = f"skeleton '{self.skeleton.name}' has {joints} joints"
            raise SkeletonMismatch(f"quats have shape {tuple(self.quats.shape)}, but {body}: ({frames}, {joints}, 4) is needed.")
        for name, expected in (("root_position", (frames, 3)), ("translations", (frames, joints, 3)), ("contacts", (frames, 4))):
            value = getattr(self, name)
            if value is not None and tuple(value.shape) != expected:
                raise SkeletonMismatch(f"{name} has shape {tuple(value.shape)}; {expected} is needed to fit {frames} frames of '{self.skeleton.name}'.")

    def __len__(self) -> int:
        return self.quats.shape[0]

    def __repr__(self) -> str:
        return f"Motion({self.skeleton.name!r}, {len(self)} frames at {self.fps:g} fps, {self.seconds:.2f} s)"

    @property
    def seconds(self) -> float:
        """How long the clip plays: every frame is shown for 1 / fps."""
        return len(self) / self.fps

    def __getitem__(self, frames: slice) -> Motion:
        """The frames of a slice, as a motion of its own: `motion[30:90]`. A step other than 1 is refused: see `edit.resample`."""
        if not isinstance(frames, slice) or frames.step not in (None, 1):
            raise BadValue("a motion is cut with a range of frames such as motion[30:90]; use resample to change the frame rate.")
        if len(range(*frames.indices(len(self)))) == 0:
            raise BadValue(f"the range {frames.start}:{frames.stop} holds no frame of this motion of {len(self)} frames.")
        cut = {name: getattr(self, name)[frames] for name in ("root_position", "quats", "translations", "contacts") if getattr(self, name) is not None}
        return replace(self, **cut)

    def to(self, *args: object) -> Motion:
        """The same motion with its numbers on another device or of another dtype, as `Tensor.to`."""
        moved = {name: getattr(self, name).to(*args) for name in ("root_position", "quats", "translations") if getattr(self, name) is not None}
        return replace(self, **moved)


def rest_motion(skeleton: Skeleton, frames: int = 1, fps: float = 30.0) -> Motion:
    """The skeleton standing in its rest pose."""
    return Motion(
        skeleton=skeleton,
        fps=fps,
        root_position=skeleton.offsets[0].expand(frames, 3).clone(),
        quats=skeleton.rest_quats.expand(frames, -1, -1).clone(),
    )


def is_finite(motion: Motion) -> bool:
    values = [motion.root_position, motion.quats] + ([] if motion.translations is None else [motion.translations])
    return all(bool(torch.isfinite(value).all()) for value in values)
