"""A motion bent so that it passes through poses, places and headings at given frames, changing no more around them than it must.

Everything here is a smooth curve of corrections (`spread`); no limb is solved for. Feet slide meanwhile: see `footing`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.hinges import clamp_to_limits, hinge_angles, motion_from_hinges
from bunraku.kinematics.inverse import displace
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.neutral import facing_yaw
from bunraku.kinematics.spread import follow, spread
from bunraku.math.rotations import exp_quat, log_quat, matrix_to_quat, quat_conjugate, quat_continuous, quat_multiply, quat_normalize, slerp, yaw_quat

FADE = 0.3  # [s] of a turn that is put right
FADE_PLACE = 0.5  # [s] of a place: the body's mass does not jump
OUTLIER = 3.0  # a frame this many times further from what its neighbours say than the frames around it are, does not belong there
LEAST_OUTLIER = 0.01  # [m]
LONGEST_JUMP = 4  # [frames] more than so many, close together, are not a jump but a stretch of their own
JITTER = 0.04  # [m] a frame this far from what its neighbours say, where its neighbours are told something too, is noise
CALM = 5.6 * 3  # [frames] over which noise is smoothed: `follow` with a weight of 1000 smooths over a 5.6th of its fade


def through_poses(motion: Motion, poses: Motion, known: Bool[Tensor, " F"]) -> Motion:
    """Through whole poses: `poses` has a frame for every frame of `motion`, of which those in `known` count."""
    turn = log_quat(quat_multiply(quat_conjugate(motion.quats), poses.quats))
    turn = spread(turn.flatten(1), known, FADE * motion.fps).view_as(turn)
    moved = motion.root_position + spread(poses.root_position - motion.root_position, known, FADE_PLACE * motion.fps)
    translations = motion.translations
    if translations is not None or poses.translations is not None:
        offsets = motion.skeleton.offsets.to(motion.quats).expand(len(motion), -1, 3)
        translations, wished = offsets if translations is None else translations, offsets if poses.translations is None else poses.translations
        translations = translations + spread((wished - translations).flatten(1), known, FADE_PLACE * motion.fps).view_as(wished)
    return replace(motion, root_position=moved, quats=quat_multiply(motion.quats, exp_quat(turn)), translations=translations)


def through_places(motion: Motion, joint: int, p_world: Float[Tensor, "F 3"], known: Bool[Tensor, " F"], fixed: Bool[Tensor, " F"]) -> Motion:
    """A joint, with all below it, through places; it is not moved in `fixed` frames."""
    away = (p_world - forward_kinematics(motion).p_world_joint[:, joint]) * (known & ~fixed)[:, None]
    return displace(motion, joint, spread(away, known | fixed, FADE_PLACE * motion.fps))


def through_turns(motion: Motion, joint: int, R_world: Float[Tensor, "F 3 3"], known: Bool[Tensor, " F"], fixed: Bool[Tensor, " F"]) -> Motion:
    """A joint through world turns; it is not turned in `fixed` frames."""
    R = forward_kinematics(motion).R_world_joint[:, joint]
    turn = log_quat(matrix_to_quat(R.transpose(-1, -2) @ R_world)) * (known & ~fixed)[:, None]
    return _turned(motion, joint, exp_quat(spread(turn, known | fixed, FADE * motion.fps)))


def through_headings(motion: Motion, joint: int, yaw: Float[Tensor, " F"], known: Bool[Tensor, " F"], fixed: Bool[Tensor, " F"]) -> Motion:
    """The hips through headings, by turns about the world's up; not turned in `fixed` frames."""
    poses = forward_kinematics(motion)
    away = yaw - facing_yaw(motion.skeleton, poses.p_world_joint)
    away = torch.atan2(torch.sin(away), torch.cos(away)) * (known & ~fixed)
    turn = yaw_quat(spread(away[:, None], known | fixed, FADE_PLACE * motion.fps)[:, 0])
    q_world = matrix_to_quat(poses.R_world_joint[:, joint])
    return _turned(motion, joint, quat_multiply(quat_multiply(quat_conjugate(q_world), turn), q_world))


def without_jumps(motion: Motion, frames: Bool[Tensor, " F"]) -> Motion:
    """Of the given frames, those that jump away from the frames around them are made from these; a model often errs so where it is
    told what to do, and a correction spread over the neighbours would only move the jump along. A few frames in a row jump together."""
    if len(motion) < 6:
        return motion
    p = forward_kinematics(motion).p_world_joint
    gap = _gaps(p, 1)
    crowded, quats, root = frames.clone(), motion.quats, motion.root_position
    for group in _groups(frames):
        if len(group) > LONGEST_JUMP:
            continue
        crowded[group.start : group.stop] = False
        gaps = gap if len(group) == 1 else _gaps(p, len(group))
        if gaps[group.start] > max(OUTLIER * _usual(gaps, frames, group), LEAST_OUTLIER):
            within = slice(group.start, group.stop)
            quats, root = quats.clone(), root.clone()
            quats[within] = quat_normalize(_bridge(quat_continuous(motion.quats.transpose(0, 1)).transpose(0, 1), group))
            root[within] = _bridge(motion.root_position, group)
    motion = replace(motion, quats=quats, root_position=root)
    jitter = frames & (gap > JITTER)
    return _calmed(motion, jitter.double()) if bool((jitter & crowded).any()) else motion


def _groups(frames: Bool[Tensor, " F"]) -> list[range]:
    """The given frames in stretches: what lies two frames apart or less belongs together."""
    groups: list[range] = []
    for frame in frames.nonzero()[:, 0].tolist():
        joins = bool(groups) and frame - groups[-1].stop < 2
        groups[-1:] = [range(groups[-1].start, frame + 1)] if joins else [*groups[-1:], range(frame, frame + 1)]
    return groups


def _usual(gaps: Float[Tensor, " N"], frames: Bool[Tensor, " F"], group: range) -> float:
    """The gap of stretches as long as a group, and near it, that no given frame can have disturbed."""
    apart = F.max_pool1d(frames.float()[None], 2 * 2 + len(group), stride=1, padding=2)[0] == 0  # two frames on either side have a say
    calm = apart.nonzero()[:, 0]
    nearest = calm[(calm - group.start).abs().argsort()[:10]]
    return float(gaps[nearest].median()) if len(nearest) else float(gaps.median())


def _calmed(motion: Motion, jitter: Float[Tensor, " F"]) -> Motion:
    """Stretches where frame after frame jumps further than any body moves, made smooth."""
    blend = (3 * follow(jitter[:, None], torch.ones_like(jitter), 6.0)).clamp(0, 1)  # all of it where every third frame jumps
    calm = torch.full_like(jitter, 1e3)
    quats = quat_continuous(motion.quats.transpose(0, 1)).transpose(0, 1)
    smooth = quat_normalize(follow(quats.flatten(1), calm, CALM).view_as(quats))
    root = motion.root_position
    root = root + (follow(root, calm, CALM) - root) * blend
    return replace(motion, quats=slerp(quats, smooth, blend.expand(-1, quats.shape[1])), root_position=root)


def on_hinges(motion: Motion) -> Motion:
    """For a robot: what its hinges can do of the motion, within their limits; any other motion as it is."""
    hinges = motion.skeleton.hinges
    if hinges is None:
        return motion
    angles = clamp_to_limits(hinges, hinge_angles(motion)[0])
    turned = motion_from_hinges(motion.skeleton, motion.root_position, motion.quats[:, 0], angles, motion.fps)
    return replace(motion, quats=turned.quats)


def _bridge(values: Float[Tensor, "F *rest"], group: range) -> Float[Tensor, "N *rest"]:
    """What the frames around a group say of it: the cubic through two on either side, or what is left of it at the ends of a clip."""
    nodes = [at for at in (group.start - 2, group.start - 1, group.stop, group.stop + 1) if 0 <= at < len(values)]
    weights = [[math.prod((f - other) / (node - other) for other in nodes if other != node) for node in nodes] for f in group]
    return torch.tensordot(values.new_tensor(weights), values[nodes], dims=1)


def _gaps(p: Float[Tensor, "F J 3"], frames: int) -> Float[Tensor, " N"]:
    """How far, at most, so many frames from each one on are from what the frames around them say [m]."""
    groups = [range(start, start + frames) for start in range(len(p) - frames + 1)]
    return torch.stack([(p[group.start : group.stop] - _bridge(p, group)).norm(dim=-1).max() for group in groups])


def _turned(motion: Motion, joint: int, turn: Float[Tensor, "F 4"]) -> Motion:
    quats = motion.quats.clone()
    quats[:, joint] = quat_multiply(quats[:, joint], turn)
    return replace(motion, quats=quats)
