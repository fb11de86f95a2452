"""Stretches of a dataset's clips: held-out motion that cases are made of, and that they are compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.datasets.clip import Split
from bunraku.datasets.store import Dataset
from bunraku.errors import BadValue
from bunraku.kinematics.edit import mirror, place
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.heading import heading_of
from bunraku.kinematics.motion import Motion
from bunraku.math.rotations import quat_rotate, yaw_quat

SENTENCE_WEIGHT = 1.0  # captions that weigh less are bare labels, of whole recordings


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Some frames of a clip, and a sentence that describes them."""

    clip: int
    start: int
    stop: int
    text: str = ""
    mirrored: bool = False

    @property
    def frames(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """A stretch as models are trained on it: its smoothed root starts above the origin; and facing +Z at first."""

    motion: Motion  # with contacts
    smooth_xz: Float[Tensor, "F 2"]  # [m] the smoothed root of the whole clip there


def captioned_stretches(dataset: Dataset, split: Split, seconds: tuple[float, float], rng: torch.Generator) -> list[Stretch]:
    """One for each described stretch of a length within `seconds`, in a random order, each with one of its sentences."""
    found: dict[tuple[int, int, int, bool], list[str]] = {}
    for number in dataset.of_split(split):
        for caption in dataset.clips[number].captions:
            if caption.weight >= SENTENCE_WEIGHT and seconds[0] <= (caption.stop - caption.start) / dataset.fps <= seconds[1]:
                found.setdefault((number, caption.start, caption.stop, caption.mirrored), []).append(caption.text)
    keys = list(found)
    stretches = []
    for i in torch.randperm(len(keys), generator=rng).tolist():
        clip, start, stop, mirrored = keys[i]
        texts = found[keys[i]]
        chosen = texts[int(torch.randint(len(texts), (1,), generator=rng))]
        stretches.append(Stretch(clip=clip, start=start, stop=stop, text=chosen, mirrored=mirrored))
    return stretches


def random_stretches(dataset: Dataset, split: Split, lengths: Sequence[int], rng: torch.Generator) -> list[Stretch]:
    """One of each length [frames], or as long as the longest clip is, from anywhere in the split: what chance would give."""
    clips = dataset.of_split(split)
    if not clips:
        raise BadValue(f"the split '{split}' of '{dataset.folder}' is empty.")
    sizes = torch.tensor([dataset.clips[number].frames for number in clips], dtype=torch.float64)
    stretches = []
    for wanted in lengths:
        frames = min(wanted, int(sizes.max()))
        room = (sizes - frames + 1).clamp_min(0)
        chosen = int(torch.multinomial(room, 1, generator=rng))
        start = int(torch.randint(int(room[chosen]), (1,), generator=rng))
        stretches.append(Stretch(clip=clips[chosen], start=start, stop=start + frames))
    return stretches


def truth_of(dataset: Dataset, stretch: Stretch) -> Truth:
    """The motion of a stretch, moved and turned to where models start."""
    rows = dataset.rows(stretch.clip, range(stretch.start, stretch.stop))
    motion = rows.motion(dataset.skeleton, dataset.fps)
    smooth_xz = rows.smooth_xz
    if stretch.mirrored:
        motion, smooth_xz = mirror(motion), smooth_xz * torch.tensor([-1.0, 1.0])
    return placed(Truth(motion=motion, smooth_xz=smooth_xz), *_to_the_origin(motion, smooth_xz))


def placed(truth: Truth, p: tuple[float, float], yaw: float) -> Truth:
    """Turned about the world's up axis, then moved: as `kinematics.edit.place` does."""
    xz = truth.smooth_xz.double()
    turned = quat_rotate(yaw_quat(torch.tensor(yaw, dtype=torch.float64)), torch.stack([xz[:, 0], torch.zeros_like(xz[:, 0]), xz[:, 1]], dim=-1))
    moved = turned[:, [0, 2]] + torch.tensor(p, dtype=torch.float64)
    return replace(truth, motion=place(truth.motion, p, yaw), smooth_xz=moved.to(truth.smooth_xz))


def _to_the_origin(motion: Motion, smooth_xz: Float[Tensor, "F 2"]) -> tuple[tuple[float, float], float]:
    yaw = -float(heading_of(motion.skeleton, forward_kinematics(motion[:1]).p_world_joint[0]))
    x, z = smooth_xz[0].tolist()
    cos, sin = math.cos(yaw), math.sin(yaw)
    return (-(cos * x + sin * z), -(-sin * x + cos * z)), yaw
