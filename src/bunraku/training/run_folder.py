"""A training run on disk: what it is, how it goes, and where it can be taken up again.

    run.json                  what is trained, and all settings
    log.jsonl                 one line every so many steps
    tensorboard/              the same for TensorBoard, where it is installed
    checkpoints/step_00012000/state.pt    all that is needed to go on, bit for bit; the two newest are kept
    model/                    the model as of the newest checkpoint, ready for `bunraku generate --model RUN/model`
    previews/                 what it draws, as pictures
    diverged/                 what was in work when numbers ran away, if they did

A checkpoint is written under another name and renamed when it is whole: a run may be killed at any moment.
"""

from __future__ import annotations

import json
import shutil
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from bunraku.errors import BadValue, FileProblem, FormatProblem
from bunraku.files.disk import read_text, write_atomically, write_text
from bunraku.training.settings import differences
from bunraku.version import VERSION

KEPT = 2  # checkpoints
_FREE = ("loop.log_every", "loop.checkpoint_every", "loop.preview_every", "loop.compiled")  # may change when a run goes on


class RunFolder:
    """One run. Only the first rank writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer: Any = None

    @staticmethod
    def start(folder: Path, about: Mapping[str, Any], *, resume: bool) -> RunFolder:
        """A new run, or one that goes on: then with the same settings."""
        path = folder / "run.json"
        if path.is_file():
            if not resume:
                raise BadValue(f"'{folder}' holds a run already. Go on with it with --resume, or name another folder.")
            changed = differences(_comparable(about), _comparable(_json(path)))
            if changed:
                raise BadValue(f"'{folder}' was started with other settings ({'; '.join(changed)}). Resume it with those, or start a new run.")
        elif resume and folder.is_dir() and any(folder.iterdir()):
            raise FileProblem(f"'{folder}' holds no run to go on with (no run.json). Name the folder of a run, or leave --resume out.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileProblem(f"'{folder}' cannot be made: {error.strerror}.") from error
        if not path.is_file():
            write_text(path, json.dumps({**about, "version": VERSION, "torch": torch.__version__}, indent=1) + "\n")
        return RunFolder(folder)

    # --- how it goes ---

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        row = {"step": step, "time": round(time.time(), 1), **{name: float(f"{value:.6g}") for name, value in numbers.items()}}
        try:
            with (self.folder / "log.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
        except OSError as error:
            raise FileProblem(f"'{self.folder / 'log.jsonl'}' cannot be written: {error.strerror}.") from error
        if self._writer is None:
            self._writer = _tensorboard(self.folder / "tensorboard", step)
        if self._writer:
            for name, value in numbers.items():
                self._writer.add_scalar(name, value, step)

    def forget_after(self, step: int) -> None:
        """Drops log lines of steps that a killed run had taken beyond its last checkpoint: they are taken again."""
        path = self.folder / "log.jsonl"
        if path.is_file():
            rows = [line for line in path.read_text().splitlines() if _step_of(line) <= step]
            write_text(path, "".join(f"{row}\n" for row in rows))

    def close(self) -> None:
        if self._writer:
            self._writer.close()

    # --- checkpoints ---

    def save(self, step: int, state: Mapping[str, Any]) -> None:
        folder = self.folder / "checkpoints"
        target, beside = folder / f"step_{step:08d}", folder / f".step_{step:08d}"
        try:
            shutil.rmtree(beside, ignore_errors=True)
            beside.mkdir(parents=True)
            torch.save(dict(state), beside / "state.pt")
            shutil.rmtree(target, ignore_errors=True)
            beside.rename(target)
        except OSError as error:
            shutil.rmtree(beside, ignore_errors=True)
            raise FileProblem(f"'{target}' cannot be written: {error.strerror or error}. The checkpoint before it is whole.") from error
        except RuntimeError as error:  # torch's own writer, at a full disk
            shutil.rmtree(beside, ignore_errors=True)
            raise FileProblem(f"'{target}' cannot be written: {str(error).splitlines()[0]}. The checkpoint before it is whole.") from error
        for old in self.checkpoints()[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)

    def checkpoints(self) -> list[Path]:
        """Whole ones, oldest first."""
        folder = self.folder / "checkpoints"
        return sorted(path for path in folder.glob("step_*") if (path / "state.pt").is_file()) if folder.is_dir() else []

    def newest(self) -> dict[str, Any] | None:
        """What the newest checkpoint holds, on the CPU; None before the first."""
        found = self.checkpoints()
        if not found:
            return None
        path = found[-1] / "state.pt"
        try:
            return torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:  # torch raises half a dozen types
            raise FormatProblem(f"'{path}' is damaged ({type(error).__name__}). Delete that folder to go on from the one before.") from error

    def dump(self, step: int, what: Mapping[str, Any]) -> Path:
        """Keeps what was in work when something went wrong."""
        folder = self.folder / "diverged"
        folder.mkdir(exist_ok=True)
        path = folder / f"step_{step:08d}.pt"
        write_atomically(path, lambda temporary: torch.save(dict(what), temporary))
        return path


def read_log(folder: Path) -> list[dict[str, float]]:
    """The lines of a run's log."""
    return [json.loads(line) for line in read_text(folder / "log.jsonl").splitlines()]


def _comparable(about: Mapping[str, Any]) -> dict[str, Any]:
    """All that must stay the same in a run, by dotted name."""
    return {name: value for name, value in _flat(about).items() if name.split("settings.", 1)[-1] not in _FREE and name not in ("version", "torch")}


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    named: dict[str, Any] = {}
    for name, value in values.items():
        named |= _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else {f"{before}{name}": value}
    return named


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_text(path))
    except ValueError as error:
        raise FormatProblem(f"'{path}' is no JSON ({error}).") from error
    if not isinstance(value, dict):
        raise FormatProblem(f"'{path}' does not describe a run.")
    return value


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):  # cut short when the run was killed
        return float("inf")


def _tensorboard(folder: Path, step: int) -> Any:
    """A writer that hides what an earlier process wrote from this step on; False where TensorBoard is missing."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        warnings.warn("TensorBoard is not installed: the run is logged to log.jsonl alone. pip install 'bunraku[train]' brings it.", stacklevel=3)
        return False
    return SummaryWriter(str(folder), purge_step=step)
