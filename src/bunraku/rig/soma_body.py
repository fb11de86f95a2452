"""A human body for SOMA motions: one rest mesh with skin weights, made once by `tools/bake_soma_body.py` (see `data/README.md`)."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import as_file, files

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.geometry.mesh import Material, Mesh
from bunraku.geometry.primitives import vertex_normals
from bunraku.kinematics.library import skeleton
from bunraku.rig.character import Character
from bunraku.rig.rig import rig_for

_STEP = 1e-4  # [m] places are whole numbers of this
_CLAY = (0.62, 0.47, 0.38, 1.0)  # linear RGBA


@lru_cache(maxsize=1)
def soma_body() -> Character:
    """An adult on the joints of soma77, in its T-pose."""
    body = skeleton("soma77")
    with as_file(files("bunraku.rig") / "data" / "soma_body.npz") as path, np.load(path, allow_pickle=False) as stored:
        vertices = torch.from_numpy(stored["low"] + _STEP * stored["steps"].astype(np.int64).cumsum(0)).float()
        faces = torch.from_numpy(stored["faces"].astype(np.int64).cumsum()).reshape(-1, 3)
        weights = _rows(torch.from_numpy(stored["joints"]), torch.from_numpy(stored["weights"]), len(body))
    mesh = Mesh(vertices=vertices, faces=faces, normals=vertex_normals(vertices, faces), materials=(Material(name="body", base_color=_CLAY),))
    return Character(name="SOMA body", mesh=mesh, rig=rig_for(body, weights))


def _rows(joints: Tensor, weights: Tensor, count: int) -> Float[Tensor, "V J"]:
    """Weights in 1/255 of up to four joints per vertex, as full rows that sum to 1."""
    return torch.zeros(len(joints), count).scatter_add_(1, joints.long(), weights.float() / 255)
