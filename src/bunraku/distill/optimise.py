"""The loop: film the trajectory, let a teacher judge the clip, charge what no body should do, take a step.

    trajectory ─► poses ─► stage ─► video ─► teacher (a prior, or a video to fit) ─┐
        ▲                    └─► bone boxes ─► regularisers ───────────────────────┴─► loss
        └───────────────────────────────── Adam ◄──────────────────────────────────────┘

An iteration depends on the coefficients, the optimiser and its own number alone, so a run that was killed goes on exactly.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from bunraku.distill.bone_boxes import BoneBoxes
from bunraku.distill.regularise import regularisers
from bunraku.distill.settings import DistillSettings
from bunraku.distill.stage import Stage
from bunraku.distill.teachers import Teacher
from bunraku.distill.trajectory import Trajectory
from bunraku.errors import BadValue, Diverged
from bunraku.training.run_folder import RunFolder

BETAS, EPS = (0.9, 0.99), 1e-15
_SEEDS = 1_000_003  # apart enough that iterations of neighbouring seeds never share their noise


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What is told while a run goes on."""

    iteration: int
    iterations: int
    terms: Mapping[str, float]
    seconds_left: float


def optimise(
    trajectory: Trajectory,
    stage: Stage,
    boxes: BoneBoxes,
    teacher: Teacher,
    settings: DistillSettings,
    *,
    run: RunFolder | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    preview: Callable[[int, Trajectory], None] | None = None,
) -> Trajectory:
    """Takes all iterations that are left. With a run folder, its newest checkpoint is where it begins."""
    optimiser = torch.optim.Adam(trajectory.parameters(), lr=settings.learning_rate, betas=BETAS, eps=EPS)
    first = _resumed(run, trajectory, optimiser)
    since = time.monotonic()
    for iteration in range(first, settings.iterations):
        terms = _step(trajectory, stage, boxes, teacher, settings, optimiser, iteration)
        done = iteration + 1
        if any(not math.isfinite(value) for value in terms.values()):
            _stop(run, iteration, terms, trajectory)
        if run is not None:
            run.log(done, terms)
            if done % settings.save_every == 0 or done == settings.iterations:
                run.save(done, {"iteration": done, "net": trajectory.state_dict(), "optimiser": optimiser.state_dict()})
        if preview is not None and settings.preview_every and done % settings.preview_every == 0:
            preview(done, trajectory)
        if on_progress is not None:
            pace = (time.monotonic() - since) / (done - first)
            on_progress(Progress(iteration=done, iterations=settings.iterations, terms=terms, seconds_left=pace * (settings.iterations - done)))
    return trajectory


def _step(
    trajectory: Trajectory,
    stage: Stage,
    boxes: BoneBoxes,
    teacher: Teacher,
    settings: DistillSettings,
    optimiser: torch.optim.Optimizer,
    iteration: int,
) -> dict[str, float]:
    generator = torch.Generator().manual_seed(settings.seed * _SEEDS + iteration)
    poses = trajectory.poses()
    video = stage.film(poses, teacher.width, teacher.height)
    loss, numbers = teacher.judge(video, iteration / max(settings.iterations - 1, 1), generator)
    ground = stage.scene.ground.height if stage.scene.ground is not None else 0.0
    charged = regularisers(settings.regularisers, trajectory, poses, boxes, ground)
    for group in optimiser.param_groups:
        group["lr"] = settings.rate_at(iteration)
    optimiser.zero_grad(set_to_none=True)
    (loss + sum(charged.values())).backward()
    gradient = torch.stack([p.grad.norm() for p in trajectory.parameters() if p.grad is not None]).norm()
    terms = {"prior": float(loss.detach()), **{name: float(value.detach()) for name, value in charged.items()}, "gradient": float(gradient)}
    if all(math.isfinite(value) for value in terms.values()):
        optimiser.step()
    return {**terms, **numbers}


def _resumed(run: RunFolder | None, trajectory: Trajectory, optimiser: torch.optim.Optimizer) -> int:
    if run is None:
        return 0
    found = run.newest()
    if found is None:
        run.forget_after(0)
        return 0
    try:
        trajectory.load_state_dict(found["net"])
        optimiser.load_state_dict(found["optimiser"])
    except (KeyError, RuntimeError, ValueError) as error:
        raise BadValue(f"the checkpoint in '{run.folder}' is of another character or basis; start a new run in another folder.") from error
    run.forget_after(int(found["iteration"]))
    return int(found["iteration"])


def _stop(run: RunFolder | None, iteration: int, terms: Mapping[str, float], trajectory: Trajectory) -> None:
    wrong = ", ".join(name for name, value in terms.items() if not math.isfinite(value))
    kept = ""
    if run is not None:
        what: dict[str, Any] = {"iteration": iteration, "terms": dict(terms), "net": trajectory.state_dict()}
        kept = f" What was in work is in '{run.dump(iteration, what)}'."
    raise Diverged(f"the distillation stopped at iteration {iteration}: {wrong} is not a finite number.{kept} Lower the learning rate or the guidance.")
