"""A walk made from formulas: the motion that comes with the package, with contacts and speed known by construction.

Each foot runs through one cycle of heel strike, flat, heel off, toe off and swing, half a cycle apart. While it stands it rolls
about a fixed point (flat sole, then the toe joint), so it cannot skate. The pelvis bobs twice a cycle and turns once, the arms
swing against the legs. Angles follow what gait textbooks plot for a comfortable pace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from scipy.interpolate import PchipInterpolator
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.kinematics.contacts import body_scale
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.inverse import Effort, Freedom, PositionTarget, RotationTarget, Target, displace, solve
from bunraku.kinematics.motion import Motion, Provenance, rest_motion
from bunraku.kinematics.neutral import neutral_rotations
from bunraku.kinematics.skeleton import SIDES, Skeleton
from bunraku.kinematics.stance import Legs, measure_legs
from bunraku.kinematics.transfer import compose_turns, role_joint
from bunraku.math.rotations import axis_quat, exp_quat, matrix_to_quat, quat_multiply, quat_to_matrix

CYCLE_SECONDS = 1.08
STANCE = 0.60  # share of the cycle that a foot stands
HEEL_OFF = 0.38  # when it starts to roll over its toe
# [rad] of the foot along the cycle, positive is toe down: it strikes with the heel, lies flat, rolls over its toe and swings
FOOT_PITCH = ((0.0, -0.30), (0.10, 0.0), (HEEL_OFF, 0.0), (0.50, 0.25), (STANCE, 0.80), (0.66, 0.95), (0.85, 0.10), (0.95, -0.28), (1.0, -0.30))
STRIKE_AHEAD = 0.40  # of the way that the hips travel during a stance: how far ahead of them it begins
BOB = 0.022  # [leg lengths] how far the hips rise above and fall below their mean height
STRETCH = 0.99  # of thigh and shin in line: no step asks for more, or the knee would snap


@dataclass(frozen=True, kw_only=True, eq=False)
class _Step:
    """One foot along the clip."""

    p_world_foot: Float[Tensor, "F 3"]
    pitch: Float[Tensor, " F"]  # [rad] of the foot
    toe_pitch: Float[Tensor, " F"]  # [rad] of the toes, which stay flat while the heel rises
    contacts: Bool[Tensor, "F 2"]  # foot, toe


def walk(skeleton: Skeleton, *, seconds: float = 4.0, speed: float | None = None, fps: float = 30.0) -> Motion:
    """A straight walk along +Z at `speed` [m/s]; the default suits the leg length."""
    if not 0 < seconds <= 600:
        raise BadValue(f"a walk of {seconds:g} seconds cannot be made; choose more than 0 and at most 600.")
    legs = measure_legs(skeleton)
    speed = 1.15 * legs.standing / 0.95 if speed is None else speed
    frames = max(round(seconds * fps), 1)
    time = torch.arange(frames, dtype=torch.float32) / fps
    phase = time / CYCLE_SECONDS  # of the left foot; it strikes at whole numbers
    start, steps = _body(skeleton, legs, phase, time * speed, fps), {}
    for side, offset in zip(SIDES, (0.0, 0.5), strict=True):
        steps[side] = _step(legs, side, phase - offset, offset, speed)
    motion = _place_feet(_within_reach(start, skeleton, steps), skeleton, steps)
    contacts = torch.cat([steps[side].contacts for side in SIDES], dim=-1)
    return replace(motion, contacts=contacts, provenance=Provenance(prompt="A person walks forward.", model="walk made from formulas"))


def _body(skeleton: Skeleton, legs: Legs, phase: Tensor, forward: Tensor, fps: float) -> Motion:
    """Pelvis, spine and arms; legs hang straight down until the feet are placed."""
    swing, bob = torch.cos(2 * torch.pi * phase), torch.cos(4 * torch.pi * phase)
    turn = {"hips": _turn(y=-0.10 * swing, z=0.06 * torch.sin(2 * torch.pi * phase)), "chest": _turn(y=0.10 * swing, x=0.04 + 0 * phase)}
    for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
        arm = _turn(x=0.40 * sign * swing + 0.05, z=-1.35 * sign + 0 * phase)
        bend = _turn(x=0.40 * sign * swing - 0.30 - 0.20 * (1 - sign * swing) / 2, z=-1.35 * sign + 0 * phase)
        turn |= {f"{side}_shoulder": arm, f"{side}_elbow": bend, f"{side}_hand": bend}
    R_neutral = neutral_rotations(skeleton)
    for role in ("spine", "neck", "head", *(f"{side}_{part}" for side in SIDES for part in ("hip", "knee", "foot", "toe"))):
        turn.setdefault(role, _turn(y=0 * phase))
    turns = {role_joint(skeleton, role): R @ R_neutral[role_joint(skeleton, role)] for role, R in turn.items() if skeleton.has(role)}
    motion = rest_motion(skeleton, len(phase), fps)
    motion = replace(motion, quats=matrix_to_quat(compose_turns(skeleton, turns, len(phase))))
    sway = 0.025 * legs.standing * torch.sin(2 * torch.pi * phase)
    height = legs.standing * (1 - BOB - BOB * bob)
    p = forward_kinematics(motion).p_world_joint
    between = (p[:, skeleton.role("left_hip")] + p[:, skeleton.role("right_hip")]) / 2
    return displace(motion, skeleton.role("hips"), torch.stack([sway, height, forward], dim=-1) - between)


def _turn(x: Tensor | None = None, y: Tensor | None = None, z: Tensor | None = None) -> Float[Tensor, "F 3 3"]:
    """World turn from the neutral pose: about z first, then x, then y [rad]."""
    given = [axis_quat(axis, angle) for axis, angle in (("y", y), ("x", x), ("z", z)) if angle is not None]
    quat = given[0]
    for other in given[1:]:
        quat = quat_multiply(quat, other)
    return quat_to_matrix(quat)


def _step(legs: Legs, side: str, phase: Tensor, offset: float, speed: float) -> _Step:
    """Stance k begins when the phase reaches k; its spot then lies ahead of the hips."""
    stride = speed * CYCLE_SECONDS
    k = phase.floor()
    within = phase - k
    lateral = (1 if side == "left" else -1) * legs.width * 0.45
    spot = torch.stack([torch.full_like(phase, lateral), torch.full_like(phase, legs.foot_height), (k + offset + STANCE * STRIKE_AHEAD) * stride], dim=-1)
    swing = ((within - STANCE) / (1 - STANCE)).clamp(0, 1)
    pitch = _through(FOOT_PITCH, within)
    lift = torch.stack([0 * phase, 0.10 * legs.standing * torch.sin(torch.pi * swing) ** 2, stride * _ease(swing)], dim=-1)
    p_foot = spot + lift + _about_toe(legs, pitch.clamp_min(0)) + _about_heel(legs, pitch.clamp_max(0))
    stands = within < STANCE
    flat = stands & (within < HEEL_OFF) & (pitch.abs() < 0.01)
    toe_pitch = pitch.clamp_max(0) + pitch.clamp_min(0) * _ease(swing * 2)
    return _Step(p_world_foot=p_foot, pitch=pitch, toe_pitch=toe_pitch, contacts=torch.stack([flat, stands & (pitch > -0.05)], dim=-1))


def _about_toe(legs: Legs, pitch: Tensor) -> Float[Tensor, "F 3"]:
    """How the ankle moves when the foot pitches about its toe joint."""
    back, up = -legs.foot_length, legs.foot_height - legs.toe_height
    return _pitched(back, up, pitch)


def _about_heel(legs: Legs, pitch: Tensor) -> Float[Tensor, "F 3"]:
    """How the ankle moves when the foot pitches about its heel, which lies a quarter of the foot's length behind the ankle."""
    return _pitched(legs.foot_length / 4, legs.foot_height, pitch)


def _pitched(forward: float, up: float, pitch: Tensor) -> Float[Tensor, "F 3"]:
    cosine, sine = torch.cos(pitch), torch.sin(pitch)
    return torch.stack([0 * pitch, up * (cosine - 1) - forward * sine, forward * (cosine - 1) + up * sine], dim=-1)


def _through(keys: tuple[tuple[float, float], ...], at: Tensor) -> Tensor:
    """A curve through (place, value) keys that does not overshoot."""
    places, values = zip(*keys, strict=True)
    return torch.from_numpy(PchipInterpolator(places, values)(at.double().numpy())).to(at)


def _ease(t: Tensor) -> Tensor:
    t = t.clamp(0, 1)
    return t * t * t * (t * (6 * t - 15) + 10)


def _within_reach(start: Motion, skeleton: Skeleton, steps: dict[str, _Step]) -> Motion:
    """The body lowered so far that the longest step is within a leg's reach."""
    p, lower = forward_kinematics(start).p_world_joint, [torch.zeros(1)]
    for side, step in steps.items():
        hip, knee, foot = (skeleton.role(f"{side}_{part}") for part in ("hip", "knee", "foot"))
        reach = STRETCH * ((p[0, hip] - p[0, knee]).norm() + (p[0, knee] - p[0, foot]).norm())
        away = p[:, hip] - step.p_world_foot
        highest = torch.sqrt((reach**2 - away[:, 0] ** 2 - away[:, 2] ** 2).clamp_min((0.5 * reach) ** 2))  # a stride beyond that must slip
        lower.append(away[:, 1] - highest)
    down = torch.tensor([0.0, -1.0, 0.0]) * torch.cat(lower).max()
    return displace(start, skeleton.role("hips"), down.expand(len(start), 3))


def _place_feet(start: Motion, skeleton: Skeleton, steps: dict[str, _Step]) -> Motion:
    R_neutral = neutral_rotations(skeleton)
    unit = 1 / body_scale(skeleton)
    every = torch.ones(len(start))
    targets: list[Target] = []
    for side, step in steps.items():
        joint = skeleton.role(f"{side}_foot")
        targets.append(PositionTarget(joint=joint, p_world=step.p_world_foot, weight=1000 * unit * every))
        targets.append(RotationTarget(joint=joint, R_world=_turn(x=step.pitch) @ R_neutral[joint], weight=50 * every))
        if skeleton.has(f"{side}_toe"):
            toe = skeleton.role(f"{side}_toe")
            targets.append(RotationTarget(joint=toe, R_world=_turn(x=step.toe_pitch) @ R_neutral[toe], weight=20 * every))
    bends = {skeleton.role(f"{side}_{part}"): 0.02 for side in SIDES for part in ("hip", "knee", "foot", "toe") if skeleton.has(f"{side}_{part}")}
    bent = _bend_knees(start, skeleton)
    return solve(bent, targets, Freedom.of(skeleton, bends, skeleton.role("hips")), Effort(stay=1.0, stay_moving=100.0 * unit, iterations=30))


def _bend_knees(motion: Motion, skeleton: Skeleton) -> Motion:
    """A little flexion, so that the fit starts on the side to which knees bend."""
    quats = motion.quats.clone()
    R = forward_kinematics(motion).R_world_joint
    for side in SIDES:
        for part, angle in (("hip", -0.3), ("knee", 0.6)):
            joint = skeleton.role(f"{side}_{part}")
            across = R[:, joint, 0]  # the world's x axis, seen from the joint
            quats[:, joint] = quat_multiply(quats[:, joint], exp_quat(across * angle))
    return replace(motion, quats=quats)
