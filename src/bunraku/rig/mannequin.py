"""A body for any skeleton: simple solids along the bones, skinned, in colours that tell left from right and front from back.

It is what a motion without a character wears in a file or a picture. The left side is warm, the right side cool, the trunk light;
a dark visor and a chest lamp look where the character looks. Humanoids get a modelled trunk, head, hands and feet; any other
tree of joints gets tapered capsules.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from bunraku.geometry.mesh import Material
from bunraku.geometry.primitives import capsule, ellipsoid, merge
from bunraku.kinematics.skeleton import SIDES, Skeleton
from bunraku.rig.body_parts import Part, foot, hand, head, trunk
from bunraku.rig.character import Character
from bunraku.rig.proportions import COLLAR, LIMBS, Body, measure
from bunraku.rig.rig import rig_for

TONES = {  # linear RGB
    "trunk": (0.80, 0.76, 0.68),
    "hips": (0.26, 0.27, 0.31),
    "left": (0.78, 0.22, 0.09),
    "right": (0.06, 0.27, 0.55),
    "mark": (0.020, 0.024, 0.035),
}


def mannequin(skeleton: Skeleton) -> Character:
    """A skinned body for the skeleton, standing in its rest pose."""
    body = measure(skeleton)
    parts = (_humanoid(body) if body.is_humanoid else [part for joint in body.bones for part in _bone(body, joint)]) or [_ball(body)]
    materials = {name: Material(name=name, base_color=(*tone, 1.0)) for name, tone in TONES.items()}
    mesh = merge([replace(part.mesh, materials=(materials[part.tone],)) for part in parts])
    weights = torch.cat([part.weights(len(skeleton)) for part in parts])
    return Character(name=f"mannequin of {skeleton.name}", mesh=mesh, rig=rig_for(skeleton, weights))


def _humanoid(body: Body) -> list[Part]:
    skeleton, tall = body.skeleton, body.stature
    parts = [*trunk(body), *head(body)]
    drawn = {*skeleton.ancestors(body.upper_chest), *skeleton.path(body.upper_chest, skeleton.roles.get("head", body.upper_chest))}
    drawn |= body.below(skeleton.roles["head"]) if skeleton.has("head") else set()
    room = max(float((body.at("left_hip") - body.at("right_hip")).norm()) / 2, 0.04 * tall)
    for side in SIDES:
        for start, end, thick, thin in LIMBS:
            parts += _limb(body, (f"{side}_{start}", f"{side}_{end}"), (min(thick * tall, room), thin * tall), side)
        shoulder = skeleton.path(body.upper_chest, skeleton.role(f"{side}_shoulder"))
        parts += _run(body, shoulder[1:], (0.9 * COLLAR * tall, 0.8 * COLLAR * tall), "trunk")
        parts += [*hand(body, side), *foot(body, side)]
        for part in ("hand", "foot"):
            drawn |= set(skeleton.ancestors(skeleton.role(f"{side}_{part}"))) | body.below(skeleton.role(f"{side}_{part}"))
    return parts + [part for joint in body.bones if joint not in drawn for part in _bone(body, joint, 0.012 * tall)]


def _limb(body: Body, roles: tuple[str, str], radii: tuple[float, float], tone: str) -> list[Part]:
    """From one role to the other, whether or not the file let the second hang below the first (detached feet)."""
    first, last = (body.skeleton.role(role) for role in roles)
    return _run(body, body.skeleton.path(first, last) or [first, last], radii, tone)


def _run(body: Body, chain: list[int], radii: tuple[float, float], tone: str) -> list[Part]:
    """Capsules along a chain of joints, tapering by length from the first radius to the second [m]."""
    if len(chain) < 2:
        return []
    p = body.p_world_joint[chain]
    done = torch.cat([torch.zeros(1), (p[1:] - p[:-1]).norm(dim=-1).cumsum(0)])
    r = (radii[0] + (radii[1] - radii[0]) * done / done[-1].clamp_min(1e-9)).tolist()
    before = max(body.skeleton.parents[chain[0]], 0)
    parts = []
    for i, joint in enumerate(chain[:-1]):
        parts.append(_capsule_part((before, joint, chain[i + 1]), (p[i], p[i + 1]), (r[i], r[i + 1]), tone))
        before = joint
    return [part for part in parts if part is not None]


def _capsule_part(chain: tuple[int, ...], ends: tuple[Tensor, Tensor], radii: tuple[float, float], tone: str, *, fine: bool = True) -> Part | None:
    """A bone's solid for `chain` = (joint before, joint at the start[, joint at the end]); None for a bone without length."""
    length = float((ends[1] - ends[0]).norm())
    if length <= 1e-3 * max(radii):
        return None
    knots = torch.stack([ends[0], *ends][: len(chain)])
    axis = (ends[1] - ends[0]) / length
    if fine:
        solid = capsule(*ends, *radii, segments=16, rings=4, spans=6 if length > 2 * max(radii) else 2)
    else:
        solid = capsule(*ends, *radii, segments=10, rings=3, spans=4)
    return Part(mesh=solid, tone=tone, chain=chain, knots=knots, axis=axis, blend=min(0.8 * max(radii), 0.4 * length))


def _bone(body: Body, joint: int, thickest: float = float("inf")) -> list[Part]:
    """The bone that ends in a joint, and the tip beyond it if it is a leaf."""
    parent, radius = body.skeleton.parents[joint], min(body.pipe_radius[joint], thickest)
    after = [min(body.pipe_radius[child], thickest) for child in body.skeleton.children[joint]]
    end = max(after, default=0.6 * radius)
    before, p = max(body.skeleton.parents[parent], 0), body.p_world_joint
    parts = [_capsule_part((before, parent, joint), (p[parent], p[joint]), (radius, min(end, radius)), body.sides[joint], fine=False)]
    if joint in body.skeleton.tips:
        parts.append(_capsule_part((parent, joint), (p[joint], body.tip(joint)), (end, 0.8 * end), body.sides[joint], fine=False))
    return [part for part in parts if part is not None]


def _ball(body: Body) -> Part:
    """What a skeleton without a single drawable bone looks like."""
    size = torch.full((3,), 0.05 * body.reach)
    return Part(mesh=ellipsoid(body.p_world_joint[body.centre], size), tone="trunk", chain=(body.centre,))
