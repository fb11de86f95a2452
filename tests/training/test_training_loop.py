"""Runs: two steps, killed, two more are four; two ranks are one; numbers that run away stop it; what is on disk is always whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_training import SMALL, task_of, with_loop

from bunraku.datasets.store import Dataset
from bunraku.errors import BadValue, BunrakuError, Diverged, FileProblem, FormatProblem
from bunraku.generator.checkpoint import load_model
from bunraku.generator.sample import Request, Sampling, sample
from bunraku.training.generator_task import GeneratorSettings
from bunraku.training.loop import Progress, train
from bunraku.training.ranks import Ranks
from bunraku.training.run_folder import RunFolder, read_log

HERE = Path(__file__).resolve().parent


def run(dataset: Dataset, folder: Path, settings: GeneratorSettings = SMALL, **options: Any) -> None:
    train(task_of(dataset, settings), folder, Ranks(), **options)


def newest(folder: Path) -> Mapping[str, Any]:
    state = RunFolder(folder).newest()
    assert state is not None
    return state


def newest_step(folder: Path) -> int | None:
    state = RunFolder(folder).newest()
    return None if state is None else state["step"]


def assert_same(ours: Any, theirs: Any, where: str = "") -> None:
    """Equal to the last bit."""
    assert type(ours) is type(theirs), where
    if isinstance(ours, Mapping):
        assert ours.keys() == theirs.keys(), where
        for name in ours:
            assert_same(ours[name], theirs[name], f"{where}.{name}")
    elif isinstance(ours, torch.Tensor):
        assert torch.equal(ours, theirs), where
    else:
        assert ours == theirs, where


# --- going on --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimiser", ["adamw", "adam-atan2"])
def test_two_steps_and_two_more_are_four(walks: Dataset, tmp_path: Path, optimiser: str) -> None:
    settings = with_loop(optimiser=optimiser)
    run(walks, tmp_path / "straight", settings)

    class Killed(Exception):
        pass

    def kill(progress: Progress) -> None:
        if progress.step == 3:  # one step beyond the checkpoint
            raise Killed

    with pytest.raises(Killed):
        run(walks, tmp_path / "broken", settings, on_progress=kill)
    assert newest(tmp_path / "broken")["step"] == 2
    run(walks, tmp_path / "broken", settings, resume=True)
    assert_same(newest(tmp_path / "broken"), newest(tmp_path / "straight"))
    rows = [[{k: v for k, v in row.items() if k not in ("time", "steps/s", "clips/s")} for row in read_log(tmp_path / n)] for n in ("broken", "straight")]
    assert rows[0] == rows[1]
    assert [row["step"] for row in rows[0]] == [1, 2, 3, 4]


def test_a_run_killed_before_its_first_checkpoint_begins_anew_with_a_clean_log(walks: Dataset, tmp_path: Path) -> None:
    def kill(progress: Progress) -> None:
        if progress.step == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(walks, tmp_path, on_progress=kill)
    assert newest_step(tmp_path) is None
    run(walks, tmp_path, resume=True)
    assert [row["step"] for row in read_log(tmp_path)] == [1, 2, 3, 4]


def test_a_run_that_is_over_stays_as_it_is_when_resumed(walks: Dataset, tmp_path: Path) -> None:
    run(walks, tmp_path)
    before = newest(tmp_path)
    run(walks, tmp_path, resume=True)
    assert_same(newest(tmp_path), before)


def test_time_that_is_up_ends_a_run_with_a_checkpoint(walks: Dataset, tmp_path: Path) -> None:
    assert not train(task_of(walks, with_loop(steps=100_000)), tmp_path, Ranks(), minutes=0.01)
    state = newest(tmp_path)
    assert 0 < state["step"] < 100_000
    assert load_model(tmp_path / "model").layout.joints == 30


@pytest.mark.parametrize("moment", ["writing", "trained"])
def test_a_killed_process_loses_at_most_what_came_after_its_checkpoint(walks: Dataset, tmp_path: Path, moment: str) -> None:
    script = f"""
import sys, torch
sys.path.insert(0, {str(HERE)!r})
torch.set_num_threads(1)
from pathlib import Path
from bunraku.datasets.store import open_dataset
from bunraku.training.loop import train
from bunraku.training.ranks import Ranks
from small_training import task_of, with_loop
train(task_of(open_dataset({str(walks.folder)!r}), with_loop(steps=100000, checkpoint_every=3)), Path({str(tmp_path / "run")!r}), Ranks())
"""
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
    folder = RunFolder(tmp_path / "run")
    deadline = time.monotonic() + 60
    while not folder.checkpoints() and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr and process.stderr.read().decode()
        time.sleep(0.001 if moment == "writing" else 0.05)
    if moment == "trained":
        time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    step = newest(tmp_path / "run")["step"]
    assert step % 3 == 0
    settings = with_loop(steps=100_000, checkpoint_every=3)
    train(task_of(walks, settings), tmp_path / "run", Ranks(), resume=True, minutes=0.005)
    assert newest(tmp_path / "run")["step"] >= step


def test_only_the_newest_checkpoints_are_kept(walks: Dataset, tmp_path: Path) -> None:
    run(walks, tmp_path, with_loop(steps=7, checkpoint_every=1))
    assert [path.name for path in RunFolder(tmp_path).checkpoints()] == ["step_00000006", "step_00000007"]


# --- several ranks ---------------------------------------------------------------------------------------------------


def _torchrun(walks: Dataset, folder: Path, world: int, sharing: str) -> list[dict[str, float]]:
    script = folder.parent / "train.py"
    script.write_text(
        f"""
import sys, torch
sys.path.insert(0, {str(HERE)!r})
torch.set_num_threads(1)
from pathlib import Path
from dataclasses import replace
from bunraku.datasets.store import open_dataset
from bunraku.training.loop import train
from bunraku.training.ranks import ranks
from small_training import SMALL, task_of, with_loop
settings = with_loop(replace(SMALL, dropout=(0.0, 0.0), text_only=0.5), batch=32)
with ranks("cpu", {sharing!r}) as group:
    train(task_of(open_dataset({str(walks.folder)!r}), settings, group), Path({str(folder)!r}), group)
"""
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return read_log(folder)


@pytest.mark.parametrize("sharing", ["ddp", "fsdp"])
def test_two_ranks_learn_what_one_learns_from_the_whole_batch(walks: Dataset, tmp_path: Path, sharing: str) -> None:
    rows = _torchrun(walks, tmp_path / "two", 2, sharing)
    settings = with_loop(replace(SMALL, dropout=(0.0, 0.0), text_only=0.5), batch=32)
    run(walks, tmp_path / "one", settings)
    for ours, theirs in zip(rows, read_log(tmp_path / "one"), strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-4)
    two, one = newest(tmp_path / "two")["net"], newest(tmp_path / "one")["net"]
    assert two.keys() == one.keys()
    # Adam divides by the size of a gradient: where that is nearly nothing, rounding decides, but no step is longer than the rate
    away = torch.cat([(two[name] - one[name]).abs().flatten() for name in one])
    assert float(away.median()) < 1e-5
    assert float(away.max()) < 4e-3


# --- what goes wrong -------------------------------------------------------------------------------------------------


def test_gradients_that_are_not_finite_stop_a_run_and_are_kept(walks: Dataset, tmp_path: Path) -> None:
    task = task_of(walks, with_loop(steps=40, checkpoint_every=5))
    honest = task.batch

    def poisoned(step: int, rows: range) -> Any:
        batch = honest(step, rows)
        return replace(batch, noisy=batch.noisy * float("nan")) if step == 12 else batch

    task.batch = poisoned  # type: ignore[method-assign]
    said = r"training diverged at step 13: the gradients are not finite\. What was in work is in '.*step_00000013\.pt'\. --resume would come here again"
    with pytest.raises(Diverged, match=said):
        train(task, tmp_path, Ranks())
    assert newest(tmp_path)["step"] == 10
    assert all(torch.isfinite(value).all() for value in newest(tmp_path)["net"].values())
    dumped = torch.load(tmp_path / "diverged" / "step_00000013.pt", weights_only=True)
    assert torch.isnan(dumped["batch"]["noisy"]).all()


def test_a_loss_that_runs_away_stops_a_run(walks: Dataset, tmp_path: Path) -> None:
    task = task_of(walks, with_loop(steps=400, learning_rate=1e-3, checkpoint_every=400))
    honest = task.batch

    def worse(step: int, rows: range) -> Any:
        batch = honest(step, rows)
        return replace(batch, clean=batch.clean * 20.0) if step >= 10 else batch

    task.batch = worse  # type: ignore[method-assign]
    with pytest.raises(Diverged, match=r"the loss is .*, its best was"):
        train(task, tmp_path, Ranks())


def test_a_run_is_not_written_over(walks: Dataset, tmp_path: Path) -> None:
    run(walks, tmp_path)
    with pytest.raises(BadValue, match=r"holds a run already\. Go on with it with --resume"):
        run(walks, tmp_path)


def test_going_on_with_other_settings_is_refused_and_says_which(walks: Dataset, tmp_path: Path) -> None:
    run(walks, tmp_path)
    other = with_loop(replace(SMALL, text_drop=0.2), batch=16, log_every=7)
    with pytest.raises(BadValue, match=r"other settings \(settings\.loop\.batch: 16, was 8; settings\.text_drop: 0\.2, was 0\.1\)"):
        run(walks, tmp_path, other, resume=True)
    run(walks, tmp_path, with_loop(log_every=7), resume=True)  # how often it talks may change


def test_a_folder_without_a_run_cannot_be_gone_on_with(walks: Dataset, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(FileProblem, match="holds no run to go on with"):
        run(walks, tmp_path, resume=True)


def test_a_damaged_checkpoint_is_named(walks: Dataset, tmp_path: Path) -> None:
    run(walks, tmp_path)
    path = RunFolder(tmp_path).checkpoints()[-1] / "state.pt"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(FormatProblem, match=r"state\.pt' is damaged .* Delete that folder to go on from the one before"):
        run(walks, tmp_path, resume=True)


def test_a_full_disk_leaves_the_checkpoint_before(walks: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = torch.save

    def full(what: Any, path: Path) -> None:
        honest(what, path)
        if "step_00000004" in str(path):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(BunrakuError, match=r"cannot be written: No space left on device\. The checkpoint before it is whole"):
        run(walks, tmp_path)
    assert newest(tmp_path)["step"] == 2


# --- what comes of it ------------------------------------------------------------------------------------------------


def test_a_short_run_learns_and_its_model_draws(walks: Dataset, tmp_path: Path) -> None:
    run(walks, tmp_path, with_loop(replace(SMALL, dropout=(0.0, 0.0)), steps=60, batch=16, learning_rate=3e-3, warmup=5, log_every=10, checkpoint_every=60))
    losses = [row["loss"] for row in read_log(tmp_path)]
    assert losses[-1] < 0.6 * losses[0]
    model = load_model(tmp_path / "model")
    (features,) = sample(model.denoiser, [Request(frames=25, text=torch.zeros(1, 16))], Sampling(steps=3))
    assert torch.isfinite(features).all()


def test_the_log_tells_terms_rate_and_speed(walks: Dataset, tmp_path: Path) -> None:
    run(walks, tmp_path)
    row = read_log(tmp_path)[-1]
    assert {"step", "time", "loss", "root", "forward", "motion", "skate", "gradient", "rate", "steps/s", "clips/s"} <= set(row)
    about = json.loads((tmp_path / "run.json").read_text())
    assert about["kind"] == "generator"
    assert about["settings"]["loop"]["batch"] == 8
    assert list((tmp_path / "tensorboard").iterdir())


def test_previews_are_drawn(walks: Dataset, tmp_path: Path) -> None:
    run(walks, tmp_path, with_loop(steps=2, preview_every=2))
    from PIL import Image

    with Image.open(tmp_path / "previews" / "step_00000002.png") as picture:
        assert picture.width > 500
