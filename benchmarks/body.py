"""How fast the body room is, against the obvious alternatives, on this machine's CPU: `python benchmarks/body.py`.

Prints a table and writes it to docs/benchmarks.md as the section "Body". One thread each; wall time, best of a few runs, ours and
theirs in turn so that a busy machine slows both. Before anything is timed, both sides are checked to give the same answer.
To add a comparison, write a function that returns a Row and name it in `main`.
"""

from __future__ import annotations

import os
import platform
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bvhio
import numpy as np
import torch
from torch import Tensor

from bunraku.files.bvh import load_bvh, save_bvh
from bunraku.kinematics.forward import WorldPoses, pose_joints
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import exp_quat, quat_to_matrix

REPORT = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
MINUTES = 10


@dataclass(frozen=True, kw_only=True)
class Row:
    task: str
    alternative: str
    seconds: float
    seconds_alternative: float

    def cells(self) -> tuple[str, str, str, str, str]:
        return self.task, _duration(self.seconds), self.alternative, _duration(self.seconds_alternative), f"{self.seconds_alternative / self.seconds:.1f} ×"


def main() -> None:
    torch.set_num_threads(1)
    rows = [forward_kinematics_row(frames, gradient=gradient) for frames in (300, 3000) for gradient in (False, True)]
    rows.append(bvh_row())
    report = markdown(rows)
    print(report)
    write_section(REPORT, "Body", report)


def forward_kinematics_row(frames: int, *, gradient: bool) -> Row:
    body = skeleton("soma77")
    motion = swaying(body, frames)
    R = quat_to_matrix(motion.quats)

    def timed(pose: Callable[[Skeleton, Tensor, Tensor], WorldPoses]) -> Callable[[], WorldPoses]:
        def run() -> WorldPoses:
            poses = pose(body, motion.root_position, R.clone().requires_grad_(gradient))
            if gradient:
                (poses.p_world_joint.sum() + poses.R_world_joint.sum()).backward()
            return poses

        return run

    ours, theirs = best_of(20, timed(pose_joints), timed(joint_by_joint))
    assert (ours.result.p_world_joint - theirs.result.p_world_joint).abs().max() < 1e-5
    return Row(
        task=f"Forward kinematics{' and its gradient' if gradient else ''}, 77 joints, {frames} frames",
        alternative="torch, one joint after the other",
        seconds=ours.seconds,
        seconds_alternative=theirs.seconds,
    )


def joint_by_joint(body: Skeleton, p_world_root: Tensor, R_parent_joint: Tensor) -> WorldPoses:
    """What one would write first."""
    p, R = [p_world_root], [R_parent_joint[:, 0]]
    for joint, parent in enumerate(body.parents[1:], start=1):
        R.append(R[parent] @ R_parent_joint[:, joint])
        p.append(p[parent] + R[parent] @ body.offsets[joint])
    return WorldPoses(p_world_joint=torch.stack(p, dim=1), R_world_joint=torch.stack(R, dim=1))


def bvh_row() -> Row:
    """Reading the joint turns of a long take. bvhio's `readAsBvh` is its quickest way there (its `readAsHierarchy` takes longer)."""
    motion = swaying(skeleton("soma77"), MINUTES * 60 * 30)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "long.bvh"))
        save_bvh(motion, path, tpose=True)
        ours, theirs = best_of(5, lambda: load_bvh(path), lambda: bvhio.readAsBvh(path), runs_alternative=1)
    hand = next(joint for joint, _, _ in theirs.result.Root.layout() if joint.Name == "LeftHand")
    turn = np.array([hand.Keyframes[100].Rotation[i] for i in range(4)])  # w x y z
    assert abs(abs(turn @ ours.result.quats[100, motion.skeleton.index["LeftHand"]].double().numpy()) - 1) < 1e-5
    return Row(
        task=f"Reading a BVH of {MINUTES} minutes, 77 joints, 30 fps",
        alternative="bvhio `readAsBvh`",
        seconds=ours.seconds,
        seconds_alternative=theirs.seconds,
    )


def swaying(body: Skeleton, frames: int) -> Motion:
    """Every joint swings at its own rate: no zeros and no repetitions that would be quick to read."""
    generator = torch.Generator().manual_seed(0)
    swing, rate, phase = (torch.randn(len(body), 3, generator=generator) for _ in range(3))
    t = torch.arange(frames)[:, None, None] / 30
    quats = exp_quat(0.5 * swing * torch.sin(3 * rate * t + phase))
    return Motion(skeleton=body, fps=30, root_position=torch.rand(frames, 3, generator=generator), quats=quats)


@dataclass(frozen=True)
class Timed:
    seconds: float
    result: Any


def best_of(runs: int, ours: Callable[[], Any], theirs: Callable[[], Any], *, runs_alternative: int | None = None) -> tuple[Timed, Timed]:
    """Both by turns; the quickest run of each."""
    timed: tuple[list[Timed], list[Timed]] = ([], [])
    for run in range(runs):
        for function, times, wanted in ((ours, timed[0], runs), (theirs, timed[1], runs_alternative or runs)):
            if run < wanted:
                start = time.perf_counter()
                result = function()
                times.append(Timed(time.perf_counter() - start, result))
    return min(timed[0], key=lambda t: t.seconds), min(timed[1], key=lambda t: t.seconds)


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e3:.2f} ms"


def markdown(rows: list[Row]) -> str:
    header = ("task", "ours", "alternative", "theirs", "faster by")
    lines = ["| " + " | ".join(cells) + " |" for cells in (header, ("---",) * 5, *(row.cells() for row in rows))]
    machine = f"{platform.machine()}, {os.cpu_count()} cores (one used), Python {platform.python_version()}, torch {torch.__version__}, numpy {np.__version__}"
    return f"`python benchmarks/body.py` on {machine}. Wall time, best of several runs.\n\n" + "\n".join(lines) + "\n"


def write_section(path: Path, title: str, text: str) -> None:
    """Replaces the section `## title` of a Markdown file, or adds it; the other sections stay."""
    page = path.read_text() if path.exists() else "# Benchmarks\n"
    section = f"## {title}\n\n{text}"
    old = re.compile(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    page = old.sub(lambda _: f"{section}\n", page) if old.search(page) else f"{page.rstrip()}\n\n{section}"
    path.parent.mkdir(exist_ok=True)
    path.write_text(page.rstrip() + "\n")


if __name__ == "__main__":
    main()
