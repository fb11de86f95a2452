"""From takes to numbers: every group of cases, measured as true motion, as motion by chance, and as the model's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import SkeletonMismatch
from bunraku.generator.features import FeatureLayout, encode
from bunraku.generator.text.encoder import TextEncoder
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.retrieval.model import Retriever, embed_motions, embed_texts
from bunraku.retrieval.sentences import SAME, alike, opposite_codes
from bunraku.timeline.constraints import Constraint
from bunraku.trials.frechet import frechet_distance
from bunraku.trials.misses import Misses, miss_metrics, misses
from bunraku.trials.precision import precision
from bunraku.trials.quality import QualityMetrics, mean_quality, quality
from bunraku.trials.results import Column, TextMetrics


class Judge:
    """A retriever with the text encoder it was trained with."""

    def __init__(self, retriever: Retriever, encoder: TextEncoder) -> None:
        self.retriever, self.encoder = retriever, encoder

    def require(self, skeleton: Skeleton, fps: float) -> None:
        """Raises if motion on this skeleton cannot be judged."""
        layout = self.retriever.layout
        if skeleton.joints != layout.skeleton.joints or fps != layout.fps:
            judged = f"the retriever '{self.retriever.name}' judges motion on '{layout.skeleton.name}' at {layout.fps:g} fps"
            raise SkeletonMismatch(f"{judged}, not on '{skeleton.name}' at {fps:g} fps; name another with --tmr.")

    def motion(self, motion: Motion) -> Float[Tensor, " L"]:
        self.require(motion.skeleton, motion.fps)
        layout = self.retriever.layout
        features = encode(FeatureLayout(skeleton=layout.skeleton, fps=layout.fps, smooth=False), motion)  # the view does not look at the smoothed root
        return embed_motions(self.retriever, [features])[0]

    def text_metrics(self, texts: Sequence[str], motions: Float[Tensor, "N L"], truth: Float[Tensor, "N L"] | None) -> TextMetrics:
        """Of motions that should each show its sentence, against the true ones if they are known."""
        features = self.encoder.encode(list(texts))
        sentences = embed_texts(self.retriever, features)
        found = precision(sentences, motions, alike(features.pooled, opposite_codes(texts), SAME))
        return TextMetrics(
            **{f"r{k}": share for k, share in found.at.items()},
            median_rank=found.median_rank,
            similarity=float((sentences * motions).sum(dim=-1).mean()),
            fid=None if truth is None or len(motions) < 2 else 100 * frechet_distance(motions, truth),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """One motion, measured."""

    quality: QualityMetrics
    misses: Misses
    embedding: Float[Tensor, " L"] | None


def measure(motion: Motion, constraints: Sequence[Constraint], judge: Judge | None) -> Measured:
    embedding = None if judge is None else judge.motion(motion)
    return Measured(quality=quality(motion), misses=misses(motion, constraints), embedding=embedding)


def column(rows: Sequence[Measured], text: TextMetrics | None = None) -> Column:
    return Column(quality=mean_quality(row.quality for row in rows), misses=miss_metrics(row.misses for row in rows), text=text or TextMetrics())


def embeddings(rows: Iterable[Measured]) -> Float[Tensor, "N L"]:
    return torch.stack([row.embedding for row in rows if row.embedding is not None])


def part_of(on_progress: Callable[[float], None] | None, start: float, stop: float) -> Callable[[float], None] | None:
    """Progress of a part as progress of the whole."""
    return None if on_progress is None else lambda share: on_progress(start + (stop - start) * share)
