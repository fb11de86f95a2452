"""The families of constraints a model is tried with: what each takes from a true motion (kimodo §6.1).

Names are those of NVIDIA's released benchmark where it has the family too; `end-effectors/targets` and `feet/plan` are not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.heading import heading_of
from bunraku.kinematics.motion import Motion
from bunraku.math.rotations import matrix_to_quat
from bunraku.timeline.constraints import Constraint, EffectorTarget, FootPlan, PoseKey, RootPath
from bunraku.trials.stretch import Truth

MOST_KEYS = 20  # the released models' authors advise fewer keyframes than that
LONGEST_BLOCK = 30  # [frames] of an in-betweening's start or end
HANDS, FEET = ("left_hand", "right_hand"), ("left_foot", "right_foot")

Family = Callable[[Truth, torch.Generator], list[Constraint]]


def _few(frames: int, rng: torch.Generator, most: int = MOST_KEYS) -> Int[Tensor, " K"]:
    """Some frames in order, rather few than many: k of them with a chance that falls as 1 / k."""
    counts = torch.arange(1, min(most, frames) + 1)
    k = int(counts[torch.multinomial(1.0 / counts, 1, generator=rng)])
    return torch.randperm(frames, generator=rng)[:k].sort().values


def _stretch(frames: int, rng: torch.Generator) -> Int[Tensor, " K"]:
    """Unbroken frames, from half of the clip to all of it."""
    length = max(2, round(frames * (0.5 + 0.5 * float(torch.rand(1, generator=rng)))))
    start = int(torch.randint(frames - length + 1, (1,), generator=rng))
    return torch.arange(start, start + length)


def _some_of(effectors: tuple[str, ...], rng: torch.Generator) -> tuple[str, ...]:
    """At least one of them, every subset as likely."""
    chosen = int(torch.randint(1, 2 ** len(effectors), (1,), generator=rng))
    return tuple(effector for bit, effector in enumerate(effectors) if chosen >> bit & 1)


# --- what can be asked for -------------------------------------------------------------------------------------------


def _poses(truth: Truth, frames: Int[Tensor, " K"], effectors: tuple[str, ...] | None = None) -> PoseKey:
    return PoseKey(frames=frames, poses=_at(truth.motion, frames), smooth_xz=truth.smooth_xz[frames], effectors=effectors)


def _root(truth: Truth, frames: Int[Tensor, " K"], turned: bool) -> RootPath:
    return RootPath(frames=frames, xz=truth.smooth_xz[frames], heading=_headings(truth.motion, frames) if turned else None)


def _at(motion: Motion, frames: Int[Tensor, " K"]) -> Motion:
    return replace(motion, root_position=motion.root_position[frames], quats=motion.quats[frames], contacts=None)


def _headings(motion: Motion, frames: Int[Tensor, " K"]) -> Float[Tensor, " K"]:
    return heading_of(motion.skeleton, forward_kinematics(_at(motion, frames)).p_world_joint)


def _targets(truth: Truth, frames: Int[Tensor, " K"], effector: str, rng: torch.Generator) -> EffectorTarget:
    """A hand or foot by itself: its place, its turn, or both."""
    what = int(torch.randint(3, (1,), generator=rng))
    poses, joint = forward_kinematics(_at(truth.motion, frames)), truth.motion.skeleton.role(effector)
    return EffectorTarget(
        frames=frames,
        effector=effector,
        position=None if what == 1 else poses.p_world_joint[:, joint],
        quats=None if what == 0 else matrix_to_quat(poses.R_world_joint[:, joint]),
    )


# --- the families ----------------------------------------------------------------------------------------------------


def _keyframes(truth: Truth, rng: torch.Generator) -> list[Constraint]:
    return [_poses(truth, _few(len(truth.motion), rng))]


def _inbetweening(truth: Truth, rng: torch.Generator) -> list[Constraint]:
    """A block of poses at the start, at the end, or at both."""
    frames, where = len(truth.motion), int(torch.randint(3, (1,), generator=rng))
    longest = max(1, min(LONGEST_BLOCK, frames // 3))
    blocks = torch.randint(1, longest + 1, (2,), generator=rng).tolist()
    start = torch.arange(blocks[0]) if where != 1 else torch.arange(0)
    end = torch.arange(frames - blocks[1], frames) if where != 0 else torch.arange(0)
    return [_poses(truth, torch.cat([start, end]))]


def _effectors(*choice: str) -> Family:
    def family(truth: Truth, rng: torch.Generator) -> list[Constraint]:
        return [_poses(truth, _few(len(truth.motion), rng), _some_of(choice, rng))]

    return family


def _effector_targets(truth: Truth, rng: torch.Generator) -> list[Constraint]:
    frames = _few(len(truth.motion), rng)
    return [_targets(truth, frames, effector, rng) for effector in _some_of((*HANDS, *FEET), rng)]


def _waypoints(turned: bool) -> Family:
    return lambda truth, rng: [_root(truth, _few(len(truth.motion), rng), turned)]


def _path(turned: bool) -> Family:
    return lambda truth, rng: [_root(truth, _stretch(len(truth.motion), rng), turned)]


def _foot_plan(truth: Truth, rng: torch.Generator) -> list[Constraint]:
    frames, contacts = _few(len(truth.motion), rng), truth.motion.contacts
    return [] if contacts is None else [FootPlan(frames=frames, contacts=contacts[frames])]


def _mixed(*parts: Family) -> Family:
    """Several families at once; the root comes first, as its claims are the simplest."""
    return lambda truth, rng: [constraint for part in parts for constraint in part(truth, rng)]


FAMILIES: Mapping[str, Family] = {
    "fullbody/random": _keyframes,
    "fullbody/inbetweening": _inbetweening,
    "end-effectors/hands_posrot": _effectors(*HANDS),
    "end-effectors/feet_posrot": _effectors(*FEET),
    "end-effectors/hands_feet_posrot": _effectors(*HANDS, *FEET),
    "end-effectors/targets": _effector_targets,
    "root/waypoint_2dpos": _waypoints(turned=False),
    "root/waypoint_2dposrot": _waypoints(turned=True),
    "root/path_2dpos": _path(turned=False),
    "root/path_2dposrot": _path(turned=True),
    "mixture/root_path_fullbody": _mixed(_path(turned=False), _keyframes),
    "mixture/root_ee_hands_posrot": _mixed(_waypoints(turned=False), _effectors(*HANDS)),
    "mixture/root_ee_hands_posrot_fullbody": _mixed(_waypoints(turned=False), _effectors(*HANDS), _keyframes),
    "mixture/root_ee_hands_feet_posrot_fullbody": _mixed(_path(turned=False), _effectors(*HANDS, *FEET), _keyframes),
    "feet/plan": _foot_plan,
}
