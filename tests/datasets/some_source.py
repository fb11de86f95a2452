"""A source of walks made from formulas, for tests: a few seconds to convert, no files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import torch

from bunraku.datasets.clip import About
from bunraku.datasets.source import Heard, Recording
from bunraku.kinematics.edit import place
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.walk import walk

SPLITS = ("train", "train", "val", "test", "train", "train")


@cache
def _walk(number: int) -> Motion:
    return walk(skeleton("soma30"), seconds=2.0, speed=0.9 + 0.1 * number)


@dataclass(frozen=True)
class Walks:
    """`count` walks, each a little faster and in another direction; recording 1 has a broken number in it, if wanted."""

    count: int = 4
    broken: bool = False
    fail_at: int = -1  # loading that one ends the process, as a kill would

    about = About(name="walks", licence="free", credits=("nobody",))

    def recordings(self) -> Sequence[Recording]:
        return [
            Recording(
                name=f"walk-{n}",
                split=SPLITS[n % len(SPLITS)],  # type: ignore[arg-type]
                captions=(
                    Heard(text="A person walks forward.", source="folder"),
                    Heard(text="A person kicks with the left leg.", start=0.5, stop=1.5, mirrored=n == 0, source="folder"),
                ),
                category="walk",
                about_frames=60,
            )
            for n in range(self.count)
        ]

    def unusable(self) -> Sequence[tuple[str, str]]:
        return [("ghost", "1 captions, but no motion.")]

    def load(self, recording: Recording) -> Motion:
        number = int(recording.name.split("-")[1])
        if number == self.fail_at:
            raise KeyboardInterrupt
        motion = place(_walk(number), (float(number), 0.0), 0.7 * number)
        if self.broken and number == 1:
            root = motion.root_position.clone()
            root[7, 1] = torch.nan
            motion = replace(motion, root_position=root)
        return motion
