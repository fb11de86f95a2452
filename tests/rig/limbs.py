"""Small bodies with bones inside, for the tests of skinning."""

from __future__ import annotations

import numpy as np
import torch

from bunraku.geometry.mesh import Mesh
from bunraku.geometry.primitives import capsule

Body = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # vertices, faces, bone heads, bone tails


def solid(start: tuple[float, float, float], end: tuple[float, float, float], radius: float = 0.2, segments: int = 10, spans: int = 8) -> Mesh:
    ends = (torch.tensor(point, dtype=torch.float64) for point in (start, end))
    return capsule(*ends, radius, radius, segments=segments, rings=3, spans=spans)


def arm(bones: int = 2, spans: int = 12) -> Body:
    """A capsule along x from 0 to 2 with bones of one length."""
    mesh = solid((0, 0, 0), (2, 0, 0), spans=spans)
    joints = np.stack([np.linspace(0, 2, bones + 1), np.zeros(bones + 1), np.zeros(bones + 1)], axis=1)
    return mesh.vertices.numpy(), mesh.faces.numpy(), joints[:-1], joints[1:]


def legs() -> Body:
    """Two capsules side by side, 2 cm apart, with a bone in each: shells of their own, as two shoes are."""
    meshes = [solid((x, 0, 0), (x, 1, 0)) for x in (-0.21, 0.21)]
    joints = np.array([[-0.21, 0.0, 0.0], [0.21, 0.0, 0.0]])
    return *together(*((mesh.vertices.numpy(), mesh.faces.numpy()) for mesh in meshes)), joints, joints + np.array([0.0, 1.0, 0.0])


def together(*parts: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.cumsum([0, *(len(vertices) for vertices, _ in parts)])
    return np.concatenate([v for v, _ in parts]), np.concatenate([f + at for (_, f), at in zip(parts, starts, strict=False)])


def soup(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every face with three vertices of its own."""
    return vertices[faces].reshape(-1, 3), np.arange(3 * len(faces)).reshape(-1, 3)
