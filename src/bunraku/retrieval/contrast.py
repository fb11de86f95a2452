"""How a retriever is trained: a batch of motions and their sentences, each of which must find its partner among all the others.

Two kinds of others are no lesson and left out: sentences that say the same, and sentences of the same motion. One is added: a sentence
that speaks of one side must find its motion rather than its mirror image, which no other motion in the batch would teach.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bunraku.generator.text.encoder import TextFeatures
from bunraku.retrieval.model import Retriever
from bunraku.retrieval.sentences import ALIKE, alike, one_sided
from bunraku.retrieval.view import mirror_view

MOST_SCALE = 100.0  # of cosines; beyond it a few pairs decide everything


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """A batch: motion i and sentence i belong together."""

    views: Float[Tensor, "B F V"]  # of `view.motion_view`, not normalised
    valid: Bool[Tensor, "B F"]
    text: TextFeatures
    codes: Int[Tensor, " B"]  # of `sentences.opposite_codes`
    motions: Int[Tensor, " B"]  # two rows with one number show the same motion


@dataclass(frozen=True, kw_only=True, eq=False)
class Lesson:
    """What a batch said."""

    loss: Float[Tensor, ""]
    found: Float[Tensor, ""]  # share of the sentences whose nearest motion in the batch is their own or one as good
    scale: Float[Tensor, ""]  # 1 / temperature


def contrast(retriever: Retriever, pairs: Pairs) -> Lesson:
    """The loss of a batch: −log of the share that the right partner has, both ways."""
    motion = retriever.embed_views(pairs.views, pairs.valid)
    sentence = retriever.embed_sentences(pairs.text)
    scale = retriever.log_scale.exp().clamp_max(MOST_SCALE)
    left_out = no_lesson(pairs)
    image = _mirror_images(retriever, pairs, sentence)
    with torch.autocast(motion.device.type, enabled=False):  # cosines times a hundred need more digits than half precision has
        logits = (sentence.float() @ motion.float().T) * scale
        loss = info_nce(logits, left_out, (image * scale).masked_fill(~one_sided(pairs.codes), float("-inf")))
    with torch.no_grad():
        nearest = logits.argmax(dim=1)
        rows = torch.arange(len(logits), device=logits.device)
        found = (left_out[rows, nearest] | (nearest == rows)).float().mean()
    return Lesson(loss=loss, found=found, scale=scale.detach())


def no_lesson(pairs: Pairs) -> Bool[Tensor, "B B"]:
    """Which pairs off the diagonal must not push each other away."""
    same_motion = pairs.motions[:, None] == pairs.motions[None]
    own = torch.eye(len(pairs.motions), dtype=torch.bool, device=same_motion.device)
    return (alike(pairs.text.pooled, pairs.codes, ALIKE) | same_motion) & ~own


def _mirror_images(retriever: Retriever, pairs: Pairs, sentence: Float[Tensor, "B L"]) -> Float[Tensor, " B"]:
    """The cosine of each one-sided sentence with its motion's mirror image; 0 for the others."""
    sided = one_sided(pairs.codes)
    cosine = torch.zeros(len(sided), device=sided.device)
    if not bool(sided.any()):
        return cosine
    image = retriever.embed_views(mirror_view(retriever.layout.skeleton, pairs.views[sided]), pairs.valid[sided])
    return cosine.masked_scatter(sided, (sentence[sided].float() * image.float()).sum(dim=-1))


def info_nce(logits: Float[Tensor, "B B"], left_out: Bool[Tensor, "B B"], more: Float[Tensor, " B"] | None = None) -> Float[Tensor, ""]:
    """The mean cross-entropy of the diagonal along rows and along columns, without the pairs left out; `more` is one more column."""
    logits = logits.masked_fill(left_out, float("-inf"))
    target = torch.arange(len(logits), device=logits.device)
    along_rows = logits if more is None else torch.cat([logits, more[:, None]], dim=1)
    return (F.cross_entropy(along_rows, target) + F.cross_entropy(logits.T, target)) / 2
