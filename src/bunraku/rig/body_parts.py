"""The modelled parts of a humanoid mannequin: trunk, head, hands and feet. Lengths are fractions of the stature unless marked [m]."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize

from bunraku.geometry.mesh import Mesh
from bunraku.geometry.primitives import box, capsule, ellipsoid, loft, vertex_normals
from bunraku.math.curves import smooth_step
from bunraku.rig.proportions import Body

# The trunk from crotch (0) to the base of the neck (1): where, and how much of the width of the pelvis, the waist and the chest.
_TRUNK = (
    (0.00, 0.00, 0.00, 0.00), (0.02, 0.46, 0.00, 0.00), (0.07, 0.76, 0.00, 0.00), (0.14, 0.93, 0.00, 0.00), (0.22, 1.00, 0.00, 0.00), (0.30, 0.96, 0.05, 0.00),
    (0.38, 0.58, 0.42, 0.00), (0.46, 0.12, 0.88, 0.00), (0.53, 0.00, 0.88, 0.12), (0.61, 0.00, 0.40, 0.61), (0.69, 0.00, 0.10, 0.90), (0.77, 0.00, 0.00, 1.00),
    (0.84, 0.00, 0.00, 0.98), (0.90, 0.00, 0.00, 0.86), (0.94, 0.00, 0.00, 0.68), (0.97, 0.00, 0.00, 0.49), (0.99, 0.00, 0.00, 0.28), (1.00, 0.00, 0.00, 0.00),
)  # fmt: skip
_HIP_LINE = 0.30  # below it the trunk wears the tone of the hips
MOST_INFLUENCES = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """A solid that follows a chain of joints: along `axis`, joint `chain[i]` takes over from the one before it at `knots[i]`."""

    mesh: Mesh
    tone: str
    chain: tuple[int, ...]
    knots: Float[Tensor, "N 3"] | None = None  # [m]; None if only the first joint counts
    axis: Float[Tensor, "3"] | None = None
    blend: float = 0.0  # half the length over which one joint hands over to the next [m]

    def weights(self, joints: int) -> Float[Tensor, "V J"]:
        """At most four joints per row, in steps of 2⁻¹⁶ so that float32 rows sum to exactly 1."""
        weights = torch.zeros(len(self.mesh.vertices), joints)
        if self.knots is None or self.axis is None:
            weights[:, self.chain[0]] = 1
            return weights
        along, takes_over = self.mesh.vertices @ self.axis, (self.knots @ self.axis).tolist()
        held = torch.ones_like(along)
        for before, start in zip(self.chain, takes_over[1:], strict=False):
            share = torch.minimum(held, smooth_step((along - start) / (2 * self.blend) + 0.5))
            weights[:, before] += held - share
            held = share
        weights[:, self.chain[-1]] += held
        most, joint = weights.topk(min(MOST_INFLUENCES, joints), dim=1)
        most = (most / most.sum(1, keepdim=True) * 65536).round() / 65536
        most[:, 0] = 1 - most[:, 1:].sum(1)
        return torch.zeros_like(weights).scatter_(1, joint, most)


def trunk(body: Body) -> list[Part]:
    """One smooth body from the crotch to the neck, in two tones, with a lamp on the chest."""
    tall = body.stature
    hips = body.middle("left_hip", "right_hip")
    top = body.middle("left_shoulder", "right_shoulder")
    side, up, front = body.trunk_frame
    start, end = hips - 0.065 * tall * up, top + 0.028 * tall * up
    half_hips, half_shoulders = (float((body.at(f"left_{part}") - body.at(f"right_{part}")).norm()) / 2 for part in ("hip", "shoulder"))
    widths = torch.tensor([max(half_hips + 0.035 * tall, 0.085 * tall), 0.076 * tall, min(max(0.86 * half_shoulders, 0.075 * tall), 0.13 * tall)])
    depths = torch.tensor([0.066, 0.055, 0.070]) * tall
    profile = torch.tensor(_TRUNK)
    centres = start + profile[:, :1] * (end - start)
    whole = loft(centres, profile[:, 1:] @ widths, profile[:, 1:] @ depths, side)
    chain = body.skeleton.path(body.skeleton.role("hips"), body.upper_chest) or [body.upper_chest]
    height = ((whole.vertices[whole.faces].mean(1) - start) @ up) / float((end - start).norm())
    follow = {"chain": tuple(chain), "knots": body.p_world_joint[chain], "axis": up, "blend": 0.04 * tall}
    parts = [Part(mesh=_only(whole, below), tone=tone, **follow) for below, tone in ((height < _HIP_LINE, "hips"), (height >= _HIP_LINE, "trunk"))]
    chest = start + 0.78 * (end - start) + front * (float(depths[2]) - 0.003 * tall)
    lamp = ellipsoid(chest, torch.tensor([0.030, 0.030, 0.010]) * tall, torch.stack([side, up, front], dim=-1))
    return [*parts, Part(mesh=lamp, tone="mark", chain=(body.upper_chest,))]


def head(body: Body) -> list[Part]:
    """Neck, head and a dark visor. A skeleton without a head joint (a robot's) gets one that sits on the chest."""
    tall, skeleton = body.stature, body.skeleton
    side, up, front = body.trunk_frame
    shoulders = body.middle("left_shoulder", "right_shoulder")
    joint = skeleton.roles.get("head", body.upper_chest)
    base = body.at("head") if skeleton.has("head") else shoulders + 0.09 * tall * up
    crown = max([float((body.tip(joint) - base) @ up), *(float((body.p_world_joint[child] - base) @ up) for child in skeleton.children[joint])])
    lift = min(max(0.5 * crown, 0.032 * tall), 0.065 * tall) if skeleton.has("head") else 0.04 * tall
    centre = base + lift * up + 0.014 * tall * front
    skull = ellipsoid(centre, torch.tensor([0.049, 0.068, 0.058]) * tall, torch.stack([side, up, front], dim=-1), segments=24, rings=15)
    visor = ellipsoid(centre + tall * (0.004 * up + 0.039 * front), torch.tensor([0.039, 0.018, 0.025]) * tall, torch.stack([side, up, front], dim=-1))
    parts = [Part(mesh=skull, tone="trunk", chain=(joint,)), Part(mesh=visor, tone="mark", chain=(joint,))]
    neck = capsule(shoulders, centre - 0.03 * tall * up, 0.035 * tall, 0.029 * tall)
    chain = skeleton.path(body.upper_chest, joint) or [joint]
    return [Part(mesh=neck, tone="hips", chain=tuple(chain), knots=body.p_world_joint[chain], axis=up, blend=0.02 * tall), *parts]


def hand(body: Body, side: str) -> list[Part]:
    """A palm, and fingers where the skeleton has their joints; without them the palm is a mitten."""
    tall, skeleton, joint = body.stature, body.skeleton, body.skeleton.role(f"{side}_hand")
    wrist, inside = body.p_world_joint[joint], body.below(joint) - {joint}
    points = torch.stack([body.tip(joint), *(body.p_world_joint[j] for j in sorted(inside))])
    far = points[(points - wrist).norm(dim=-1).argmax()]
    along = normalize(far - wrist if float((far - wrist).norm()) > 0.01 * tall else wrist - body.at(f"{side}_elbow"), dim=0)
    length = min(max(float((far - wrist).norm()), 0.095 * tall), 0.12 * tall)
    fingers = any(skeleton.parents[j] != joint for j in inside)
    across_hint = body.trunk_frame[2] if abs(float(along @ body.trunk_frame[2])) < 0.8 else body.trunk_frame[1]
    across = normalize(across_hint - (across_hint @ along) * along, dim=0)
    R = torch.stack([across, along, torch.linalg.cross(across, along)], dim=-1)
    size = torch.tensor([0.048 * tall, 0.52 * length if fingers else length, 0.022 * tall])
    palm = box(wrist + along * size[1] / 2, size, R, rounding=0.010 * tall)
    parts = [Part(mesh=palm, tone=side, chain=(joint,))]
    for child in sorted(inside):
        start, end, parent = body.p_world_joint[skeleton.parents[child]], body.p_world_joint[child], skeleton.parents[child]
        drawn_as_palm = not fingers and bool((end == far).all())
        if not drawn_as_palm and float((end - start).norm()) > 0.004 * tall:
            thick = 0.0060 * tall if fingers else 0.0085 * tall
            mesh = capsule(start, end, thick, 0.85 * thick, segments=6, rings=2)
            along = normalize(end - start, dim=0)
            parts.append(Part(mesh=mesh, tone=side, chain=(skeleton.parents[parent], parent), knots=torch.stack([start, start]), axis=along, blend=thick))
    return parts


def foot(body: Body, side: str) -> list[Part]:
    """A shoe whose sole lies on the ground, bending where the toe joint is."""
    tall, skeleton, joint = body.stature, body.skeleton, body.skeleton.role(f"{side}_foot")
    ankle = body.p_world_joint[joint]
    toe = skeleton.roles.get(f"{side}_toe", joint)
    flat = (body.p_world_joint[toe] - ankle) * torch.tensor([1.0, 0.0, 1.0])
    ahead = normalize(flat, dim=0) if float(flat.norm()) > 0.02 * tall else torch.tensor([0.0, 0.0, 1.0])
    ball = max(float(flat.norm()), 0.05 * tall)
    ends = torch.stack([body.tip(toe), *(body.p_world_joint[j] for j in sorted(body.below(toe)))])
    front = max(ball + 0.035 * tall, min(float(((ends - ankle) @ ahead).max()), 0.14 * tall))
    lowest = min(float(ankle[1]), float(body.p_world_joint[toe][1]))
    sole = body.ground if lowest - body.ground < 0.1 * tall else lowest - 0.01 * tall
    high = max(float(ankle[1]) - sole, 0.03 * tall) + 0.008 * tall
    heel = 0.036 * tall
    up = torch.tensor([0.0, 1.0, 0.0])
    R = torch.stack([torch.linalg.cross(up, ahead), up, ahead], dim=-1)
    centre = torch.stack([ankle[0], torch.tensor(sole + high / 2), ankle[2]]) + ahead * (front - heel) / 2
    block = box(centre, torch.tensor([0.054 * tall, high, front + heel]), R, rounding=0.016 * tall, grid=8)
    # from the instep forwards the shoe gets lower
    along = ((block.vertices - ankle) @ ahead) / front
    low = 1 - (1 - min(0.030 * tall / high, 1.0)) * smooth_step((along - 0.05) / 0.8)
    vertices = block.vertices.clone()
    vertices[:, 1] = sole + (vertices[:, 1] - sole) * low
    mesh = replace(block, vertices=vertices, normals=vertex_normals(vertices, block.faces))
    if toe == joint:
        return [Part(mesh=mesh, tone=side, chain=(joint,))]
    return [Part(mesh=mesh, tone=side, chain=(joint, toe), knots=torch.stack([ankle, ankle + ahead * ball]), axis=ahead, blend=0.02 * tall)]


def _only(mesh: Mesh, keep: Bool[Tensor, " T"]) -> Mesh:
    """The faces marked True, with the vertices they use and the normals of the whole."""
    used, faces = mesh.faces[keep].unique(return_inverse=True)
    return Mesh(vertices=mesh.vertices[used], faces=faces.reshape(-1, 3), normals=None if mesh.normals is None else mesh.normals[used])
