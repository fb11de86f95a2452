"""What the paper takes away from its model to see what it was good for (kimodo §6.2), as changes of a complete configuration.

Each is trained and evaluated as any other: `ABLATIONS["one-stage"](generator.small())`. Apart from what is named nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from bunraku.training.generator_task import GeneratorSettings


def one_stage(full: GeneratorSettings) -> GeneratorSettings:
    """Root and body by one transformer with as many layers as both stages have together, so with about as many weights."""
    backbone = replace(full.denoiser.backbone, layers=2 * full.denoiser.backbone.layers)
    return replace(full, denoiser=replace(full.denoiser, stages=1, backbone=backbone))


def second_stage_global(full: GeneratorSettings) -> GeneratorSettings:
    """The body stage sees the root as it is in the world."""
    seen: Literal["global_root"] = "global_root"
    return replace(full, denoiser=replace(full.denoiser, body_sees=seen))


def no_smoothed_root(full: GeneratorSettings) -> GeneratorSettings:
    """The root is the hips on the ground; they sway, so the filter that makes paths smooth goes too."""
    return replace(full, smooth_root=False, denoiser=replace(full.denoiser, path_smoothing=full.denoiser.pose_smoothing))


def no_extra_tokens(full: GeneratorSettings) -> GeneratorSettings:
    """One text slot, as the released models fill it; with an encoder whose tokens are read it holds the first, which stands for all."""
    return replace(full, denoiser=replace(full.denoiser, backbone=replace(full.denoiser.backbone, text_slots=1)))


def no_curriculum(full: GeneratorSettings) -> GeneratorSettings:
    """Constraints from the first step on, for half of the clips, and no dropout."""
    return replace(full, text_only=0.0, dropout=(0.0, 0.0), constrained=0.5)


ABLATIONS: Mapping[str, Callable[[GeneratorSettings], GeneratorSettings]] = {
    "full": lambda full: full,
    "one-stage": one_stage,
    "second-stage-global": second_stage_global,
    "no-smoothed-root": no_smoothed_root,
    "no-extra-tokens": no_extra_tokens,
    "no-curriculum": no_curriculum,
}
