"""Training the retriever that evaluates generators: in every batch, each sentence must find its motion and each motion its sentence.

Each rank compares the pairs of its own share: a batch of 512 on two ranks is two contests of 256.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bunraku.datasets.clip import Split
from bunraku.datasets.forms import sentence_forms
from bunraku.datasets.store import Dataset
from bunraku.errors import BadValue
from bunraku.generator.text.encoder import TextEncoder
from bunraku.retrieval.checkpoint import save_retriever
from bunraku.retrieval.contrast import Pairs, contrast
from bunraku.retrieval.lessons import Forms, Lessons
from bunraku.retrieval.model import Retriever, RetrieverConfig
from bunraku.training.ranks import Ranks
from bunraku.training.settings import LoopSettings, as_json
from bunraku.training.task import Task, mixed


@dataclass(frozen=True, kw_only=True)
class RetrieverSettings:
    """A complete configuration of the retriever's training."""

    retriever: RetrieverConfig = field(default_factory=RetrieverConfig)
    loop: LoopSettings = field(default_factory=LoopSettings)
    text_encoder: str = "minilm"
    splits: tuple[str, ...] = ("train",)  # the paper's learnt from all: a finer judge, but one that has seen the answers


class RetrieverObjective(nn.Module):
    """A batch to its loss."""

    def __init__(self, retriever: Retriever) -> None:
        super().__init__()
        self.retriever = retriever

    def forward(self, pairs: Pairs) -> dict[str, Tensor]:
        return {"contrast": contrast(self.retriever, pairs).loss}


class RetrieverTask(Task):
    kind = "tmr"

    def __init__(
        self,
        settings: RetrieverSettings,
        dataset: Dataset,
        encoder: TextEncoder,
        ranks: Ranks,
        *,
        forms: Forms = sentence_forms,
        on_progress: Callable[[float], None] | None = None,
    ) -> None:
        self.settings, self.dataset = settings, dataset
        clips = [clip for split in settings.splits for clip in dataset.of_split(_split(split))]
        torch.manual_seed(mixed(settings.loop.seed, -1))
        self.lessons = Lessons(dataset, clips, encoder, forms=forms, device=ranks.device, on_progress=on_progress)
        config = replace(settings.retriever, text_width=encoder.width)
        self.net = Retriever(config, dataset.layout, self.lessons.spread, text_encoder=settings.text_encoder).to(ranks.device).train()
        self.objective = RetrieverObjective(self.net)

    def batch(self, step: int, rows: range) -> Pairs:
        draw = self.lessons.draw(self.settings.loop.seed, step, self.settings.loop.batch)
        return self.lessons.pairs(draw.part(rows))

    def about(self) -> Mapping[str, Any]:
        data = {"name": self.dataset.about.name, "stretches": len(self.lessons), "sentences": len(self.lessons.texts)}
        return {"kind": self.kind, "data": data, "settings": as_json(self.settings)}

    def export(self, weights: Mapping[str, Tensor], folder: Path) -> None:
        net = self.net
        retriever = Retriever(net.config, net.layout, net.spread, text_encoder=net.text_encoder, name=net.name)  # type: ignore[attr-defined, arg-type]
        retriever.load_state_dict({name: value.detach().cpu() for name, value in weights.items()})
        save_retriever(retriever.eval(), folder, dtype=torch.float16)


def _split(name: str) -> Split:
    if name not in ("train", "val", "test"):
        raise BadValue(f"there is no split '{name}'; choose train, val or test.")
    return name  # type: ignore[return-value]


