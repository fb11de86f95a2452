"""Distillation end to end on a small puppet: priors that know the answer are obeyed, killed runs go on exactly, bad numbers stop."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bunraku.distill.lessons import NoiseSchedule
from bunraku.distill.optimise import optimise
from bunraku.distill.regularise import Regularisers
from bunraku.distill.settings import DistillSettings
from bunraku.distill.teachers import PriorTeacher, VideoTeacher
from bunraku.distill.trajectory import Trajectory
from bunraku.errors import BadValue, Diverged
from bunraku.priors.noise_paths import Diffusion, RectifiedFlow
from bunraku.training.run_folder import RunFolder
from tests.distill.oracles import Oracle, random_encoder
from tests.distill.small_stage import clip, rest, stage, waving


def settings(iterations: int = 160, **changes: object) -> DistillSettings:
    given = {"learning_rate": 0.08, "weighting": "even", "regularisers": Regularisers(smooth=1e-4, ground=0.1), "save_every": 5}
    return DistillSettings(iterations=iterations, **{**given, **changes})  # type: ignore[arg-type]


def degrees_off(found: Trajectory, wanted: Trajectory) -> float:
    """Between the bones' directions, mean over bones and frames: a round puppet does not show how it is twisted."""
    along = [trajectory.poses().R_world_joint[..., 1].detach() for trajectory in (found, wanted)]
    return float(torch.rad2deg(torch.acos((along[0] * along[1]).sum(-1).clamp(-1, 1))).mean())


@pytest.mark.parametrize(
    ("basis", "path", "encoded"),
    [("frames", "flow", False), ("spline", "flow", False), ("frames", "v", True)],
)
def test_a_prior_that_knows_the_motion_is_obeyed(basis: str, path: str, encoded: bool) -> None:
    wanted = waving()
    prior = Oracle(clip(wanted), path=RectifiedFlow() if path == "flow" else Diffusion(sigmas=torch.linspace(0.01, 1, 1000, dtype=torch.float64)),
                   net=random_encoder() if encoded else None)  # fmt: skip
    found = rest(basis)
    before = degrees_off(found, wanted)
    made, boxes = stage()
    asked = settings()
    optimise(found, made, boxes, PriorTeacher(prior, "it waves", asked), asked)
    assert before > 7
    assert degrees_off(found, wanted) < 3


def test_a_video_is_matched() -> None:
    wanted, found = waving(), rest()
    made, boxes = stage()
    optimise(found, made, boxes, VideoTeacher(clip(wanted)), settings())
    assert degrees_off(found, wanted) < 3


class Killed(Exception):
    pass


@pytest.mark.parametrize("when", [3, 5, 8])
def test_a_killed_run_goes_on_exactly(when: int, tmp_path: Path) -> None:
    made, boxes = stage()
    asked = settings(10, noise=NoiseSchedule())
    prior = Oracle(clip(waving()))

    def run(folder: Path, *, killed_at: int | None = None, resume: bool = False) -> Trajectory:
        found = rest()
        kept = RunFolder.start(folder, {"settings": {"seed": 0}}, resume=resume)

        def tell(progress: object) -> None:
            if progress.iteration == killed_at:  # type: ignore[attr-defined]
                raise Killed

        return optimise(found, made, boxes, PriorTeacher(prior, "it waves", asked), asked, run=kept, on_progress=tell)

    whole = run(tmp_path / "whole")
    with pytest.raises(Killed):
        run(tmp_path / "killed", killed_at=when)
    again = run(tmp_path / "killed", resume=True)
    for a, b in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
    rows = (tmp_path / "killed" / "log.jsonl").read_text().splitlines()
    assert len(rows) == 10


def test_numbers_that_are_none_stop_the_run_and_are_named(tmp_path: Path) -> None:
    class Broken(Oracle):
        def predict_clean(self, noisy: torch.Tensor, sigma: float, condition: str, guidance: float) -> torch.Tensor:
            return noisy * float("nan")

    made, boxes = stage()
    asked = settings(3)
    with pytest.raises(Diverged, match="iteration 0: prior, gradient, away is not a finite number"):
        optimise(rest(), made, boxes, PriorTeacher(Broken(clip(rest())), "it waves", asked), asked, run=RunFolder.start(tmp_path / "run", {}, resume=False))
    assert list((tmp_path / "run" / "diverged").iterdir())


def test_a_checkpoint_of_another_basis_is_refused(tmp_path: Path) -> None:
    made, boxes = stage()
    asked = settings(5)
    kept = RunFolder.start(tmp_path / "run", {}, resume=False)
    optimise(rest(), made, boxes, VideoTeacher(clip(rest())), asked, run=kept)
    shorter = Trajectory(made.rig, type(rest().timing)(frames=4, fps=8.0), basis="frames")
    with pytest.raises(BadValue, match="of another character or basis"):
        optimise(shorter, made, boxes, VideoTeacher(clip(rest())), settings(9), run=kept)


@pytest.mark.parametrize(("shape", "said"), [((4, 8, 8, 3), "has 4 frames, the motion 6"), ((0, 8, 8, 3), "must be")])
def test_videos_of_another_shape_are_refused(shape: tuple[int, ...], said: str) -> None:
    made, boxes = stage()
    with pytest.raises(BadValue, match=said):
        optimise(rest(), made, boxes, VideoTeacher(torch.rand(shape)), settings(2))
