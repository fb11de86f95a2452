"""A body made of capsules along the bones between roles: slim cores, so that skin may touch skin but bone may not cross bone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.evaluate.clip import UP, Clip
from bunraku.kinematics.contacts import rest_ground
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.skeleton import SIDES

# Radii and the lengths of what lies beyond the last joint, as fractions of the height of the hips at rest (about 1 m in a person).
RADII = {"belly": 0.08, "chest": 0.08, "head": 0.08, "upper_arm": 0.03, "forearm": 0.025, "hand": 0.02, "thigh": 0.04, "shin": 0.03, "foot": 0.025}
HEAD_LENGTH = 0.10
HAND_LENGTH = 0.10
NEIGHBOURS = 2  # parts so many joints apart or fewer may overlap: flesh gives way where limbs fold


@dataclass(frozen=True, kw_only=True, eq=False)
class Capsule:
    """A core of one body part: all points within `radius` of the segment from `p_a` to `p_b`."""

    name: str
    parent: str | None  # the part it hangs on
    p_a: Float[Tensor, "F 3"]
    p_b: Float[Tensor, "F 3"]
    radius: float  # [m]


def body_capsules(clip: Clip) -> list[Capsule]:
    """The parts this skeleton has roles for; none without hips."""
    if not clip.skeleton.has("hips"):
        return []
    size = float(rest_poses(clip.skeleton).p_world_joint[clip.skeleton.role("hips"), UP]) - rest_ground(clip.skeleton)
    capsules = _trunk(clip, size)
    for side in SIDES:
        for part, parent, top, end in (
            ("thigh", "belly", "hip", "knee"),
            ("shin", f"{side}_thigh", "knee", "foot"),
            ("foot", f"{side}_shin", "foot", "toe"),
            ("upper_arm", "chest", "shoulder", "elbow"),
            ("forearm", f"{side}_upper_arm", "elbow", "hand"),
        ):
            if clip.skeleton.has(f"{side}_{top}", f"{side}_{end}"):
                ends = clip.position(f"{side}_{top}"), clip.position(f"{side}_{end}")
                capsules.append(Capsule(name=f"{side}_{part}", parent=parent, p_a=ends[0], p_b=ends[1], radius=RADII[part] * size))
        if clip.skeleton.has(f"{side}_elbow", f"{side}_hand"):
            capsules.append(_beyond(clip, f"{side}_hand", f"{side}_forearm", f"{side}_elbow", f"{side}_hand", HAND_LENGTH * size, RADII["hand"] * size))
    return capsules


def _trunk(clip: Clip, size: float) -> list[Capsule]:
    has = clip.skeleton.has
    if not has("chest"):
        return []
    if has("neck"):
        top = clip.position("neck")
    elif has("left_shoulder", "right_shoulder"):
        top = 0.5 * (clip.position("left_shoulder") + clip.position("right_shoulder"))
    else:
        return []
    chest = clip.position("chest")
    parts = [
        Capsule(name="belly", parent=None, p_a=clip.position("hips"), p_b=chest, radius=RADII["belly"] * size),
        Capsule(name="chest", parent="belly", p_a=chest, p_b=top, radius=RADII["chest"] * size),
    ]
    if has("neck", "head"):
        parts.append(_beyond(clip, "head", "chest", "neck", "head", HEAD_LENGTH * size, RADII["head"] * size))
    return parts


def _beyond(clip: Clip, name: str, parent: str, before: str, role: str, length: float, radius: float) -> Capsule:
    """A part that begins at a joint and goes on in the direction of the bone before it at rest, turning with the joint."""
    joint, previous = clip.skeleton.role(role), clip.skeleton.role(before)
    rest = rest_poses(clip.skeleton)
    direction = torch.nn.functional.normalize(rest.p_world_joint[joint] - rest.p_world_joint[previous], dim=0)
    p_joint_end = (rest.R_world_joint[joint].T @ (direction * length)).to(clip.poses.p_world_joint)
    p = clip.poses.p_world_joint[:, joint]
    return Capsule(name=name, parent=parent, p_a=p, p_b=p + clip.poses.R_world_joint[:, joint] @ p_joint_end, radius=radius)


def distant_pairs(capsules: list[Capsule]) -> list[tuple[Capsule, Capsule]]:
    """The pairs of parts that should never meet."""
    parents = {c.name: c.parent for c in capsules}
    chains = {name: _chain(parents, name) for name in parents}
    return [(a, b) for a, b in combinations(capsules, 2) if _apart(chains[a.name], chains[b.name]) > NEIGHBOURS]


def _chain(parents: dict[str, str | None], name: str) -> list[str]:
    """A part and all it hangs on, one after the other."""
    chain, above = [name], parents[name]
    while above is not None:
        chain.append(above)
        above = parents.get(above)
    return chain


def _apart(chain_a: list[str], chain_b: list[str]) -> int:
    """How many steps lead from one part to another through what both hang on; many where nothing joins them."""
    return next((i + chain_b.index(part) for i, part in enumerate(chain_a) if part in chain_b), len(chain_a) + len(chain_b))


def segment_distance(
    a0: Float[Tensor, "*batch 3"], a1: Float[Tensor, "*batch 3"], b0: Float[Tensor, "*batch 3"], b1: Float[Tensor, "*batch 3"]
) -> Float[Tensor, "*batch"]:
    """The shortest distance between two segments (C. Ericson, Real-Time Collision Detection, 2005, §5.1.9)."""
    tiny = torch.finfo(a0.dtype).tiny
    u, v, r = a1 - a0, b1 - b0, a0 - b0
    uu, vv, uv = (u * u).sum(-1), (v * v).sum(-1), (u * v).sum(-1)
    ur, vr = (u * r).sum(-1), (v * r).sum(-1)
    # parallel segments leave s free: 0 will do, the clamps below find the rest
    determinant = uu * vv - uv * uv
    s = torch.where(determinant > 1e-12 * uu * vv, (uv * vr - ur * vv) / determinant.clamp_min(tiny), torch.zeros_like(uu)).clamp(0, 1)
    t = ((uv * s + vr) / vv.clamp_min(tiny)).clamp(0, 1)
    s = ((uv * t - ur) / uu.clamp_min(tiny)).clamp(0, 1)
    return (r + s[..., None] * u - t[..., None] * v).norm(dim=-1)
