"""A small body for tests of splats: two bones in a capsule, its lower half red and its upper half blue."""

from __future__ import annotations

from dataclasses import replace

import torch

from bunraku.geometry.mesh import Material, Mesh
from bunraku.geometry.primitives import capsule
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import exp_quat, quat_multiply
from bunraku.rig.character import Character
from bunraku.rig.rig import rig_for

RED, BLUE = (0.8, 0.05, 0.05), (0.05, 0.1, 0.8)  # linear


def puppet(dtype: torch.dtype = torch.float32) -> Character:
    """1.4 m high, standing on the origin, the elbow in its middle."""
    body = capsule(torch.tensor([0.0, 0.2, 0.0]), torch.tensor([0.0, 1.2, 0.0]), 0.2, 0.15, segments=12, rings=3, spans=6)
    mesh = Mesh(
        vertices=body.vertices.to(dtype),
        faces=body.faces,
        face_materials=(body.vertices[body.faces].mean(1)[:, 1] > 0.7).long(),
        materials=(Material(name="red", base_color=(*RED, 1.0)), Material(name="blue", base_color=(*BLUE, 1.0))),
    )
    skeleton = Skeleton(name="puppet", joints=("root", "elbow"), parents=(-1, 0), offsets=torch.tensor([[0.0, 0.1, 0.0], [0.0, 0.6, 0.0]], dtype=dtype))
    upper = ((mesh.vertices[:, 1] - 0.5) / 0.4).clamp(0, 1)
    return Character(name="puppet", mesh=mesh, rig=rig_for(skeleton, torch.stack([1 - upper, upper], dim=1)))


def bent(character: Character, frames: int = 3, turn: float = 1.0) -> Motion:
    """Every joint turned and the root moved, otherwise in each frame."""
    rest = rest_motion(character.skeleton, frames)
    generator = torch.Generator().manual_seed(5)
    rotvec = turn * torch.randn(frames, len(character.skeleton), 3, generator=generator).to(rest.quats)
    shift = turn * 0.3 * torch.randn(frames, 3, generator=generator).to(rest.root_position)
    return replace(rest, quats=quat_multiply(rest.quats, exp_quat(rotvec)), root_position=rest.root_position + shift)
