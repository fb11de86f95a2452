"""Reads one sequence of the packed CMU motion capture, for tests that run on real data when it is there."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import torch

from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.math.rotations import euler_to_quat


@cache
def _packed(shared: Path) -> tuple[dict, dict]:
    folder = shared / "data" / "cmu_mocap"
    with np.load(folder / "motions_30fps.npz") as packed:
        return {name: packed[name] for name in packed.files}, json.loads((folder / "skeletons.json").read_text())


def load_cmu(shared: Path, sequence: str) -> Motion:
    """A sequence such as '35_01', on its subject's own skeleton."""
    packed, bodies = _packed(shared)
    i = list(packed["ids"]).index(sequence)
    frames = slice(packed["offsets"][i], packed["offsets"][i + 1])
    delta = ((packed["rot_hi"].astype(np.uint16) << 8) | packed["rot_lo"]).view(np.int16)
    degrees = ((np.cumsum(delta, axis=1, dtype=np.int64) + 9000) % 18000 - 9000).T.reshape(-1, 23, 3)[frames] * 0.02
    root = np.cumsum(packed["root_delta"], axis=1, dtype=np.int64).T[frames] * 1e-4
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
