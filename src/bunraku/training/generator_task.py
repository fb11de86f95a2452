"""Training the denoiser (kimodo §4.3): captured motion, noise of a random level, and the network's guess at what lies below it.

    window of a clip ─► features, mirrored or not, turned anyhow ─► + noise ─► denoiser ─► loss
    its sentence     ─► text slots (one in ten: none) ────────────────────────────▲
    a pattern        ─► which features it is told, in the second phase ───────────┘
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bunraku.datasets.forms import sentence_forms
from bunraku.datasets.statistics import statistics_of
from bunraku.datasets.store import Dataset
from bunraku.diffusion.schedule import BASE_STEPS, CosineSchedule
from bunraku.errors import BadValue
from bunraku.generator.backbone import EncoderLayer
from bunraku.generator.checkpoint import Model, load_model, save_model
from bunraku.generator.denoiser import Condition, Denoiser, DenoiserConfig
from bunraku.generator.features import FeatureLayout
from bunraku.generator.text.encoder import TextEncoder
from bunraku.training.draws import LENGTHS, Forms, WindowSampler, described
from bunraku.training.frames import FrameTable
from bunraku.training.losses import LossWeights, MotionLoss
from bunraku.training.moving import moved
from bunraku.training.patterns import Groups, PatternSampler, most_keys_at
from bunraku.training.preview import draw_preview
from bunraku.training.ranks import Ranks
from bunraku.training.settings import LoopSettings, as_json
from bunraku.training.task import Task, mixed, seeded
from bunraku.training.texts import TextTable

NOISE_ROWS = 16  # clips whose noise is drawn from one seed: ranks that share a batch draw the noise of the whole


@dataclass(frozen=True, kw_only=True)
class GeneratorSettings:
    """A complete configuration of generator training."""

    denoiser: DenoiserConfig
    loop: LoopSettings = field(default_factory=LoopSettings)
    losses: LossWeights = field(default_factory=LossWeights)
    text_encoder: str = "minilm"
    smooth_root: bool = True  # False: the root is the hips themselves (an ablation of the paper)
    text_only: float = 0.5  # share of the steps before constraints are told, too
    dropout: tuple[float, float] = (0.1, 0.0)  # in the first phase, in the second
    text_drop: float = 0.1  # how often the sentence is left out
    constrained: float = 1.0  # share of the clips of the second phase for which a pattern is drawn
    lengths: tuple[int, ...] = LENGTHS  # [frames]
    shorter: float = 0.3  # how often a part of a window is drawn, against as much of it as a length allows
    mirror: bool = True

    def __post_init__(self) -> None:
        shares = {"text_only": self.text_only, "text_drop": self.text_drop, "constrained": self.constrained, "shorter": self.shorter}
        for name, value in shares.items():
            if not 0 <= value <= 1:
                raise BadValue(f"{name} is {value:g}; a share from 0 to 1 is needed.")
        if not self.lengths or min(self.lengths) < 2:
            raise BadValue(f"lengths are {self.lengths}; at least one of 2 frames or more is needed.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """What the network is given, and what it should have said."""

    noisy: Float[Tensor, "B F D"]  # normalised, as all here
    level: Int[Tensor, " B"]
    clean: Float[Tensor, "B F D"]
    text: Float[Tensor, "B S W"]
    heading: Float[Tensor, " B"]  # [rad]
    mask: Bool[Tensor, "B F D"] | None  # what is known


class Objective(nn.Module):
    """A batch to the weighted terms of its loss."""

    def __init__(self, denoiser: Denoiser, loss: MotionLoss) -> None:
        super().__init__()
        self.denoiser, self.loss = denoiser, loss

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        condition = Condition(text=batch.text, heading=batch.heading, observed=None if batch.mask is None else batch.clean, mask=batch.mask)
        guess = self.denoiser(batch.noisy, batch.level, condition)
        with torch.autocast(guess.device.type, enabled=False):
            return self.loss(guess, batch.clean)


class GeneratorTask(Task):
    kind = "generator"

    def __init__(
        self,
        settings: GeneratorSettings,
        dataset: Dataset,
        encoder: TextEncoder,
        ranks: Ranks,
        *,
        forms: Forms = sentence_forms,
        begin_with: Path | None = None,
        on_progress: Callable[[float], None] | None = None,
    ) -> None:
        """`forms` says in which words a caption is told; `begin_with` is a model whose weights are taken over."""
        self.settings, self.dataset, self.device = settings, dataset, ranks.device
        clips = dataset.of_split("train")
        if not clips:
            raise BadValue(f"the dataset '{dataset.folder}' has no clip in its split 'train'; there is nothing to learn from.")
        torch.manual_seed(mixed(settings.loop.seed, -1))
        self.layout = FeatureLayout(skeleton=dataset.skeleton, fps=dataset.fps, smooth=settings.smooth_root)
        backbone = replace(settings.denoiser.backbone, text_width=encoder.width, dropout=0.0)
        self.stats = dataset.stats if settings.smooth_root else statistics_of(dataset, self.layout)
        denoiser = Denoiser(replace(settings.denoiser, backbone=backbone), self.layout, self.stats)
        if begin_with is not None:
            _take_over(denoiser, begin_with)
        seconds = max(settings.lengths) / dataset.fps
        self.model = Model(name=f"{dataset.about.name}", denoiser=denoiser, text_encoder=settings.text_encoder, max_seconds=seconds)
        self.begun_with = None if begin_with is None else str(begin_with)
        self.windows = WindowSampler(
            described(dataset, "train", forms),
            seed=settings.loop.seed,
            batch=settings.loop.batch,
            lengths=settings.lengths,
            shorter=settings.shorter,
            mirror=settings.mirror,
        )
        self.texts = TextTable(self.model, encoder, self.windows.texts, self.device, on_progress)
        self.frames = FrameTable(dataset, clips, self.layout, self.device)
        self.patterns = PatternSampler(Groups.of(self.layout))
        self.columns = Groups(names=self.patterns.groups.names, columns=self.patterns.groups.columns.to(self.device))
        spread = denoiser.stats.features
        self.mean, self.scale = spread.mean.to(self.device), spread.scale.to(self.device)
        self.schedule = CosineSchedule()
        self.net = denoiser.to(self.device).train()
        self.objective = Objective(denoiser, MotionLoss(self.layout, self.stats, settings.losses)).to(self.device)
        if settings.loop.compiled:
            for module in self.objective.modules():
                if isinstance(module, EncoderLayer | MotionLoss):
                    module.compile()  # the second length that it meets makes it ready for any

    # --- a step ---

    def before(self, step: int) -> None:
        rate = self.settings.dropout[0 if self._progress(step) is None else 1]
        for module in self.net.modules():
            if isinstance(module, nn.Dropout):
                module.p = rate
            elif isinstance(module, EncoderLayer):
                module.drop_rate = rate

    def batch(self, step: int, rows: range) -> Batch:
        settings, seed = self.settings, self.settings.loop.seed
        draw, own = self.windows.draw(step), slice(rows.start, rows.stop)
        clean = self._clean(draw.clip[own], draw.first[own], draw.frames, draw.mirrored[own], draw.yaw[own])
        dice = torch.rand(settings.loop.batch, 3, generator=seeded(seed, step, 1))[own]
        told = np.where(dice[:, 0].numpy() < settings.text_drop, -1, draw.text[own])
        level = moved((dice[:, 1] * BASE_STEPS).long().clamp_max(BASE_STEPS - 1), self.device)
        heading = clean[:, 0, self.layout.heading] * self.scale[self.layout.heading] + self.mean[self.layout.heading]
        return Batch(
            noisy=self.schedule.noisy(clean, self._noise(step, rows, clean.shape[1:]), level),
            level=level,
            clean=clean,
            text=self.texts.rows(told),
            heading=torch.atan2(heading[:, 1], heading[:, 0]),
            mask=self._mask(step, own, draw.frames, dice[:, 2]),
        )

    def _clean(self, clip: np.ndarray, first: np.ndarray, frames: int, mirrored: np.ndarray, yaw: np.ndarray) -> Float[Tensor, "B F D"]:
        features = self.frames.cut(torch.from_numpy(self.frames.first[clip] + first), frames, torch.from_numpy(mirrored), torch.from_numpy(yaw))
        return (features - self.mean) / self.scale

    def _noise(self, step: int, rows: range, shape: Sequence[int]) -> Float[Tensor, "B F D"]:
        """Standard noise, the same for a row of the batch whichever rows are drawn with it."""
        first, last = rows.start // NOISE_ROWS, math.ceil(rows.stop / NOISE_ROWS)
        blocks = [
            torch.randn(NOISE_ROWS, *shape, device=self.device, generator=seeded(self.settings.loop.seed, step, 2, block, device=self.device))
            for block in range(first, last)
        ]
        return torch.cat(blocks)[rows.start - first * NOISE_ROWS : rows.stop - first * NOISE_ROWS]

    def _mask(self, step: int, own: slice, frames: int, dice: Float[Tensor, " B"]) -> Bool[Tensor, "B F D"] | None:
        progress = self._progress(step)
        if progress is None:
            return None
        loop = self.settings.loop
        pattern = self.patterns.draw(loop.batch, frames, most_keys_at(progress), seeded(loop.seed, step, 3))
        told = (dice < self.settings.constrained)[:, None]
        mine = replace(pattern, frames=pattern.frames[:, own] & told, groups=pattern.groups[:, own])
        return mine.to(self.device).mask(self.columns)

    def _progress(self, step: int) -> float | None:
        """How much of the second phase is over; None in the first."""
        first = round(self.settings.text_only * self.settings.loop.steps)
        return None if step < first else (step - first) / max(self.settings.loop.steps - first, 1)

    # --- what a run is, and what comes of it ---

    def about(self) -> Mapping[str, Any]:
        data = {"name": self.dataset.about.name, "clips": len(self.dataset.clips), "frames": self.frames.frames, "sentences": len(self.windows.texts)}
        return {"kind": self.kind, "data": data, "begun_with": self.begun_with, "settings": as_json(self.settings)}

    def export(self, weights: Mapping[str, Tensor], folder: Path) -> None:
        save_model(self._with(weights), folder, dtype=torch.float16)

    def preview(self, weights: Mapping[str, Tensor], path: Path) -> None:
        draw_preview(self._with(weights), self.texts, self.windows.texts, path)

    def _with(self, weights: Mapping[str, Tensor]) -> Model:
        """The model as it is used after training: on the CPU, with the mean of the weights."""
        denoiser = Denoiser(self.net.config, self.layout, self.stats)  # type: ignore[attr-defined]
        denoiser.load_state_dict({name: value.detach().cpu() for name, value in weights.items()})
        return replace(self.model, denoiser=denoiser.eval().requires_grad_(False))


def _take_over(denoiser: Denoiser, folder: Path) -> None:
    """The weights of another model of the same make."""
    theirs = load_model(folder).denoiser.state_dict()
    for name, value in denoiser.state_dict().items():
        if name not in theirs or theirs[name].shape != value.shape:
            given = "lacks it" if name not in theirs else f"has it in shape {list(theirs[name].shape)}"
            raise BadValue(f"training cannot begin with '{folder}': the new network has weights '{name}' of shape {list(value.shape)}, that model {given}.")
    denoiser.load_state_dict({name: theirs[name] for name in denoiser.state_dict()})
