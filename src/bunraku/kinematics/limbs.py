"""Arms and legs read from joint names, with the tree and the rest pose to fill in what the names leave open.

A strong name (thigh, calf, forearm) decides; a weak one (leg, arm, hip, shoulder) counts only where no strong one exists, because tools
disagree on it: Mixamo's LeftLeg is a shin, SOMA's a thigh; SMPL's L_Shoulder is an upper arm, Mixamo's LeftShoulder a collar bone.
"""

from __future__ import annotations

from collections.abc import Iterable

from jaxtyping import Float
from torch import Tensor

from bunraku.kinematics.body_plan import arm_parts, body_height, leg_parts
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.joint_names import LIMB_PARTS, JointName, common_prefixes, parse
from bunraku.kinematics.skeleton import SIDES, Skeleton

_LEG = ("thigh", "shin", "hip", "leg")
# What upper arm, forearm and hand are called, strongest first; a quadruped's front legs are arms with the names of legs.
_ARM = (("upperarm", "arm", "shoulder"), ("forearm",), ("wrist", "hand", "palm"))
_FORELEG = (("thigh",), ("shin",), ("foot",))


class NamedBody:
    """A skeleton with its names taken apart and its rest pose laid out."""

    def __init__(self, skeleton: Skeleton) -> None:
        self.skeleton = skeleton
        self.p: Float[Tensor, "J 3"] = rest_poses(skeleton).p_world_joint
        self.height = body_height(self.p)
        prefixes = common_prefixes(skeleton.joints)
        self.names: list[JointName] = [parse(joint, prefixes) for joint in skeleton.joints]
        self.depth = [len(skeleton.ancestors(joint)) for joint in range(len(skeleton))]
        # Rigify and its kin: where deforming bones are marked, nothing else can be part of the body
        marked = sum("def" in name.words for name in self.names) >= 8
        self.usable = [not name.control and (not marked or "def" in name.words) for name in self.names]

    def side(self, joint: int) -> str | None:
        """What the name says; a limb's joint whose name is silent is on the side where it rests (left is +X)."""
        name, x = self.names[joint], float(self.p[joint, 0])
        if name.side or name.part not in LIMB_PARTS or abs(x) < 0.02 * self.height:
            return name.side
        return SIDES[0] if x > 0 else SIDES[1]

    def named(self, side: str | None, *parts: str, end: str | None = None) -> list[int]:
        """Joints of a side (and, on four legs, of the front or back) that a name gives one of these parts, from the root down."""
        found = [j for j, name in enumerate(self.names) if self.usable[j] and name.part in parts and name.end == end and self.side(j) == side]
        return sorted(found, key=lambda j: (self.depth[j], len(self.names[j].words), j))

    def below(self, top: int, joints: Iterable[int]) -> list[int]:
        return [joint for joint in joints if joint != top and top in self.skeleton.ancestors(joint)]

    def chain(self, top: int) -> list[int]:
        """The joints from `top` down while exactly one usable child follows."""
        chain = [top]
        while len(children := [child for child in self.skeleton.children[chain[-1]] if self.usable[child]]) == 1:
            chain.append(children[0])
        return chain


def first(*groups: list[int]) -> int | None:
    """The first joint of the first group that has one."""
    return next((group[0] for group in groups if group), None)


def limb_roles(body: NamedBody) -> dict[str, int]:
    """Roles of arms and legs on both sides."""
    return {f"{side}_{part}": joint for side in SIDES for part, joint in {**_leg(body, side), **_arm(body, side)}.items()}


def _leg(body: NamedBody, side: str) -> dict[str, int]:
    end = "back" if body.named(side, *_LEG, end="back") else None

    def named(*parts: str) -> list[int]:
        return body.named(side, *parts, end=end)

    hip = first(named("thigh"), named("hip"), named("leg"))
    if hip is None:
        return {}
    hip = _top_of_leg(body, hip, side)
    ankles, feet, toes = named("ankle"), named("foot"), named("toe")
    foot = first(ankles[::-1], body.below(hip, feet), feet, _handles(body, side, end))
    if foot is None:
        return leg_parts(body.p, body.chain(hip))
    knee = _knee(body, hip, foot, named(*_LEG))
    if knee is None:
        return {}
    # where an ankle is named, "foot" is the ball of the foot
    toe = first(body.below(foot, toes), body.below(foot, feet) if ankles else [], toes, _only_child(body, foot))
    return {"hip": hip, "knee": knee, "foot": foot} | ({} if toe is None else {"toe": toe})


def _arm(body: NamedBody, side: str) -> dict[str, int]:
    foreleg = not body.named(side, *_ARM[0])
    end = "front" if foreleg else None
    upper, lower, ends = _FORELEG if foreleg else _ARM

    def named(*parts: str) -> list[int]:
        return body.named(side, *parts, end=end)

    shoulder = first(*(named(part) for part in upper))
    if shoulder is None:
        return {}
    above = body.skeleton.ancestors(shoulder)[1:]
    collar = next((joint for joint in reversed(named("collar", "shoulder", "leg")) if joint in above), None)
    elbow = first(body.below(shoulder, named(*lower)))
    if elbow is None:
        return arm_parts(body.p, body.chain(shoulder))
    wrists = body.below(elbow, named("wrist"))[::-1]
    hand = first(wrists, *(body.below(elbow, named(part)) for part in ends), named(*ends), _handles(body, side, "front"), _finger_roots(body, elbow))
    parts = {"collar": collar, "shoulder": shoulder, "elbow": elbow, "hand": hand}
    return {part: joint for part, joint in parts.items() if joint is not None}


def _top_of_leg(body: NamedBody, hip: int, side: str) -> int:
    """Four-boned hind legs name the thigh 'leg' and the shin 'upper leg'. A 'leg' that only reaches sideways is a part of the pelvis."""
    parent = body.skeleton.parents[hip]
    if parent < 0 or body.names[parent].part != "leg" or body.side(parent) != side or body.names[hip].part != "thigh":
        return hip
    bone = body.p[hip] - body.p[parent]
    return hip if abs(float(bone[0])) > 0.8 * float(bone.norm()) else parent


def _knee(body: NamedBody, hip: int, foot: int, named: list[int]) -> int | None:
    """The first joint between hip and foot that is not named as the hip is: a numbered thigh is still the thigh."""
    path = [joint for joint in body.skeleton.path(hip, foot)[1:-1] if body.usable[joint]] or body.below(hip, named)
    legs = [joint for joint in path if joint in named] or path
    return first([joint for joint in legs if body.names[joint].core != body.names[hip].core], legs)


def _handles(body: NamedBody, side: str, end: str | None) -> list[int]:
    """Feet that a rig knows only as the handle of their leg ('IKBackLeg.L'): used where no bone is named foot."""
    found = [j for j, name in enumerate(body.names) if "ik" in name.words and name.part in ("leg", "foot") and name.end == end and body.side(j) == side]
    return [joint for joint in found if not body.names[joint].words & {"pole", "target"}]


def _only_child(body: NamedBody, foot: int) -> list[int]:
    """A toe without a name: the one bone that goes on from the foot, not upwards."""
    children = [child for child in body.skeleton.children[foot] if body.usable[child]]
    return children if len(children) == 1 and float(body.p[children[0], 1] - body.p[foot, 1]) < 0.01 * body.height else []


def _finger_roots(body: NamedBody, elbow: int) -> list[int]:
    """Hands without a wrist: fingers that all begin at one point on the forearm. The middle finger stands for the hand."""
    roots = [child for child in body.skeleton.children[elbow] if body.names[child].part == "finger"]
    if len(roots) < 2 or float((body.p[roots] - body.p[roots[0]]).norm(dim=-1).max()) > 0.02 * body.height:
        return []
    return sorted(roots, key=lambda joint: "middle" not in body.names[joint].words)
