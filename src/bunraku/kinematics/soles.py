"""Feet kept out of the ground: where a wished foot would push its toes through the floor, it is pitched up until they touch it.

Captured toes bend through the floor by centimetres, and a longer foot reaches the floor earlier in a step. The ankle's path is
known (`stance`), so the turn that is too much follows from where the points of the sole would end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.kinematics.contacts import body_scale, sole_points_at_rest
from bunraku.kinematics.forward import forward_kinematics, rest_poses
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.neutral import facing_yaw
from bunraku.kinematics.skeleton import SIDES, Skeleton
from bunraku.math.rotations import exp_matrix, matrix_to_quat, quat_rotate, yaw_quat

FADE = 0.10  # [m, person-sized] a foot whose ankle is that far below y = 0 stands on another ground
MOST, NEVER = math.radians(80), math.radians(150)  # [rad] soles turn up so far; where they would have to bend further (kneeling) they are left

GENTLE = 0.14  # [s]


def lift_feet(target: Skeleton, turns: Mapping[int, Float[Tensor, "F 3 3"]], p_world_feet: Mapping[str, Float[Tensor, "F 3"]], fps: float) -> dict[int, Tensor]:
    """Wished world turns, those of feet pitched up where their soles would be below y = 0 once their ankles are at `p_world_feet`."""
    feet = {side: target.role(f"{side}_foot") for side in SIDES}
    lifted = {joint: _lifted(target, side, joint, p_world_feet[side], turns[joint], fps) for side, joint in feet.items() if joint in turns}
    return {**turns, **lifted}


def lift_toes(motion: Motion) -> Motion:
    """The motion with toes bent up (feet pitched up, where they have no toes) that are below y = 0. No other joint moves."""
    body, quats, poses = motion.skeleton, motion.quats.clone(), forward_kinematics(motion)
    for side in SIDES:
        joint = body.roles.get(f"{side}_toe", body.role(f"{side}_foot"))
        R_world = _lifted(body, side, joint, poses.p_world_joint[:, joint], poses.R_world_joint[:, joint], motion.fps)
        quats[:, joint] = matrix_to_quat(poses.R_world_joint[:, body.parents[joint]].transpose(-1, -2) @ R_world)
    return replace(motion, quats=quats)


def _lifted(body: Skeleton, side: str, joint: int, p_world: Float[Tensor, "F 3"], R_world: Float[Tensor, "F 3 3"], fps: float) -> Float[Tensor, "F 3 3"]:
    """The world turns of a foot or toe at `p_world`, pitched up until no point of the sole ahead of it is below y = 0."""
    rest = rest_poses(body)
    facing = yaw_quat(facing_yaw(body, rest.p_world_joint))
    left, ahead = (quat_rotate(facing, rest.p_world_joint.new_tensor(axis)) for axis in ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))
    joints, p_rest_sole = sole_points_at_rest(body, side)
    toe = body.roles.get(f"{side}_toe", joint)
    turns_along = [joint in body.ancestors(j) and (joint == toe or j == toe or toe not in body.ancestors(j)) for j in joints]
    arms = p_rest_sole[turns_along] - rest.p_world_joint[joint]
    arms = arms[arms @ ahead > 0.5 * arms.norm(dim=-1)]  # what lies straight below the joint no pitch would lift
    if not len(arms):
        return R_world
    R_joint_world = rest.R_world_joint[joint].T
    up = _turn_up(p_world[:, 1], R_world, arms @ R_joint_world.T, R_joint_world @ left)
    weight = (1 + p_world[:, 1] / (FADE * body_scale(body))).clamp(0, 1)
    return exp_matrix(-_gently(up * weight, fps)[:, None] * (R_world @ (R_joint_world @ left))) @ R_world


def _turn_up(y: Float[Tensor, " F"], R_world: Float[Tensor, "F 3 3"], p_joint: Float[Tensor, "N 3"], left: Float[Tensor, "3"]) -> Float[Tensor, " F"]:
    """How far a joint at height `y` has to turn about its own axis `left`, backwards, to raise its lowest point to y = 0 [rad].

    Turned by θ, a point is at the height  along + level cos θ + rise sin θ,  which is 0 at  phase ± arccos(−along / radius): one of
    the two bends it up (θ < 0), the other down and under.
    """
    axis = R_world @ left
    arm = (R_world[:, None] @ p_joint[..., None]).squeeze(-1)
    on_axis = (arm * axis[:, None]).sum(-1, keepdim=True) * axis[:, None]
    along = y[:, None] + on_axis[..., 1]
    level, rise = (arm - on_axis)[..., 1], torch.linalg.cross(axis[:, None].expand_as(arm), arm)[..., 1]
    phase, opening = torch.atan2(rise, level), torch.arccos((-along / torch.hypot(level, rise).clamp_min(1e-9)).clamp(-1, 1))
    up = torch.minimum(torch.remainder(opening - phase, 2 * math.pi), torch.remainder(-opening - phase, 2 * math.pi))
    up = torch.where(along + level < 0, up, torch.zeros_like(up)).amax(dim=1)
    return up.clamp_max(MOST) * ((NEVER - up) / (NEVER - MOST)).clamp(0, 1)


def _gently(angle: Float[Tensor, " F"], fps: float) -> Float[Tensor, " F"]:
    """The mean over GENTLE seconds of the largest within them: a steep foot that swings past the ground asks for its whole lift at once."""
    around = round(GENTLE * fps / 2)

    def windows(values: Tensor) -> Tensor:
        return torch.cat([values[:1].expand(around), values, values[-1:].expand(around)]).unfold(0, 2 * around + 1, 1)

    return windows(windows(angle).amax(dim=-1)).mean(dim=-1)
