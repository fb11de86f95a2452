"""Who judges a clip: a video prior by its lessons, or a video that is to be matched.

Fitting a video compares pictures at several sizes, so that a limb that is a little off is felt long before it overlaps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from bunraku.distill.lessons import teach
from bunraku.distill.settings import DistillSettings
from bunraku.errors import BadValue
from bunraku.priors.prior import VideoPrior

_COARSEST = 6  # [px] the shorter side of the smallest pictures that are compared


class Teacher(ABC):
    """Judges clips of one size."""

    width: int
    height: int

    @abstractmethod
    def judge(self, video: Float[Tensor, "F H W 3"], progress: float, generator: torch.Generator) -> tuple[Tensor, Mapping[str, float]]:
        """A loss whose gradient improves the clip, and numbers for the log. `progress` runs from 0 to 1."""


class PriorTeacher(Teacher):
    """Score distillation: the prior says, at some noise, what it would rather see."""

    def __init__(self, prior: VideoPrior, text: str, settings: DistillSettings) -> None:
        self.prior, self.settings = prior, settings
        self.width, self.height = prior.spec.width, prior.spec.height
        self.condition: Any = prior.embed(text)

    def judge(self, video: Float[Tensor, "F H W 3"], progress: float, generator: torch.Generator) -> tuple[Tensor, Mapping[str, float]]:
        settings = self.settings
        moment = settings.noise.time(progress, float(torch.rand((), generator=generator)))
        lesson = teach(
            self.prior,
            video,
            self.condition,
            time=moment,
            guidance=settings.guide.at(progress),
            weighting=settings.weighting,
            generator=generator,
        )
        return lesson.loss, {"noise time": lesson.time, "away": lesson.away}


class VideoTeacher(Teacher):
    """Sample, then fit: the clip is to look like a video that somebody made of this character on this stage."""

    def __init__(self, video: Float[Tensor, "F H W 3"]) -> None:
        if video.ndim != 4 or video.shape[-1] != 3 or not len(video):
            raise BadValue(f"a video to fit must be (frames, height, width, 3); got {tuple(video.shape)}.")
        self.height, self.width = int(video.shape[1]), int(video.shape[2])
        self.levels = _pyramid(video)

    def smaller(self, side: int) -> VideoTeacher:
        """The same video with a shorter side of at most so many pixels, as far as it can be halved."""
        fitting = [level for level in self.levels if min(level.shape[-2:]) <= side]
        return VideoTeacher((fitting or self.levels[-1:])[0].movedim(1, -1))

    def judge(self, video: Float[Tensor, "F H W 3"], progress: float, generator: torch.Generator) -> tuple[Tensor, Mapping[str, float]]:
        if len(video) != len(self.levels[0]):
            raise BadValue(f"the video has {len(self.levels[0])} frames, the motion {len(video)}; they must be as many.")
        loss = self.away(video, torch.arange(len(video))).mean()
        return loss, {"away": float((video.detach() - self.levels[0].movedim(1, -1)).square().mean().sqrt())}

    def away(self, video: Float[Tensor, "N H W 3"], frames: Int[Tensor, " N"]) -> Float[Tensor, " N"]:
        """How much each picture differs from a frame of the video, over all sizes. Small pictures lose contrast, so they weigh more."""
        levels = [(ours - theirs[frames]).square().mean((1, 2, 3)) for ours, theirs in zip(_pyramid(video), self.levels, strict=True)]
        return torch.stack([4.0**level * value for level, value in enumerate(levels)]).mean(0)


def _pyramid(video: Float[Tensor, "F H W 3"]) -> list[Float[Tensor, "F 3 Y X"]]:
    """The video at full size, half, a quarter …"""
    level = video.movedim(-1, 1)
    levels = [level]
    while min(level.shape[-2:]) >= 2 * _COARSEST:
        level = F.avg_pool2d(level, 2, ceil_mode=True)
        levels.append(level)
    return levels
