"""The retriever: two small transformers that put sentences and motions into one space, where what belongs together points the same way.

    view of a motion, 4 frames a token ─► encoder ─┐
                                                    ├─► unit vectors of 256 numbers
    features of a sentence, one a token ─► encoder ─┘

After TMR (Petrovich et al. 2023, arXiv 2305.00976), without its variational and decoding halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from bunraku.errors import BadValue
from bunraku.generator.backbone import BackboneConfig, EncoderLayer, position_codes
from bunraku.generator.features import FeatureLayout
from bunraku.generator.stats import Spread
from bunraku.generator.text.encoder import TextFeatures
from bunraku.retrieval.view import motion_view, view_width

MOST_TOKENS = 512  # of one motion (68 s) or sentence
_AT_ONCE = 64  # motions or sentences embedded as one batch


@dataclass(frozen=True, kw_only=True)
class RetrieverConfig:
    """The size and make of a retriever; as it stands, 8.4 M weights."""

    width: int = 256
    feed_width: int = 1024
    heads: int = 4
    motion_layers: int = 6
    text_layers: int = 4
    text_width: int = 384
    latent: int = 256
    frames_a_token: int = 4
    dropout: float = 0.1


class Retriever(nn.Module):
    """Motions and sentences to unit vectors. `spread` is that of the views it is trained on."""

    view_mean: Tensor
    view_scale: Tensor

    def __init__(self, config: RetrieverConfig, layout: FeatureLayout, spread: Spread, *, text_encoder: str = "minilm", name: str = "tmr") -> None:
        super().__init__()
        self.config, self.layout, self.spread, self.text_encoder, self.name = config, layout, spread, text_encoder, name
        make = BackboneConfig(width=config.width, feed_width=config.feed_width, heads=config.heads, norm="pre", dropout=config.dropout)
        self.motion_in = nn.Linear(config.frames_a_token * view_width(layout), config.width)
        self.motion_trunk = _Trunk(make, config.motion_layers, config.latent)
        self.text_in = nn.Linear(config.text_width, config.width)
        self.pooled_in = nn.Linear(config.text_width, config.width)
        self.text_trunk = _Trunk(make, config.text_layers, config.latent)
        self.log_scale = nn.Parameter(torch.tensor(1 / 0.07).log())  # of cosines, before they are compared
        self.register_buffer("view_mean", spread.mean.clone(), persistent=False)
        self.register_buffer("view_scale", spread.scale.clone(), persistent=False)

    def embed_views(self, views: Float[Tensor, "B F V"], valid: Bool[Tensor, "B F"]) -> Float[Tensor, "B L"]:
        """Unit vectors of views (not normalised)."""
        each = self.config.frames_a_token
        normal = (views - self.view_mean) / self.view_scale * valid[..., None]
        short = -views.shape[1] % each
        normal, valid = F.pad(normal, (0, 0, 0, short)), F.pad(valid, (0, short))
        tokens = self.motion_in(normal.unflatten(1, (-1, each)).flatten(2))
        return self.motion_trunk(tokens, valid.unflatten(1, (-1, each)).any(dim=-1))

    def embed_sentences(self, text: TextFeatures) -> Float[Tensor, "B L"]:
        """Unit vectors of sentences, from every token's features and the whole sentence's."""
        tokens = torch.cat([self.pooled_in(text.pooled)[:, None], self.text_in(text.tokens)], dim=1)
        return self.text_trunk(tokens, F.pad(text.mask, (1, 0), value=True))

    @property
    def device(self) -> torch.device:
        return self.view_mean.device


class _Trunk(nn.Module):
    """Tokens to one unit vector: what a token of its own has gathered by the last layer."""

    positions: Tensor

    def __init__(self, make: BackboneConfig, layers: int, latent: int) -> None:
        super().__init__()
        self.gatherer = nn.Parameter(torch.randn(make.width) * 0.02)
        self.layers = nn.ModuleList(EncoderLayer(make) for _ in range(layers))
        self.last_norm = nn.LayerNorm(make.width)
        self.out = nn.Linear(make.width, latent)
        self.dropout = nn.Dropout(make.dropout)
        self.register_buffer("positions", position_codes(MOST_TOKENS + 1, make.width), persistent=False)

    def forward(self, tokens: Float[Tensor, "B N C"], present: Bool[Tensor, "B N"]) -> Float[Tensor, "B L"]:
        tokens, present = tokens[:, :MOST_TOKENS], F.pad(present[:, :MOST_TOKENS], (1, 0), value=True)
        x = torch.cat([self.gatherer.expand(len(tokens), 1, -1), tokens], dim=1)
        x = self.dropout(x + self.positions[: x.shape[1]])
        for layer in self.layers:
            x = layer(x, present[:, None, None])
        return F.normalize(self.out(self.last_norm(x[:, 0])), dim=-1)


# --- embedding much at once ------------------------------------------------------------------------------------------


@torch.no_grad()
def embed_motions(retriever: Retriever, features: Sequence[Float[Tensor, "_ D"]]) -> Float[Tensor, "N L"]:
    """Unit vectors of motions given as features of the retriever's layout (not normalised), on the CPU."""
    rows: list[Tensor] = [torch.zeros(0)] * len(features)
    order = sorted(range(len(features)), key=lambda i: len(features[i]))  # of similar length together, so that little is padded
    for start in range(0, len(order), _AT_ONCE):
        chosen = order[start : start + _AT_ONCE]
        frames, device = max(len(features[i]) for i in chosen), retriever.device
        padded, valid = torch.zeros(len(chosen), frames, retriever.layout.width), torch.zeros(len(chosen), frames, dtype=torch.bool)
        for row, i in enumerate(chosen):
            if features[i].shape[-1] != retriever.layout.width:
                given = f"motion {i} has {features[i].shape[-1]} features a frame, the retriever '{retriever.name}' reads {retriever.layout.width}"
                raise BadValue(f"{given} ('{retriever.layout.skeleton.name}'). Retarget the motion, or name a retriever of its skeleton.")
            padded[row, : len(features[i])], valid[row, : len(features[i])] = features[i], True
        views = motion_view(retriever.layout, padded.to(device), valid.to(device))
        for i, row in zip(chosen, retriever.embed_views(views, valid.to(device)).float().cpu(), strict=True):
            rows[i] = row
    return torch.stack(rows) if rows else torch.zeros(0, retriever.config.latent)


@torch.no_grad()
def embed_texts(retriever: Retriever, text: TextFeatures) -> Float[Tensor, "N L"]:
    """Unit vectors of sentences, on the CPU."""
    if text.width != retriever.config.text_width:
        given = f"the text encoder gives {text.width} numbers a token, but the retriever '{retriever.name}' reads {retriever.config.text_width}"
        raise BadValue(f"{given} (it was trained with '{retriever.text_encoder}'). Encode the sentences with that one.")
    rows = []
    for start in range(0, len(text), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        some = TextFeatures(tokens=text.tokens[part], mask=text.mask[part], pooled=text.pooled[part])
        rows.append(retriever.embed_sentences(some.to(retriever.device)).float().cpu())
    return torch.cat(rows) if rows else torch.zeros(0, retriever.config.latent)
