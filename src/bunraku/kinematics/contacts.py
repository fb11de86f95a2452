"""When a foot stands on the ground, and where the ground is: from the motion of foot joints alone.

The rule is the one the released Kimodo data was labelled with: a foot joint is in contact while it moves slower than 0.15 m/s
and lies lower than 0.10 m. Those numbers belong to a body of a person's size, so they grow and shrink with bodies that are not,
and a joint that rests higher than 0.10 m above its sole (an ankle in a big boot) is measured from where it rests.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.errors import RoleMissing
from bunraku.kinematics.forward import forward_kinematics, rest_poses
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import CONTACT_ROLES, SIDES, Skeleton
from bunraku.math.curves import velocity

CONTACT_SPEED = 0.15  # [m/s]
CONTACT_HEIGHT = 0.10  # [m]
PERSON_HIPS = (0.7, 1.3)  # [m] hips of standing people, and of the released skeletons: here the released numbers hold as they are
REST_MARGIN = 1.12  # a joint resting above CONTACT_HEIGHT may rise by 12 %, about what the released height leaves to a person's ankle


def detect_contacts(motion: Motion, *, ground: float = 0.0) -> Bool[Tensor, "F 4"]:
    """Which of `skeleton.CONTACT_ROLES` stand on the ground at height `ground` [m]. Columns of roles the skeleton lacks are False."""
    return contacts_from_positions(motion.skeleton, forward_kinematics(motion).p_world_joint, motion.fps, ground=ground)


def contacts_from_positions(skeleton: Skeleton, p_world_joint: Float[Tensor, "F J 3"], fps: float, *, ground: float = 0.0) -> Bool[Tensor, "F 4"]:
    """`detect_contacts` for world positions that are already at hand."""
    columns, joints = contact_joints(skeleton)
    p_foot = p_world_joint[:, joints]
    slow = velocity(p_foot, fps).norm(dim=-1) < CONTACT_SPEED * body_scale(skeleton)
    low = p_foot[..., 1] - ground < contact_heights(skeleton, joints).to(p_foot)
    contacts = torch.zeros(len(p_foot), len(CONTACT_ROLES), dtype=torch.bool, device=p_foot.device)
    contacts[:, columns] = slow & low
    return contacts


def ground_height(motion: Motion) -> float:
    """An estimate [m] of the height on which the feet of this clip stand; 0 where the clip was set on y = 0."""
    return ground_from_positions(motion.skeleton, forward_kinematics(motion).p_world_joint, motion.fps)


def ground_from_positions(skeleton: Skeleton, p_world_joint: Float[Tensor, "F J 3"], fps: float) -> float:
    """`ground_height` for world positions that are already at hand.

    The 10th percentile of the height of each foot's foremost joint, less its height at rest, over the frames in which it is slow
    (over all frames where it never is): below steps and jumps, above a frame that sinks. Tips of toes are left out: captured
    toes often bend through the floor.
    """
    contact_joints(skeleton)
    joints = [skeleton.roles.get(f"{side}_toe", skeleton.roles.get(f"{side}_foot")) for side in SIDES]
    joints = [j for j in joints if j is not None]
    p_foot = p_world_joint[:, joints]
    heights = p_foot[..., 1] - _rest_clearance(skeleton, joints).to(p_foot)
    slow = velocity(p_foot, fps).norm(dim=-1) < CONTACT_SPEED * body_scale(skeleton)
    return _percentile(heights[slow] if slow.any() else heights.flatten(), 0.10)


# --- soles ----------------------------------------------------------------------------------------------------------


def sole_positions(skeleton: Skeleton, p_world_joint: Float[Tensor, "F J 3"], R_world_joint: Float[Tensor, "F J 3 3"]) -> dict[str, Float[Tensor, "F _ 3"]]:
    """World positions of points of the sole, for each side that has a foot.

    One point for each joint of the foot and each tip of a leaf bone there: the point that lies straight below it on the ground in
    the rest pose, and turns with it.
    """
    contact_joints(skeleton)  # refuses a skeleton without feet
    soles = {}
    for side in SIDES:
        joints, p_joint_sole = _sole_points(skeleton, side)
        if joints:
            turned = R_world_joint[:, joints] @ p_joint_sole.to(p_world_joint)[..., None]
            soles[side] = p_world_joint[:, joints] + turned.squeeze(-1)
    return soles


def sole_points_at_rest(skeleton: Skeleton, side: str) -> tuple[list[int], Float[Tensor, "N 3"]]:
    """Which joint carries each sole point, and where in the world it rests."""
    rest = rest_poses(skeleton)
    foot = foot_joints(skeleton, side)
    joints = foot + [j for j in foot if j in skeleton.tips]
    p_rest = rest.p_world_joint[joints].clone()
    for row, j in enumerate(joints[len(foot) :], start=len(foot)):
        p_rest[row] += rest.R_world_joint[j] @ torch.tensor(skeleton.tips[j]).to(p_rest)
    p_rest[:, 1] = rest_ground(skeleton)
    return joints, p_rest


def _sole_points(skeleton: Skeleton, side: str) -> tuple[list[int], Float[Tensor, "N 3"]]:
    """Which joint carries each sole point, and where in that joint's frame it is."""
    rest = rest_poses(skeleton)
    joints, p_rest = sole_points_at_rest(skeleton, side)
    R_joint_world = rest.R_world_joint[joints].transpose(-1, -2)
    return joints, (R_joint_world @ (p_rest - rest.p_world_joint[joints])[..., None]).squeeze(-1)


# --- the body at rest -----------------------------------------------------------------------------------------------


def contact_joints(skeleton: Skeleton) -> tuple[list[int], list[int]]:
    """The contact columns this skeleton can fill, and the joint of each."""
    columns = [column for column, role in enumerate(CONTACT_ROLES) if skeleton.has(role)]
    if not columns:
        known = ", ".join(skeleton.roles) or "none"
        raise RoleMissing(f"skeleton '{skeleton.name}' has no feet: none of {', '.join(CONTACT_ROLES)} (it has: {known}). Name them in a roles file.")
    return columns, [skeleton.role(CONTACT_ROLES[column]) for column in columns]


def foot_joints(skeleton: Skeleton, side: str) -> list[int]:
    """The foot of a side and every joint below it; empty where the side has no foot."""
    tops = {skeleton.roles[role] for role in (f"{side}_foot", f"{side}_toe") if role in skeleton.roles}
    return [j for j in range(len(skeleton)) if not tops.isdisjoint(skeleton.ancestors(j))]


def contact_heights(skeleton: Skeleton, joints: list[int], limit: float = CONTACT_HEIGHT) -> Float[Tensor, " N"]:
    """Below which height above the ground [m] each joint counts as standing, where `limit` is right for a person."""
    return torch.clamp_min(REST_MARGIN * _rest_clearance(skeleton, joints), limit * body_scale(skeleton))


def body_scale(skeleton: Skeleton) -> float:
    """The size of a body against a person's: exactly 1 for hips that rest 0.7 to 1.3 m high, in proportion below and above."""
    hips = float(rest_poses(skeleton).p_world_joint[_hips(skeleton), 1]) - rest_ground(skeleton)
    low, high = PERSON_HIPS
    return hips / min(max(hips, low), high) if hips > 0 else 1.0


def rest_ground(skeleton: Skeleton) -> float:
    """The height [m] on which the rest pose stands.

    A rest pose made to stand on y = 0 keeps a sole's thickness of its lowest joint above it; any other (hips at the origin, as BVH
    files often have it) stands on its lowest joint or tip.
    """
    rest = rest_poses(skeleton)
    tips = [rest.p_world_joint[j, 1] + rest.R_world_joint[j, 1] @ torch.tensor(tip, dtype=rest.p_world_joint.dtype) for j, tip in skeleton.tips.items()]
    lowest = float(torch.stack([*rest.p_world_joint[:, 1], *tips]).min())
    tallest = float(rest.p_world_joint[:, 1].max())
    return 0.0 if -1e-6 * tallest <= lowest < 0.06 * tallest else lowest


def _hips(skeleton: Skeleton) -> int:
    """The joint with the role hips, or else where the chains of all feet meet."""
    if skeleton.has("hips"):
        return skeleton.role("hips")
    _, joints = contact_joints(skeleton)
    shared = set(range(len(skeleton))).intersection(*(skeleton.ancestors(j) for j in joints))
    return max(shared)


def _rest_clearance(skeleton: Skeleton, joints: list[int]) -> Float[Tensor, " N"]:
    """How high above the sole each joint rests [m]."""
    return rest_poses(skeleton).p_world_joint[joints, 1] - rest_ground(skeleton)


def _percentile(values: Float[Tensor, " N"], share: float) -> float:
    """The value below which `share` of the values lie (nearest rank; `torch.quantile` refuses long clips)."""
    return float(values.kthvalue(max(1, round(share * len(values)))).values)
