"""The transformer under both stages of the denoiser: text, noise level and heading in front, then one token per frame.

    text slots (50) | noise level (1) | heading (1) | poses (F)   →   encoder layers   →   poses (F)

With `frames_per_token` a token holds that many neighbouring frames, for a fraction of the work; the last one may be filled up with zeros.
Every token attends to every other; frames past the end of a clip are masked out. As released, the text slots that a prompt does not
fill are zeros that stay attendable, and one sinusoidal position code runs over the whole row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bunraku.errors import BadValue

MAX_TOKENS = 5000


@dataclass(frozen=True, kw_only=True)
class BackboneConfig:
    """The size and make of one transformer. The defaults are the released models'."""

    width: int = 1024
    feed_width: int = 2048
    layers: int = 16
    heads: int = 8
    text_width: int = 4096
    text_slots: int = 50
    norm: Literal["post", "pre"] = "post"  # released: post. It diverges late in training; our own models use pre
    qk_norm: bool = False
    dropout: float = 0.0
    frames_per_token: int = 1

    def __post_init__(self) -> None:
        if self.frames_per_token < 1:
            raise BadValue(f"frames_per_token is {self.frames_per_token}; at least 1 is needed.")


class Backbone(nn.Module):
    """Poses in, poses out, of other widths."""

    positions: Tensor
    level_tokens: Tensor | None

    def __init__(self, config: BackboneConfig, *, width_in: int, width_out: int) -> None:
        super().__init__()
        self.config = config
        self.text_in = nn.Linear(config.text_width, config.width)
        self.level_in = nn.Linear(config.width, config.width)
        self.level_out = nn.Linear(config.width, config.width)
        self.heading_in = nn.Linear(2, config.width)
        self.pose_in = nn.Linear(width_in * config.frames_per_token, config.width)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.last_norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()
        self.pose_out = nn.Linear(config.width, width_out * config.frames_per_token)
        self.dropout = nn.Dropout(config.dropout)
        self.register_buffer("positions", position_codes(MAX_TOKENS, config.width), persistent=False)
        self.register_buffer("level_tokens", None, persistent=False)

    def forward(
        self,
        poses: Float[Tensor, "B F I"],
        level: Int[Tensor, " B"],
        asked: Float[Tensor, "B P C"],
        valid: Bool[Tensor, "B F"] | None,
    ) -> Float[Tensor, "B F O"]:
        """`level` is the number of the base step, `asked` comes from `embed`; `valid` None: every frame is."""
        frames, together = poses.shape[1], self.config.frames_per_token
        if together > 1:
            poses, valid = _grouped(poses, valid, together)
        tokens = self._tokens(poses, level, asked)
        attendable = None
        if valid is not None:
            attendable = F.pad(valid, (tokens.shape[1] - poses.shape[1], 0), value=True)[:, None, None]
        for layer in self.layers:
            tokens = layer(tokens, attendable)
        out = self.pose_out(self.last_norm(tokens[:, -poses.shape[1] :].to(self.pose_out.weight.dtype)))
        return out if together == 1 else out.unflatten(-1, (together, -1)).flatten(1, 2)[:, :frames]

    def embed(self, text: Float[Tensor, "B S W"], heading: Float[Tensor, "B 2"]) -> Float[Tensor, "B P C"]:
        """The tokens that stay the same all through a run: text slots, and last the heading (cos and sin at the first frame)."""
        text = F.pad(text, (0, 0, 0, self.config.text_slots - text.shape[1]))
        return torch.cat([self.text_in(text), self.heading_in(heading)[:, None]], dim=1)

    def _tokens(self, poses: Tensor, level: Tensor, asked: Tensor) -> Float[Tensor, "B N C"]:
        """All tokens of a batch."""
        level_token = self._embed_level(level) if self.level_tokens is None else self.level_tokens[level]
        tokens = torch.cat([asked[:, :-1], level_token[:, None], asked[:, -1:], self.pose_in(poses)], dim=1)
        tokens = tokens + self.positions[: tokens.shape[1]].to(tokens.dtype)
        return self.dropout(tokens).to(self.layers[0].attention_norm.weight.dtype)  # type: ignore[union-attr]

    def _embed_level(self, level: Int[Tensor, " B"]) -> Float[Tensor, "B C"]:
        return self.level_out(F.silu(self.level_in(self.positions[level])))

    @torch.no_grad()
    def remember_levels(self, levels: int) -> None:
        """Works the tokens of all noise levels out once and for all: for a network that is not trained any more."""
        self.level_tokens = self._embed_level(torch.arange(levels, device=self.positions.device))


def _grouped(
    poses: Float[Tensor, "B F I"], valid: Bool[Tensor, "B F"] | None, together: int
) -> tuple[Float[Tensor, "B G H"], Bool[Tensor, "B G"] | None]:
    """Neighbouring frames side by side in one row. What lies past the end of a clip is zeros, whatever was there: a clip alone has nothing there."""
    if valid is not None:
        poses, valid = poses.masked_fill(~valid[..., None], 0.0), valid[:, ::together]
    poses = F.pad(poses, (0, 0, 0, -poses.shape[1] % together))
    return poses.unflatten(1, (-1, together)).flatten(2), valid


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward net, each added to what comes in, with the norm after (post) or before it (pre).

    The stream of tokens has the number format of the norms; the products may be coarser (`placing.py`).
    """

    def __init__(self, config: BackboneConfig) -> None:
        super().__init__()
        self.heads, self.norm, self.drop_rate = config.heads, config.norm, config.dropout
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.attention_out = nn.Linear(config.width, config.width)
        self.feed_in = nn.Linear(config.width, config.feed_width)
        self.feed_out = nn.Linear(config.feed_width, config.width)
        self.attention_norm = nn.LayerNorm(config.width)
        self.feed_norm = nn.LayerNorm(config.width)
        self.q_norm = _HeadNorm(config.width // config.heads) if config.qk_norm else nn.Identity()
        self.k_norm = _HeadNorm(config.width // config.heads) if config.qk_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Float[Tensor, "B N C"], attendable: Bool[Tensor, "B 1 1 N"] | None) -> Float[Tensor, "B N C"]:
        if self.norm == "pre":
            x = x + self._attend(self.attention_norm(x), attendable)
            return x + self._feed(self.feed_norm(x))
        x = self.attention_norm(x + self._attend(x, attendable))
        return self.feed_norm(x + self._feed(x))

    def _attend(self, x: Tensor, attendable: Tensor | None) -> Tensor:
        q, k, v = self.qkv(x.to(self.qkv.weight.dtype)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        drop = self.drop_rate if self.training else 0.0
        mixed = F.scaled_dot_product_attention(self.q_norm(q), self.k_norm(k), v, attn_mask=attendable, dropout_p=drop)
        return self.dropout(self.attention_out(mixed.transpose(1, 2).flatten(2)))

    def _feed(self, x: Tensor) -> Tensor:
        return self.dropout(self.feed_out(self.dropout(F.gelu(self.feed_in(x.to(self.feed_in.weight.dtype))))))


class _HeadNorm(nn.RMSNorm):
    """A norm in the number format of what it is given: with two formats, PyTorch has no fused kernel for it."""

    def forward(self, x: Float[Tensor, "B H N C"]) -> Float[Tensor, "B H N C"]:
        return F.rms_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.eps)


def position_codes(rows: int, width: int) -> Float[Tensor, "N C"]:
    """Sines in even columns, cosines in odd ones, wavelengths from 2π to 10000 · 2π."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    angles = torch.arange(rows)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
