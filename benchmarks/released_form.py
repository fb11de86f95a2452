"""The denoiser as the released model is written, with the weights of ours: `nn.TransformerEncoder` in float32, one operation after the other.

Weights are random: speed does not depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from bunraku.diffusion.guidance import Guidance, branches
from bunraku.diffusion.schedule import CosineSchedule
from bunraku.diffusion.solvers import solve, step_table
from bunraku.generator.backbone import Backbone, BackboneConfig
from bunraku.generator.conditioning import Observation
from bunraku.generator.denoiser import Denoiser, DenoiserConfig
from bunraku.generator.features import FeatureLayout, decode, encode
from bunraku.generator.sample import GuidedDenoiser, Request, Sampling, batch, draw_noise
from bunraku.generator.stats import Spread, Stats
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import rest_motion

LARGE = BackboneConfig()  # 282 M parameters in two stages
FRAMES = 300


def random_denoiser(config: BackboneConfig, seed: int = 0) -> Denoiser:
    torch.manual_seed(seed)
    layout = FeatureLayout(skeleton=skeleton("soma30"))
    widths = {"global_root": 5, "local_root": 4, "body": layout.body_width}
    standing = encode(replace(layout, smooth=False), rest_motion(layout.skeleton))[0]
    means = {"global_root": standing[:5], "local_root": torch.zeros(4), "body": standing[5:]}
    stats = Stats(**{name: Spread(mean=means[name], std=torch.full((width,), 0.3)) for name, width in widths.items()})
    return Denoiser(DenoiserConfig(backbone=config), layout, stats).eval().requires_grad_(False)


class PlainBackbone(nn.Module):
    """The released formulation of a stage, with the weights of ours."""

    def __init__(self, ours: Backbone) -> None:
        super().__init__()
        self.ours, c = ours, ours.config
        layer = nn.TransformerEncoderLayer(c.width, c.heads, c.feed_width, 0.0, "gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, c.layers, enable_nested_tensor=False)
        for theirs, mine in zip(self.encoder.layers, ours.layers, strict=True):
            theirs.self_attn.in_proj_weight, theirs.self_attn.in_proj_bias = mine.qkv.weight, mine.qkv.bias
            theirs.self_attn.out_proj = _as_projection(mine.attention_out)
            theirs.linear1, theirs.linear2, theirs.norm1, theirs.norm2 = mine.feed_in, mine.feed_out, mine.attention_norm, mine.feed_norm
        self.eval()

    def embed(self, text: Tensor, heading: Tensor) -> Tensor:
        return self.ours.embed(text, heading)

    def forward(self, poses: Tensor, level: Tensor, asked: Tensor, valid: Tensor | None) -> Tensor:
        frames = poses.shape[1]
        tokens = self.ours._tokens(poses, level, asked)
        here = torch.ones(len(poses), frames, dtype=torch.bool, device=poses.device) if valid is None else valid
        ignored = ~nn.functional.pad(here, (tokens.shape[1] - frames, 0), value=True)
        return self.ours.pose_out(self.encoder(tokens, src_key_padding_mask=ignored)[:, -frames:])


def _as_projection(linear: nn.Linear) -> nn.Linear:
    projection = NonDynamicallyQuantizableLinear(linear.in_features, linear.out_features)
    projection.weight, projection.bias = linear.weight, linear.bias
    return projection


def plain(denoiser: Denoiser) -> Denoiser:
    """The same network in the released formulation."""
    twin = Denoiser.__new__(Denoiser)
    nn.Module.__init__(twin)
    twin.config, twin.layout, twin.stats = denoiser.config, denoiser.layout, denoiser.stats
    for name, buffer in denoiser._buffers.items():
        twin.register_buffer(name, buffer, persistent=False)
    twin.root_net, twin.body_net = PlainBackbone(denoiser.root_net), PlainBackbone(denoiser.body_net)
    return twin.eval().requires_grad_(False)


def requests(count: int, layout: FeatureLayout, *, constrained: bool = True, frames: int = FRAMES) -> list[Request]:
    """Clips with text and a waypoint, so that separated guidance needs its three branches."""
    torch.manual_seed(1)
    mask = torch.zeros(frames, layout.width, dtype=torch.bool)
    mask[frames // 2, [0, 2]] = True
    seen = Observation(values=torch.zeros(frames, layout.width), mask=mask, floating=torch.zeros_like(mask))
    text = torch.randn(1, 4096)
    return [Request(frames=frames, text=text, seed=seed, observation=seen if constrained else None) for seed in range(count)]


def mean_joint_deviation(a: Tensor, b: Tensor, layout: FeatureLayout) -> float:
    """Mean distance [m] of the joints of two clips given as features."""
    there, here = (forward_kinematics(decode(layout, features).motion).p_world_joint for features in (a, b))
    return float((there - here).norm(dim=-1).mean())


def guided(denoiser: Denoiser, wanted: Sequence[Request]) -> GuidedDenoiser:
    """One step under separated guidance, all branches in one pass."""
    condition, _ = batch(denoiser, wanted)
    return GuidedDenoiser(denoiser, condition, branches(Guidance(), has_text=True, has_constraints=condition.mask is not None))


def sample_plainly(denoiser: Denoiser, wanted: Sequence[Request], sampling: Sampling) -> None:
    """`sample` step by step, for networks in the released formulation."""
    noise = torch.stack([draw_noise(request, denoiser.layout) for request in wanted]).to(denoiser.device)
    solve(step_table(sampling.solver, CosineSchedule(), sampling.steps), guided(denoiser, wanted), noise).cpu()
