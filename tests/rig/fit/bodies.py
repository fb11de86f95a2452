"""Bodies made of capsules whose joints are known, for tests of what finds joints in bodies."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.geometry.mesh import Mesh
from bunraku.geometry.primitives import capsule, ellipsoid, merge
from bunraku.kinematics.forward import forward_kinematics, rest_poses
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import rest_motion
from bunraku.math.rotations import exp_quat, matrix_to_quat, quat_conjugate, quat_multiply
from bunraku.rig.mannequin import mannequin
from bunraku.rig.skinning import skin_vertices

Points = dict[str, Float[Tensor, "3"]]


def human(name: str = "cmu23", arms_down: float = 0.0) -> tuple[Mesh, Points]:
    """A mannequin, its arms turned down by so many degrees, and where the joints with roles are."""
    body = skeleton(name)
    character, motion, rest = mannequin(body), rest_motion(body), rest_poses(body)
    quats = motion.quats.clone()
    for side, sign in (("left", -1.0), ("right", 1.0)):
        joint = body.role(f"{side}_shoulder")
        above = matrix_to_quat(rest.R_world_joint[body.parents[joint]])
        turn = exp_quat(torch.tensor([0.0, 0.0, sign * math.radians(arms_down)]))
        quats[0, joint] = quat_multiply(quat_multiply(quat_multiply(quat_conjugate(above), turn), above), quats[0, joint])
    posed = replace(motion, quats=quats)[:1]
    places = forward_kinematics(posed).p_world_joint[0]
    mesh = Mesh(vertices=skin_vertices(character, posed)[0], faces=character.mesh.faces)
    return mesh, {role: places[joint] for role, joint in body.roles.items()}


def _tubes(*lines: tuple[list[tuple[float, float, float]], float]) -> Mesh:
    """Capsules along polylines, each with a radius."""
    solids = []
    for points, radius in lines:
        knots = torch.tensor(points)
        solids += [capsule(a, b, radius, radius, segments=10, rings=3) for a, b in pairwise(knots)]
    return merge(solids)


def _mirrored(points: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    return [(-x, y, z) for x, y, z in points]


def dog() -> tuple[Mesh, Points]:
    """Four legs, a neck and a tail; 1 m tall at the head, looking along +Z."""
    hind, front = [(0.13, 0.5, -0.42), (0.13, 0.25, -0.5), (0.13, 0.05, -0.45), (0.13, 0.04, -0.36)], [(0.12, 0.45, 0.4), (0.12, 0.05, 0.4), (0.12, 0.04, 0.5)]
    spine, neck, tail = [(0.0, 0.62, -0.4), (0.0, 0.62, 0.35)], [(0.0, 0.65, 0.4), (0.0, 0.92, 0.62), (0.0, 0.86, 0.82)], [(0.0, 0.64, -0.5), (0.0, 0.6, -0.95)]
    legs = [(line, 0.05) for pair in (hind, front) for line in (pair, _mirrored(pair))]
    mesh = _tubes((spine, 0.17), (neck, 0.08), (tail, 0.035), *legs)
    truth = {"left_foot": hind[2], "left_hand": front[1], "head": neck[1], "left_hip": (0.13, 0.62, -0.38), "left_shoulder": front[0]}
    return mesh, {role: torch.tensor(place) for role, place in truth.items()}


def hen() -> Mesh:
    """An egg on two legs, with folded wings, a neck, a beak and a short tail."""
    leg = [(0.1, 0.4, 0.0), (0.1, 0.03, 0.0), (0.1, 0.03, 0.14)]
    parts = _tubes((leg, 0.025), (_mirrored(leg), 0.025), ([(0.0, 0.65, 0.2), (0.0, 0.95, 0.3)], 0.07), ([(0.0, 0.95, 0.3), (0.0, 0.93, 0.45)], 0.03))
    tail = _tubes(([(0.0, 0.62, -0.25), (0.0, 0.75, -0.5)], 0.05))
    return merge([ellipsoid(torch.tensor([0.0, 0.55, 0.0]), torch.tensor([0.2, 0.22, 0.33])), parts, tail])


def spider() -> Mesh:
    """Two balls and eight bent legs."""
    legs = []
    for angle in (-50, -15, 20, 55):
        x, z = math.cos(math.radians(angle)), -math.sin(math.radians(angle))
        leg = [(0.1 * x, 0.25, 0.1 * z), (0.5 * x, 0.5, 0.5 * z), (1.0 * x, 0.02, 1.0 * z)]
        legs += [(leg, 0.03), (_mirrored(leg), 0.03)]
    balls = [ellipsoid(torch.tensor([0.0, 0.27, z]), torch.tensor([r, 0.8 * r, 1.2 * r])) for z, r in ((0.05, 0.15), (-0.35, 0.25))]
    return merge([*balls, _tubes(*legs)])


def snake() -> Mesh:
    """A long body in curves on the ground, its head raised."""
    waves = [(0.12 * math.sin(4 * t), 0.05, -1.5 + t) for t in torch.linspace(0, 2.2, 23).tolist()]
    return _tubes((waves, 0.05), ([waves[-1], (waves[-1][0], 0.25, 0.8), (waves[-1][0], 0.4, 0.95)], 0.055))


def fish() -> Mesh:
    """A spindle with a forked tail, a fin on its back and two at its sides."""
    side, fork = [(0.1, 0.5, 0.3), (0.4, 0.4, 0.1)], [(0.0, 0.5, -0.85), (0.0, 0.8, -1.05)]
    body = ellipsoid(torch.tensor([0.0, 0.5, 0.1]), torch.tensor([0.14, 0.2, 0.9]))
    low = [(0.0, 1.0 - y, z) for _, y, z in fork]
    return merge([body, _tubes((side, 0.03), (_mirrored(side), 0.03), (fork, 0.04), (low, 0.04), ([(0.0, 0.6, 0.2), (0.0, 0.95, 0.05)], 0.04))])
