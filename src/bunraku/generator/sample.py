"""Motions from a model: noise, the solver's steps under guidance, and features turned back into motion.

Every clip has noise of its own, drawn on the CPU from its own seed, so that a clip comes out the same whatever else is in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bunraku.diffusion.guidance import Branch, Guidance, branches
from bunraku.diffusion.schedule import CosineSchedule
from bunraku.diffusion.solvers import Solver, StepTable, solve, step_table
from bunraku.errors import BadValue
from bunraku.generator.conditioning import Observation
from bunraku.generator.denoiser import Condition, Denoiser
from bunraku.generator.features import FeatureLayout


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """One clip that is wanted: its length, what it should show, what is known of it."""

    frames: int
    text: Float[Tensor, "S W"]  # features of the prompt, one row per text slot; no rows or zeros: no text
    seed: int = 0
    heading: float = 0.0  # [rad] at the first frame
    observation: Observation | None = None


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How clips are drawn."""

    solver: Solver = "dpm"
    steps: int = 20
    guidance: Guidance = field(default_factory=Guidance)


def sample(
    denoiser: Denoiser, requests: Sequence[Request], sampling: Sampling = Sampling(), on_step: Callable[[float], None] | None = None
) -> list[Float[Tensor, "F D"]]:
    """The features of every clip, not normalised, each of its own length. `on_step` is told how many steps are done, of all clips on average.

    On a GPU all run as one batch. On a CPU one after the other: there a batch is no faster, and matrix products of other sizes are
    rounded otherwise, so that a clip would not come out the same in other company.
    """
    if denoiser.device.type != "cpu":
        return _sample_together(denoiser, requests, sampling, on_step)
    clips = []
    for number, request in enumerate(requests):

        def of_all(step: float, before: int = number) -> None:
            if on_step is not None:
                on_step((before * sampling.steps + step) / len(requests))

        clips += _sample_together(denoiser, [request], sampling, of_all)
    return clips


def _sample_together(
    denoiser: Denoiser, requests: Sequence[Request], sampling: Sampling, on_step: Callable[[float], None] | None
) -> list[Float[Tensor, "F D"]]:
    condition, floating = batch(denoiser, requests)
    noise = torch.zeros_like(condition.observed if condition.observed is not None else _blank(denoiser, requests))
    for row, request in enumerate(requests):
        noise[row, : request.frames] = draw_noise(request, denoiser.layout).to(noise)
    has_text = bool((condition.text != 0).any())
    wanted = branches(sampling.guidance, has_text=has_text, has_constraints=condition.mask is not None)
    guided = GuidedDenoiser(denoiser, condition, wanted, floating)
    table = step_table(sampling.solver, CosineSchedule(), sampling.steps)
    x = _solve_captured(table, guided, noise, on_step) if guided.recordable else solve(table, guided, noise, on_step)
    spread = denoiser.stats.features
    features = x.float().cpu() * spread.scale + spread.mean
    if not torch.isfinite(features).all():
        raise BadValue("the model gave numbers that are not finite. Lower the guidance weights, or check the model's weights.")
    return [features[row, : request.frames] for row, request in enumerate(requests)]


def _solve_captured(table: StepTable, guided: GuidedDenoiser, noise: Tensor, on_step: Callable[[int], None] | None) -> Tensor:
    from bunraku.generator.captured import solve_captured

    return solve_captured(table, guided, noise, on_step)


def draw_noise(request: Request, layout: FeatureLayout) -> Float[Tensor, "F D"]:
    return torch.randn(request.frames, layout.width, generator=torch.Generator().manual_seed(request.seed))


def batch(denoiser: Denoiser, requests: Sequence[Request]) -> tuple[Condition, Bool[Tensor, "B F D"] | None]:
    """The requests as one condition on the denoiser's device, padded to the longest; and which observed columns float."""
    frames, width, slots = max(request.frames for request in requests), denoiser.layout.width, max(len(request.text) for request in requests)
    text = torch.zeros(len(requests), max(slots, 1), denoiser.config.backbone.text_width)
    observed, mask, floating = (torch.zeros(len(requests), frames, width) for _ in range(3))
    spread = denoiser.stats.features
    for row, request in enumerate(requests):
        text[row, : len(request.text)] = request.text
        if request.observation is not None:
            known = request.observation
            observed[row, : request.frames] = (known.values - spread.mean) / spread.scale
            mask[row, : request.frames] = known.mask.float()
            floating[row, : request.frames] = known.floating.float()
    valid = torch.arange(frames) < torch.tensor([request.frames for request in requests])[:, None]
    device, constrained = denoiser.device, bool(mask.any())
    condition = Condition(
        text=text.to(device),
        heading=torch.tensor([request.heading for request in requests]).to(device),
        observed=observed.to(device) if constrained else None,
        mask=mask.bool().to(device) if constrained else None,
        valid=None if valid.all() else valid.to(device),
    )
    return condition, floating.bool().to(device) if floating.any() else None


def _blank(denoiser: Denoiser, requests: Sequence[Request]) -> Tensor:
    return torch.zeros(len(requests), max(request.frames for request in requests), denoiser.layout.width, device=denoiser.device)


class GuidedDenoiser:
    """`predict` for a solver: the weighted sum of guidance branches, all in one batched pass of the denoiser."""

    def __init__(self, denoiser: Denoiser, condition: Condition, wanted: Sequence[Branch], floating: Bool[Tensor, "B F D"] | None = None) -> None:
        self.denoiser, self.copies = denoiser, len(wanted)
        self.weights = torch.tensor([branch.weight for branch in wanted]).to(condition.heading).view(-1, 1, 1, 1)
        stacked = _stacked(condition, wanted)
        with torch.no_grad():
            self.condition = replace(stacked, embedded=denoiser.embed(stacked))
        self.anchor = None
        if floating is not None and self.condition.mask is not None:
            self.anchor = _Anchor(denoiser, condition, floating)

    def __call__(self, x: Float[Tensor, "B F D"], level: Int[Tensor, " B"]) -> Float[Tensor, "B F D"]:
        if self.anchor is None:
            return self._guess(x, level, self.condition)
        if self.anchor.root is None:  # a first look without the floating columns, to learn where the root will be
            self.anchor.root = self._guess(x, level, self.anchor.without_floating(self.condition))[..., :3]
        guess = self._guess(x, level, self.anchor.tied(self.condition))
        self.anchor.root = guess[..., :3]
        return guess

    @property
    def recordable(self) -> bool:
        """Whether every step runs the same kernels on the GPU, so that one can be recorded and repeated."""
        return self.anchor is None and self.denoiser.device.type == "cuda"

    @property
    def layout_key(self) -> tuple[object, ...]:
        """What two of these must share for one to be refilled with the other's conditions."""
        return tuple((name, tuple(value.shape)) for name, value in _buffers(self.condition).items())

    def refill(self, other: GuidedDenoiser) -> None:
        """Takes over another's conditions and weights, in the same memory."""
        self.weights.copy_(other.weights)
        theirs = _buffers(other.condition)
        for name, value in _buffers(self.condition).items():
            value.copy_(theirs[name])

    def _guess(self, x: Tensor, level: Tensor, condition: Condition) -> Tensor:
        guesses = self.denoiser(x.repeat(self.copies, 1, 1), level.repeat(self.copies), condition)
        return (guesses.unflatten(0, (self.copies, -1)) * self.weights).sum(0)


def _buffers(condition: Condition) -> dict[str, Tensor]:
    """What a step reads of a condition, by name."""
    named = {name: getattr(condition, name) for name in ("observed", "mask", "valid")}
    named |= {f"embedded {stage}": tokens for stage, tokens in enumerate(condition.embedded or ())}
    return {name: value for name, value in named.items() if value is not None}


def _stacked(condition: Condition, wanted: Sequence[Branch]) -> Condition:
    """The branches' conditions one after the other along the batch."""
    copies, mask, observed = len(wanted), condition.mask, condition.observed
    if mask is None or observed is None or not any(branch.constraints for branch in wanted):
        mask = observed = None
    return Condition(
        text=torch.cat([condition.text * float(branch.text) for branch in wanted]),
        heading=condition.heading.repeat(copies),
        observed=None if observed is None else observed.repeat(copies, 1, 1),
        mask=None if mask is None else torch.cat([mask & branch.constraints for branch in wanted]),
        valid=None if condition.valid is None else condition.valid.repeat(copies, 1),
    )


class _Anchor:
    """Ties columns that float in the world to the latest guess at the smoothed root, from which the features are counted."""

    def __init__(self, denoiser: Denoiser, condition: Condition, floating: Bool[Tensor, "B F D"]) -> None:
        spread = denoiser.stats.features
        self.floating = floating
        self.scale, self.mean = spread.scale.to(floating.device), spread.mean.to(floating.device)
        self.root: Float[Tensor, "B F 3"] | None = None  # normalised
        columns = torch.arange(floating.shape[-1], device=floating.device)
        self.axis = (columns - denoiser.layout.joint_positions.start) % 3  # 0 for x, 2 for z of a joint position

    def tied(self, condition: Condition) -> Condition:
        assert condition.observed is not None
        assert self.root is not None
        root = self.root * self.scale[:3] + self.mean[:3]
        shift = torch.where(self.axis == 0, root[..., :1], root[..., 2:3]) * self.floating / self.scale
        return replace(condition, observed=condition.observed - shift.repeat(len(condition.heading) // len(shift), 1, 1))

    def without_floating(self, condition: Condition) -> Condition:
        assert condition.mask is not None
        return replace(condition, mask=condition.mask & ~self.floating.repeat(len(condition.heading) // len(self.floating), 1, 1))
