"""Reads one sequence of the packed CMU motion capture, for tests that run on real data when it is there."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.math.rotations import euler_to_quat


@cache
def _packed(shared: Path) -> tuple[dict[str, tuple[int, int]], np.ndarray, np.ndarray, dict]:
    """Frame ranges by name, steps of the angles and of the root from frame to frame, skeletons."""
    folder = shared / "data" / "cmu_mocap"
    with np.load(folder / "motions_30fps.npz") as packed:
        turn_steps = ((packed["rot_hi"].astype(np.uint16) << 8) | packed["rot_lo"]).view(np.int16)
        ranges = dict(zip(packed["ids"].tolist(), pairwise(packed["offsets"].tolist()), strict=False))
        return ranges, turn_steps, packed["root_delta"], json.loads((folder / "skeletons.json").read_text())


def _summed(steps: np.ndarray, first: int, last: int) -> np.ndarray:
    """Frames first to last of values stored as steps from the very first frame on."""
    return (steps[:, :first].sum(axis=1, keepdims=True, dtype=np.int64) + np.cumsum(steps[:, first:last], axis=1, dtype=np.int64)).T


def load_cmu(shared: Path, sequence: str) -> Motion:
    """A sequence such as '35_01', on its subject's own skeleton."""
    ranges, turn_steps, root_steps, bodies = _packed(shared)
    degrees = ((_summed(turn_steps, *ranges[sequence]) + 9000) % 18000 - 9000).reshape(-1, 23, 3) * 0.02
    root = _summed(root_steps, *ranges[sequence]) * 1e-4
    body = skeleton("cmu23")
    subject = bodies["subjects"][sequence.split("_")[0]]
    body = replace(
        body,
        name=f"cmu subject {sequence.split('_')[0]}",
        offsets=torch.tensor(subject["offsets"], dtype=torch.float32),
        tips={body.index[joint]: tuple(tip) for joint, tip in subject["end_sites"].items() if joint in body.index},
    )
    return Motion(
        skeleton=body,
        fps=30.0,
        root_position=torch.tensor(root, dtype=torch.float32),
        quats=euler_to_quat("zyx", torch.tensor(np.radians(degrees), dtype=torch.float32)),
    )
