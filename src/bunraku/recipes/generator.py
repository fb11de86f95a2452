"""Generators of four sizes, and how they are trained. `bunraku train generator small …`; `--set field=value` changes one thing."""

from __future__ import annotations

from dataclasses import replace

from bunraku.generator.backbone import BackboneConfig
from bunraku.generator.denoiser import DenoiserConfig
from bunraku.training.generator_task import GeneratorSettings
from bunraku.training.losses import LossWeights
from bunraku.training.settings import LoopSettings


def tiny() -> GeneratorSettings:
    """7 M weights, 14 MiB in half precision: what a processor can train overnight (0.24 steps a second on two cores).

    Four frames share a token, so a step has a third of the tokens; steps are few, so they are large and end in a long cooldown.
    """
    backbone = BackboneConfig(width=256, feed_width=512, layers=6, heads=4, text_width=384, text_slots=24, norm="pre", qk_norm=True, frames_per_token=4)
    settings = small()
    return replace(
        settings,
        denoiser=replace(settings.denoiser, backbone=backbone),
        loop=LoopSettings(
            steps=8000, batch=64, learning_rate=1e-3, warmup=200, cooldown=0.4, ema_decay=0.98, compiled=True, log_every=50, checkpoint_every=250
        ),
        text_only=0.4,
        dropout=(0.0, 0.0),
    )


def small() -> GeneratorSettings:
    """20 M weights, 39 MiB in half precision: the one that comes with the package. For hours of motion, not hundreds.

    Away from the paper: norms before the products (post-norm diverges late), filters behind the outputs and two terms of the loss
    against jitter, 32 text slots filled with MiniLM's tokens, larger steps for a shorter training.
    """
    backbone = BackboneConfig(width=384, feed_width=768, layers=8, heads=6, text_width=384, text_slots=32, norm="pre", qk_norm=True)
    return GeneratorSettings(
        denoiser=DenoiserConfig(backbone=backbone, path_smoothing=3.0, pose_smoothing=1.0),
        loop=LoopSettings(steps=100_000, batch=512, learning_rate=5e-4, compiled=True, checkpoint_every=2000),
        losses=LossWeights(motion=2.0, skate=1.0),
    )


def base() -> GeneratorSettings:
    """56 M weights: the paper's S."""
    return _with_backbone(BackboneConfig(width=512, feed_width=1024, layers=16, heads=8, text_width=384, text_slots=50, norm="pre", qk_norm=True), 3e-4)


def large() -> GeneratorSettings:
    """282 M weights: the paper's L, with its batch, for hundreds of hours of motion."""
    settings = _with_backbone(BackboneConfig(text_width=384, norm="pre", qk_norm=True), 1e-4)
    return replace(settings, loop=replace(settings.loop, steps=1_000_000, batch=2048, betas=(0.9, 0.999), checkpoint_every=10_000))


def _with_backbone(backbone: BackboneConfig, learning_rate: float) -> GeneratorSettings:
    settings = small()
    return replace(settings, denoiser=replace(settings.denoiser, backbone=backbone), loop=replace(settings.loop, learning_rate=learning_rate))


SIZES = {"tiny": tiny, "small": small, "base": base, "large": large}
