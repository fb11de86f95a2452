"""What constraints say, taken apart: this thing has this value at these frames. So that different types can be compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.heading import heading_of
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import matrix_to_quat, quat_normalize
from bunraku.timeline.constraints import EFFECTORS, Constraint, EffectorTarget, FootPlan, Heading, PoseKey, RootPath

SMOOTH_ROOT = "the smoothed root"
HEADING = "the heading"
ABOUT = "about where the body is"  # what a pose says whose hands or feet alone must be met
POSE = "the pose"
CONTACTS = "the feet's contacts"

Kind = Literal["place", "turn", "angle", "contacts"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Claim:
    """`thing` is an effector's role or one of the names above; N = 1, or joints where the thing is a pose."""

    thing: str
    kind: Kind  # of the values: [m] (x, z or x, y, z), wxyz, [rad], 1 for standing
    frames: Int[Tensor, " K"]
    values: Float[Tensor, "K N D"]
    source: str  # the constraint, in words
    number: int  # of the constraint
    explicit: bool = True  # False: it follows from a pose

    def at(self, rows: Int[Tensor, " R"]) -> Claim:
        return replace(self, frames=self.frames[rows], values=self.values[rows])


def label(constraint: object, number: int) -> str:
    names = {RootPath: "root path", Heading: "heading", PoseKey: "pose", EffectorTarget: "effector", FootPlan: "foot plan"}
    what = names.get(type(constraint), type(constraint).__name__)  # type: ignore[arg-type]
    if isinstance(constraint, EffectorTarget):
        what = str(constraint.effector)[:40]
    elif isinstance(constraint, PoseKey) and constraint.effectors is not None:
        what = f"pose for {', '.join(constraint.effectors)}"
    return f"constraints[{number}] ({what})"


def claims_of(constraint: Constraint, number: int, skeleton: Skeleton) -> list[Claim]:
    """Everything that one constraint says, in float64."""

    def claim(thing: str, kind: Kind, values: Tensor, explicit: bool = True) -> Claim:
        rows = values.detach().cpu().double().reshape(len(constraint.frames), -1, values.shape[-1])
        return Claim(thing=thing, kind=kind, frames=constraint.frames.cpu(), values=rows, source=label(constraint, number), number=number, explicit=explicit)

    match constraint:
        case RootPath():
            said = [claim(SMOOTH_ROOT, "place", constraint.xz)]
            return said if constraint.heading is None else [*said, claim(HEADING, "angle", constraint.heading[:, None])]
        case Heading():
            return [claim(HEADING, "angle", constraint.heading[:, None])]
        case EffectorTarget():
            said = [] if constraint.position is None else [claim(constraint.effector, "place", constraint.position)]
            return said if constraint.quats is None else [*said, claim(constraint.effector, "turn", quat_normalize(constraint.quats.double()))]
        case FootPlan():
            return [claim(CONTACTS, "contacts", constraint.contacts)]
    poses = forward_kinematics(constraint.poses.to(torch.float64))
    p, q = poses.p_world_joint, matrix_to_quat(poses.R_world_joint)
    roles = [role for role in EFFECTORS if skeleton.has(role) and (constraint.effectors is None or role in constraint.effectors)]
    said = [claim(role, kind, values[:, skeleton.role(role)], False) for role in roles for kind, values in (("place", p), ("turn", q))]  # type: ignore[arg-type]
    if constraint.effectors is not None:
        return [*said, claim(ABOUT, "place", p[:, 0], False)]
    said += [claim(POSE, "place", p, False), claim(POSE, "turn", q, False)]
    if skeleton.has("left_hip", "right_hip"):
        said.append(claim(HEADING, "angle", heading_of(skeleton, p)[:, None], False))
    return said if constraint.smooth_xz is None else [*said, claim(SMOOTH_ROOT, "place", constraint.smooth_xz)]
