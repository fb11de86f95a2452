"""The loop that all training shares.

    batch of step n ─► terms of the loss ─► gradients (exchanged between ranks) ─► clipped ─► optimiser ─► running mean
                                                └─ not finite, or the loss far above its best: dump and stop

A step depends on the weights, the optimiser and its own number alone. So a run that was killed goes on bit for bit where its newest
checkpoint was, as long as machine and versions stay the same.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bunraku.errors import Diverged
from bunraku.training.ema import Ema
from bunraku.training.optimiser import optimiser_of
from bunraku.training.ranks import Ranks
from bunraku.training.run_folder import RunFolder
from bunraku.training.state import load_state, state_of
from bunraku.training.task import Task, mixed

LATE = 2  # steps after which gradients are looked at: waiting for them at once would leave a GPU idle
ASKED = 10  # steps between two looks at the clock, where ranks must agree: asking waits for the GPU
RUNAWAY, PATIENCE = 3.0, 3  # so many logged losses in a row that many times above the best one


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What is told while a run goes on."""

    step: int
    steps: int
    loss: float
    steps_per_second: float


def train(
    task: Task,
    folder: Path,
    ranks: Ranks,
    *,
    resume: bool = False,
    minutes: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> bool:
    """Trains until the last step, or until so many minutes are over; True if it came to its end. Either way it can be gone on with."""
    return _Run(task, folder, ranks, resume, on_progress).go(math.inf if minutes is None else time.monotonic() + 60 * minutes)


class _Run:
    def __init__(self, task: Task, folder: Path, ranks: Ranks, resume: bool, on_progress: Callable[[Progress], None] | None) -> None:
        self.task, self.ranks, self.settings, self.on_progress = task, ranks, task.loop, on_progress
        self.rows = ranks.share(self.settings.batch)
        if ranks.first:
            RunFolder.start(folder, task.about(), resume=resume)
        ranks.wait()
        self.folder = RunFolder(folder)
        self.objective = ranks.wrapped(task.objective)
        self.weights = list(task.net.parameters())
        self.ema = Ema(task.net, self.settings.ema_decay, self.settings.ema_every)
        self.optimiser = optimiser_of(self.settings, self.weights, ranks.device)
        self.step = 0
        found = self.folder.newest() if resume else None
        if found is not None:
            self.step = load_state(found, task.net, self.optimiser, self.ema)
        if resume and ranks.first:
            self.folder.forget_after(self.step)
        self.best, self.bad = math.inf, 0
        self.sums: dict[str, Tensor] = {}
        self.summed, self.since = 0, time.monotonic()
        self.pending: deque[tuple[int, Tensor, Any]] = deque()
        self.batches = _Ahead(task, self.rows, ranks.device)

    def go(self, deadline: float) -> bool:
        settings = self.settings
        self.since = time.monotonic()
        try:
            while self.step < settings.steps and not self._over(deadline):
                self._one_step()
                if self.step % settings.log_every == 0 or self.step == settings.steps:
                    self._log()
                if self.step % settings.checkpoint_every == 0 and self.step < settings.steps:
                    self._save()
                if settings.preview_every and self.step % settings.preview_every == 0:
                    self._preview()
            self._look_at_gradients(0)
            self._save()
        finally:
            self.folder.close()
        return self.step >= settings.steps

    def _over(self, deadline: float) -> bool:
        """Whether time is up, on any rank: all must stop at the same step, so all ask together, now and then."""
        late = time.monotonic() > deadline
        if self.ranks.world == 1 or deadline == math.inf:
            return late
        return self.step % ASKED == 0 and bool(self.ranks.mean(torch.tensor(float(late), device=self.ranks.device)) > 0)

    def _one_step(self) -> None:
        task, settings = self.task, self.settings
        task.before(self.step)
        torch.manual_seed(mixed(settings.seed, self.step, self.ranks.rank))  # what the network itself draws: dropout
        batch = self.batches.take(self.step)
        for group in self.optimiser.param_groups:
            group["lr"] = max(settings.rate_at(self.step), 1e-12)
        with torch.autocast(self.ranks.device.type, torch.bfloat16, enabled=settings.precision == "bfloat16"):
            terms = self.objective(batch)
        loss = torch.stack(list(terms.values())).sum()
        loss.backward()
        norm = _clipped(self.weights, settings.gradient_clip)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.step += 1
        if self.step < settings.steps:
            self.batches.prepare(self.step)
        self.ema.update(self.step)
        self.pending.append((self.step, norm, (batch, {name: value.detach() for name, value in terms.items()})))
        self._add({**terms, "loss": loss, "gradient": norm})
        self._look_at_gradients(LATE)

    def _add(self, numbers: Mapping[str, Tensor]) -> None:
        for name, value in numbers.items():
            value = value.detach().float()
            self.sums[name] = self.sums[name] + value if name in self.sums else value
        self.summed += 1

    def _look_at_gradients(self, late: int) -> None:
        """Stops at gradients that are not finite, before a checkpoint can hold what they made of the weights."""
        while len(self.pending) > late:
            step, norm, what = self.pending.popleft()
            if not math.isfinite(float(norm)):
                self._stop(step, "the gradients are not finite", what)

    def _log(self) -> None:
        last = self.pending[-1][2] if self.pending else None
        self._look_at_gradients(0)
        means = {name: float(self.ranks.mean(total / self.summed)) for name, total in self.sums.items()}
        now = time.monotonic()
        speed = self.summed / max(now - self.since, 1e-9)
        self.sums, self.summed, self.since = {}, 0, now
        loss = means["loss"]
        if self.step > 2 * self.settings.warmup:
            self.bad = self.bad + 1 if loss > RUNAWAY * self.best else 0
            self.best = min(self.best, loss)
        if not math.isfinite(loss) or self.bad >= PATIENCE:
            self._stop(self.step, f"the loss is {loss:.4g}, its best was {self.best:.4g}", last)
        if not self.ranks.first:
            return
        rate = self.optimiser.param_groups[0]["lr"]
        self.folder.log(self.step, {**means, "rate": rate, "steps/s": speed, "clips/s": speed * self.settings.batch})
        if self.on_progress is not None:
            self.on_progress(Progress(step=self.step, steps=self.settings.steps, loss=loss, steps_per_second=speed))

    def _stop(self, step: int, why: str, what: Any) -> None:
        kept = ""
        if self.ranks.first:
            batch, terms = what if what is not None else (None, {})
            path = self.folder.dump(step, {"step": step, "why": why, "terms": {name: float(v) for name, v in terms.items()}, "batch": plain(batch)})
            kept = f" What was in work is in '{path}'."
        again = "--resume would come here again: start a new run with a lower learning_rate, from this one's model if there is one (--begin-with)."
        raise Diverged(f"training diverged at step {step}: {why}.{kept} {again}")

    def _save(self) -> None:
        self._look_at_gradients(0)
        state = state_of(self.step, self.task.net, self.optimiser, self.ema)  # gathers: all ranks take part
        weights = self.ema.weights()
        if self.ranks.first:
            self.folder.save(self.step, state)
            self.task.export(weights, self.folder.folder / "model")
        self.ranks.wait()

    def _preview(self) -> None:
        weights = self.ema.weights()
        if self.ranks.first:
            folder = self.folder.folder / "previews"
            folder.mkdir(exist_ok=True)
            self.task.preview(weights, folder / f"step_{self.step:08d}.png")


class _Ahead:
    """Batches made ready one step ahead, on a GPU beside the step in work: what copies from the host waits for nothing but itself."""

    def __init__(self, task: Task, rows: range, device: torch.device) -> None:
        self.task, self.rows = task, rows
        self.beside = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.ready: tuple[int, Any] | None = None

    def prepare(self, step: int) -> None:
        with torch.cuda.stream(self.beside) if self.beside is not None else nullcontext():
            self.ready = (step, self.task.batch(step, self.rows))

    def take(self, step: int) -> Any:
        """The batch of a step. The loop keeps it until the step is over: its memory belongs to the other stream."""
        if self.ready is None or self.ready[0] != step:
            self.prepare(step)
        if self.beside is not None:
            torch.cuda.current_stream().wait_stream(self.beside)
        assert self.ready is not None
        batch, self.ready = self.ready[1], None
        return batch


def _clipped(weights: list[nn.Parameter], most: float) -> Tensor:
    """Scales all gradients down to a norm of `most`; returns what it was."""
    norm = nn.utils.clip_grad_norm_(weights, most)
    return norm.full_tensor() if hasattr(norm, "full_tensor") else norm  # type: ignore[attr-defined]


def plain(batch: Any) -> Any:
    """A batch as tensors in plain containers on the CPU, to be looked at later."""
    if isinstance(batch, Tensor):
        return batch.detach().cpu()
    if isinstance(batch, Mapping):
        return {str(name): plain(value) for name, value in batch.items()}
    if isinstance(batch, list | tuple):
        return [plain(value) for value in batch]
    if hasattr(batch, "__dataclass_fields__"):
        return {name: plain(getattr(batch, name)) for name in batch.__dataclass_fields__}
    return batch if isinstance(batch, int | float | str | bool | None) else str(batch)
