"""Putting one character's motion on another, by role: other proportions, other rest pose, other joints, or a robot's hinges.

    source ─► world poses, contacts
                │
                ├─ transfer: each body part is turned as the source's is, relative to the neutral pose
                ├─ stance:   feet step at the target's scale; a planted foot gets one fixed spot
                └─ soles:    feet and toes that would go through the ground are pitched up
                       │
                inverse.solve: one whole-clip least-squares fit of hips, spine, legs and arms
                       │
                reach:         hands near each other or the body keep their relation to it, as it now stands
                       │
                inverse.solve: the arms alone

Bodies of ball joints start from the transferred turns and are corrected as little as the feet and hands need. A robot has no
such start: its hinges are fitted to the same wishes from its zero pose, within their limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.errors import RoleMissing
from bunraku.kinematics.borrow import borrow_limbs
from bunraku.kinematics.contacts import body_scale, detect_contacts, ground_height
from bunraku.kinematics.forward import WorldPoses, forward_kinematics
from bunraku.kinematics.inverse import Effort, Freedom, PositionTarget, RotationTarget, Target, displace, solve
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.reach import Wishes, hand_wishes
from bunraku.kinematics.skeleton import SIDES, Skeleton
from bunraku.kinematics.soles import lift_feet, lift_toes
from bunraku.kinematics.stance import FootPlan, measure_legs, plan_foot
from bunraku.kinematics.transfer import compose_turns, role_joint, transferred_turns
from bunraku.math.rotations import matrix_to_quat

NEEDED = ("hips", *(f"{side}_{part}" for side in SIDES for part in ("hip", "knee", "foot")))
# How unwillingly joints turn away from the transferred pose so that feet and hands arrive [1/rad].
_STIFFNESS = {"hips": 30.0, "shoulder": 3.0, "elbow": 1.0, "hand": 3.0, "hip": 1.0, "knee": 1.0, "foot": 1.0}

# [1/m] how much a foot on the ground, a foot and a toe in the air, and a hand near the body matter
PLANTED, SWINGING, TOE_IN_AIR, REACHING = 400.0, 40.0, 10.0, 15.0
MAX_GROUND_ERROR = 0.08  # [m, person-sized]
HIPS_PLACE, FIXED = 6.0, 1e4  # [1/m]
LIGHT = 20.0  # [1/m] feet while a robot finds its pose: much heavier ones outweigh all that would bend a stretched knee
ARM_SMOOTHNESS = 8.0  # [frame²/rad] of a robot's arms that reach
TURN = {"hips": 3.0, "chest": 2.0, "foot": 2.0, "toe": 0.5, "hand": 0.4}  # [1/rad] what a robot's parts matter; others 1


def retarget(motion: Motion, target: Skeleton, *, on_progress: Callable[[float], None] | None = None) -> Motion:
    """The same performance by another skeleton, at its own scale; feet that stand stay where they stand.

    `on_progress` is told the share that is done, for clips long enough to wait for.
    """
    source = motion.skeleton
    for skeleton in (source, target):
        missing = [role for role in NEEDED if role not in skeleton.roles]
        if missing:
            raise RoleMissing(
                f"'{skeleton.name}' cannot be retargeted: it has no joint for {', '.join(missing)}. Name them in a roles file: {{\"{missing[0]}\": \"JOINT\"}}."
            )
    motion, ground = _on_the_ground(motion.to(torch.float32))
    poses = forward_kinematics(motion)
    contacts = detect_contacts(motion) if motion.contacts is None else motion.contacts
    plan = _plan(motion, poses, contacts, target)
    solved = _fit_hinges(plan, on_progress) if target.hinges is not None else lift_toes(_correct(plan, on_progress))
    notes = {"retargeted_from": source.name} | note_on_ground(ground)
    return replace(solved, contacts=contacts, provenance=motion.provenance.noted(**notes))


def note_on_ground(level: float) -> dict[str, str]:
    """What is said of a motion that stood at another height [m] than 0 and was put there."""
    way = "lowered" if level > 0 else "raised"
    return {"ground": f"{way} by {abs(level) * 100:.1f} cm on to y = 0"} if abs(level) > 0.001 else {}


def _on_the_ground(motion: Motion) -> tuple[Motion, float]:
    """The clip lowered so that its feet stand on y = 0, and by how much [m]; mocap is often a few centimetres off.

    A clip that stands much higher or lower is taken at its word: it may be on a platform.
    """
    ground = ground_height(motion)
    if abs(ground) > MAX_GROUND_ERROR * body_scale(motion.skeleton):
        return motion, 0.0
    return displace(motion, 0, torch.tensor([0.0, -ground, 0.0]).expand(len(motion), 3)), ground


@dataclass(frozen=True, kw_only=True, eq=False)
class _Plan:
    """Everything the fit should reach, in the target's world."""

    target: Skeleton
    fps: float
    turns: dict[int, Float[Tensor, "F 3 3"]]
    p_world_hips: Float[Tensor, "F 3"]
    start: Motion  # the transferred turns, hips placed, feet not yet corrected
    feet: dict[str, FootPlan]
    hands: Callable[[Float[Tensor, "F J 3"]], Wishes]  # of a body whose joints stand there


def _plan(motion: Motion, poses: WorldPoses, contacts: Bool[Tensor, "F 4"], target: Skeleton) -> _Plan:
    source = motion.skeleton
    legs_source, legs = measure_legs(source), measure_legs(target)
    scale = legs.length / legs_source.length
    feet = {side: plan_foot(side, source, poses, contacts, motion.fps, legs_source, legs) for side in SIDES}
    turns = lift_feet(target, transferred_turns(source, poses, target), {side: foot.p_world_foot for side, foot in feet.items()}, motion.fps)
    start = replace(
        rest_motion(target, len(motion), motion.fps),
        quats=matrix_to_quat(compose_turns(target, turns, len(motion))),
    )
    hips = target.role("hips")
    # ankles stand as high as they do at rest; only what is above them grows with the legs, or a big shoe would bend or stretch them
    wish = _between_hip_joints(source, poses.p_world_joint) * scale + torch.tensor([0.0, legs.foot_height - scale * legs_source.foot_height, 0.0])
    start = displace(start, hips, wish - _between_hip_joints(target, forward_kinematics(start).p_world_joint))
    return _Plan(
        target=target,
        fps=motion.fps,
        turns=turns,
        p_world_hips=forward_kinematics(start).p_world_joint[:, hips],
        start=start,
        feet=feet,
        hands=partial(hand_wishes, source, poses.p_world_joint, target, size=body_scale(source)),
    )


def _part(role: str) -> str:
    """The role without its side."""
    return role.removeprefix("left_").removeprefix("right_")


def _between_hip_joints(skeleton: Skeleton, p_world_joint: Float[Tensor, "F J 3"]) -> Float[Tensor, "F 3"]:
    return (p_world_joint[:, skeleton.role("left_hip")] + p_world_joint[:, skeleton.role("right_hip")]) / 2


def _correct(plan: _Plan, on_progress: Callable[[float], None] | None) -> Motion:
    target = plan.target
    # joints that move no foot would not turn anyway: left out, the same answer takes half the time
    stiffness = {joint: _STIFFNESS[_part(role)] for role, joint in target.roles.items() if _part(role) in ("hips", "hip", "knee", "foot")}
    freedom = Freedom.of(target, stiffness, target.role("hips"))
    # the foot should keep the attitude it was given, so only its place is corrected by the leg
    feet: list[Target] = [
        RotationTarget(joint=joint, R_world=plan.turns[joint], weight=torch.full((len(plan.start),), TURN["foot"]))
        for joint in (target.role(f"{side}_foot") for side in SIDES)
        if joint in plan.turns
    ]
    unit = 1 / body_scale(target)  # weights per metre of a person-sized body
    effort = Effort(stay=1.0, stay_moving=HIPS_PLACE * unit, smooth=3.0, smooth_moving=30.0 * unit)
    stood = solve(plan.start, [*feet, *_feet_targets(plan, unit)], freedom, effort, on_progress=on_progress)
    arms = {joint: _STIFFNESS[_part(role)] for role, joint in target.roles.items() if _part(role) in ("shoulder", "elbow", "hand")}
    return _reach(plan, stood, arms, [], effort, stood)


def _fit_hinges(plan: _Plan, on_progress: Callable[[float], None] | None) -> Motion:
    target = plan.target
    hinges = [target.index[name] for name in target.hinges.joints] if target.hinges is not None else []
    freedom = Freedom.of(target, dict.fromkeys([*hinges, target.role("hips")], 1.0), target.role("hips"))
    weights = {role_joint(target, role): TURN.get(_part(role), 1.0) for role in target.roles}
    frames = len(plan.start)
    turns: list[Target] = [
        RotationTarget(joint=joint, R_world=R, weight=torch.full((frames,), weights[joint])) for joint, R in plan.turns.items() if joint in weights
    ]
    unit = 1 / body_scale(target)
    hips = PositionTarget(joint=target.role("hips"), p_world=plan.p_world_hips, weight=torch.full((frames,), HIPS_PLACE * unit))
    zero = rest_motion(target, frames, plan.fps)
    root = {"quats": torch.cat([plan.start.quats[:, :1], zero.quats[:, 1:]], dim=1)} if target.role("hips") == 0 else {}
    zero = replace(zero, root_position=plan.start.root_position, translations=plan.start.translations, **root)
    effort = Effort(stay=0.02, stay_moving=0.1 * unit, smooth=2.0, smooth_moving=10.0 * unit, iterations=30, tolerance=1e-4)
    body = [*turns, hips, *_feet_targets(plan, unit)]
    half = None if on_progress is None else (lambda share: on_progress(share / 2))
    rest = None if on_progress is None else (lambda share: on_progress(0.5 + share / 2))
    posed = _pose_hinges(zero, body, freedom, effort, LIGHT * unit, half)  # without hands: from the zero pose they would drag the body along
    arms = _arm_hinges(target)
    quats = posed.quats.clone()
    quats[:, arms] = zero.quats[:, arms]
    own_turns = [turn for turn in turns if turn.joint in arms]
    return _reach(plan, posed, dict.fromkeys(arms, 1.0), own_turns, replace(effort, smooth=ARM_SMOOTHNESS), replace(posed, quats=quats), rest)


def _pose_hinges(zero: Motion, body: list[Target], freedom: Freedom, effort: Effort, light: float, on_progress: Callable[[float], None] | None) -> Motion:
    """Hinges fitted to a body's wishes from the zero pose: first with no place weighed more than `light` [1/m], or knees stay stretched."""
    lighter = [replace(wish, weight=wish.weight.clamp_max(light)) if isinstance(wish, PositionTarget) else wish for wish in body]
    posed = solve(zero, lighter, freedom, effort, on_progress=on_progress)
    planted = replace(effort, damping=1e-6)
    posed = solve(posed, body, freedom, planted, reference=zero)
    freed = borrow_limbs(posed, body)
    return posed if freed is posed else solve(freed, body, freedom, planted, reference=zero)


def _arm_hinges(robot: Skeleton) -> list[int]:
    """The hinges from the shoulders down to the hands."""
    hinged = set() if robot.hinges is None else set(robot.hinges.joints)
    ends = [(f"{side}_shoulder", f"{side}_hand") for side in SIDES]
    arms = [joint for top, hand in ends if robot.has(top, hand) for joint in robot.path(robot.role(top), robot.role(hand))]
    return [joint for joint in arms if robot.joints[joint] in hinged]


def _reach(
    plan: _Plan,
    stood: Motion,
    arms: dict[int, float],
    arm_turns: list[Target],
    effort: Effort,
    reference: Motion,
    on_progress: Callable[[float], None] | None = None,
) -> Motion:
    """The body as it stands, its hands where they are wished. `arms` are joints and how stiff they are; all others keep still: a hand
    that reaches for a thigh must not pull hips and knees out of a step."""
    unit = 1 / body_scale(plan.target)
    wishes = plan.hands(forward_kinematics(stood).p_world_joint)
    if not (wishes and arms):
        return stood
    hands = [PositionTarget(joint=hand, p_world=p, weight=importance * REACHING * unit) for hand, (p, importance) in wishes.items()]
    freedom = Freedom.of(plan.target, arms, plan.target.role("hips"))
    return solve(stood, [*arm_turns, *hands], freedom, replace(effort, stay_moving=FIXED * unit), reference=reference, on_progress=on_progress)


def _feet_targets(plan: _Plan, unit: float) -> list[Target]:
    """`unit` turns person-sized weights into the target's [1/m]."""
    targets: list[Target] = []
    for side, foot in plan.feet.items():
        if foot.p_world_toe is not None and plan.target.has(f"{side}_toe"):
            weight = torch.where(foot.toe_planted, PLANTED, TOE_IN_AIR) * unit
            targets.append(PositionTarget(joint=plan.target.role(f"{side}_toe"), p_world=foot.p_world_toe, weight=weight))
        weight = torch.where(foot.foot_planted, PLANTED, SWINGING) * unit
        targets.append(PositionTarget(joint=plan.target.role(f"{side}_foot"), p_world=foot.p_world_foot, weight=weight))
    return targets
