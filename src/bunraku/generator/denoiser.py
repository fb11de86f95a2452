"""The two-stage denoiser: from a noisy motion to a guess at the clean one, first where the body goes, then how it moves (kimodo §4.2).

    noisy features x_t ─┐                       ┌──────────────► root (5) ──────────────────────────┐
    observed values  ───┴► x̃ and mask ► root net                  │ as the body sees it              ├► clean features
                            └───────────────────────────────────► + body of x̃ and mask ► body net ──┘

Observed values replace noisy ones at the entrance only; nothing is overwritten in the result. All features are normalised.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bunraku.generator.backbone import Backbone, BackboneConfig
from bunraku.generator.features import LOCAL_ROOT_WIDTH, ROOT_WIDTH, FeatureLayout, local_root
from bunraku.generator.stats import Stats
from bunraku.kinematics.heading import heading_vector
from bunraku.math.curves import low_pass, low_pass_kernel


@dataclass(frozen=True, kw_only=True)
class DenoiserConfig:
    """The make of a denoiser. The defaults are the released models'; the other choices are the paper's ablations."""

    backbone: BackboneConfig = field(default_factory=BackboneConfig)
    stages: Literal[1, 2] = 2
    body_sees: Literal["local_root", "global_root"] = "local_root"
    # [frames] sigmas of low-pass filters behind the outputs, ours: x and z of the root are smooth by definition, the rest nearly so
    path_smoothing: float = 0.0  # of x and z of the root; 0: no filter, as released
    pose_smoothing: float = 0.0  # of all else


@dataclass(frozen=True, kw_only=True, eq=False)
class Condition:
    """All that a batch of motions is asked for, beside its length."""

    text: Float[Tensor, "B S W"]  # features of the prompt, one row per slot; slots not given are zeros
    heading: Float[Tensor, " B"]  # [rad] at the first frame
    observed: Float[Tensor, "B F D"] | None = None  # normalised; only read where the mask is set
    mask: Bool[Tensor, "B F D"] | None = None  # which features are observed
    valid: Bool[Tensor, "B F"] | None = None  # which frames belong to the clip; None: all
    embedded: tuple[Float[Tensor, "B P C"], ...] | None = None  # text and heading as each stage takes them, if worked out before


class Denoiser(nn.Module):
    """x_t and the number of the base step to x̂_0."""

    root_mean: Tensor
    root_scale: Tensor
    local_mean: Tensor
    local_scale: Tensor
    path_filter: Tensor | None
    pose_filter: Tensor | None

    def __init__(self, config: DenoiserConfig, layout: FeatureLayout, stats: Stats) -> None:
        super().__init__()
        self.config, self.layout, self.stats = config, layout, stats
        root_out = ROOT_WIDTH if config.stages == 2 else layout.width
        self.root_net = Backbone(config.backbone, width_in=2 * layout.width, width_out=root_out)
        if config.stages == 2:
            seen = LOCAL_ROOT_WIDTH if config.body_sees == "local_root" else ROOT_WIDTH
            self.body_net = Backbone(config.backbone, width_in=seen + layout.body_width + layout.width, width_out=layout.body_width)
        for name, sigma in (("path", config.path_smoothing), ("pose", config.pose_smoothing)):
            self.register_buffer(f"{name}_filter", low_pass_kernel(sigma) if sigma else None, persistent=False)
        for name, spread in (("root", stats.global_root), ("local", stats.local_root)):
            self.register_buffer(f"{name}_mean", spread.mean.clone(), persistent=False)
            self.register_buffer(f"{name}_scale", spread.scale.clone(), persistent=False)

    def forward(self, x: Float[Tensor, "B F D"], level: Int[Tensor, " B"], condition: Condition) -> Float[Tensor, "B F D"]:
        mask = torch.zeros_like(x) if condition.mask is None else condition.mask.to(x.dtype)
        if condition.mask is not None and condition.observed is not None:
            x = torch.where(condition.mask, condition.observed, x)
        embedded = self.embed(condition) if condition.embedded is None else condition.embedded
        first = self.root_net(torch.cat([x, mask], dim=-1), level, embedded[0], condition.valid)
        first = self._smoothed(first, condition.valid)
        if self.config.stages == 1:
            return first
        # the root is not trained through the body: the first stage answers for itself alone
        seen = self._as_body_sees(first.detach(), condition.valid)
        body = self.body_net(torch.cat([seen, x[..., self.layout.body], mask], dim=-1), level, embedded[1], condition.valid)
        return torch.cat([first, body if self.pose_filter is None else low_pass(body, self.pose_filter, condition.valid)], dim=-1)

    def embed(self, condition: Condition) -> tuple[Float[Tensor, "B P C"], ...]:
        """Text and heading as each stage takes them: the same at every step of a run, so a run needs it once."""
        nets = [self.root_net] if self.config.stages == 1 else [self.root_net, self.body_net]
        return tuple(net.embed(condition.text, heading_vector(condition.heading)) for net in nets)

    def _smoothed(self, first: Float[Tensor, "B F _"], valid: Bool[Tensor, "B F"] | None) -> Float[Tensor, "B F _"]:
        """What the first stage gave, through the filters: x and z of the root through one, the other columns through the other."""
        if self.path_filter is None and self.pose_filter is None:
            return first
        x, y, z, rest = first.split([1, 1, 1, first.shape[-1] - 3], dim=-1)
        path, pose = torch.cat([x, z], dim=-1), torch.cat([y, rest], dim=-1)
        if self.path_filter is not None:
            path = low_pass(path, self.path_filter, valid)
        if self.pose_filter is not None:
            pose = low_pass(pose, self.pose_filter, valid)
        return torch.cat([path[..., :1], pose[..., :1], path[..., 1:], pose[..., 1:]], dim=-1)

    def _as_body_sees(self, root: Float[Tensor, "B F 5"], valid: Bool[Tensor, "B F"] | None) -> Float[Tensor, "B F _"]:
        if self.config.body_sees == "global_root":
            return root
        world = root * self.root_scale + self.root_mean
        return (local_root(world, self.layout.fps, valid) - self.local_mean) / self.local_scale

    @property
    def exact(self) -> bool:
        """Whether the layers compute in float32 (see `placing.py`)."""
        return self.root_net.layers[0].qkv.weight.dtype == torch.float32  # type: ignore[union-attr]

    @property
    def device(self) -> torch.device:
        return self.root_mean.device
