"""Editing clips: another frame rate, one after the other, left and right swapped, moved on the ground."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue, SkeletonMismatch
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.hinges import hinge_angles, require_hinges
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import CONTACT_ROLES, Skeleton
from bunraku.kinematics.symmetry import NO_PARTNER, mirror_pairs
from bunraku.math.curves import interpolate, interpolate_quats, resample_times
from bunraku.math.rotations import exp_quat, matrix_to_quat, quat_conjugate, quat_multiply, quat_rotate, yaw_quat

# Mirroring is S = diag(−1, 1, 1). As −S is a turn (by π about X), R ↦ S R S is the same as turning by it on both sides.
_HALF_TURN = (1.0, -1.0, -1.0)
MOST_FRAMES = 10_000_000


def resample(motion: Motion, fps: float) -> Motion:
    """The same clip at another frame rate: positions linear, turns spherical, a contact as in the nearest frame.

    The first frame is kept; nothing is invented beyond the last.
    """
    if not (fps > 0 and math.isfinite(fps)):
        raise BadValue(f"a motion cannot be resampled to {fps} frames per second; a positive frame rate is needed.")
    if fps == motion.fps:
        return motion
    if motion.seconds * fps > MOST_FRAMES:
        raise BadValue(f"{motion.seconds:.1f} s at {fps:g} frames per second are more than {MOST_FRAMES:,} frames; choose a lower frame rate.")
    times = resample_times(len(motion), motion.fps, fps)
    nearest = times.round().long()
    return replace(
        motion,
        fps=float(fps),
        root_position=interpolate(motion.root_position, times),
        quats=interpolate_quats(motion.quats, times),
        translations=None if motion.translations is None else interpolate(motion.translations, times),
        contacts=None if motion.contacts is None else motion.contacts[nearest],
    )


def join(motions: Sequence[Motion]) -> Motion:
    """The clips one after the other, as they are: nothing is blended or moved (see `place`). The first clip's provenance is kept."""
    if not motions:
        raise BadValue("there is nothing to join: give at least one motion.")
    first = motions[0]
    for number, motion in enumerate(motions[1:], start=2):
        if motion.fps != first.fps:
            raise SkeletonMismatch(f"clip 1 has {first.fps:g} frames per second and clip {number} has {motion.fps:g}. Use resample(motion, {first.fps:g}).")
        if not _same_body(first.skeleton, motion.skeleton):
            names = f"'{first.skeleton.name}' ({len(first.skeleton)} joints) and clip {number} on '{motion.skeleton.name}' ({len(motion.skeleton)} joints)"
            raise SkeletonMismatch(f"clip 1 is on {names}; only clips of one skeleton can be joined. Use retarget(motion, skeleton) first.")
    provenance = first.provenance
    contacts = [motion.contacts for motion in motions if motion.contacts is not None]
    if contacts and len(contacts) < len(motions):
        provenance = provenance.noted(contacts=f"dropped: only {len(contacts)} of {len(motions)} joined clips had them")
    return replace(
        first,
        root_position=torch.cat([motion.root_position for motion in motions]),
        quats=torch.cat([motion.quats for motion in motions]),
        translations=torch.cat([_translations(motion) for motion in motions]) if any(motion.translations is not None for motion in motions) else None,
        contacts=torch.cat(contacts) if len(contacts) == len(motions) else None,
        provenance=provenance,
    )


def mirror(motion: Motion) -> Motion:
    """Left and right swapped across the plane x = 0; mirrored twice, the motion is itself again.

    Joint j takes over the turn away from rest of its partner j' (`symmetry.mirror_pairs`), seen in the mirror:
    `R_world_j ← S R_world_j' R_rest_j'ᵀ S R_rest_j`, so that neither rest pose nor joint frames need be mirror images. In the
    parent's frame this is `Q_parentᵀ R_j' Q_j` with the constant `Q_j = R_rest_j'ᵀ (−S) R_rest_j`. A joint without a partner keeps
    its turn in its parent's frame.
    """
    skeleton = motion.skeleton
    pairs = torch.tensor(mirror_pairs(skeleton))
    alone = pairs == NO_PARTNER
    partner = torch.where(alone, torch.arange(len(skeleton)), pairs)
    Q = _frame_change(skeleton, partner).to(motion.quats)
    Q_parent = torch.cat([torch.tensor([[0.0, 1.0, 0.0, 0.0]]).to(Q), Q[list(skeleton.parents[1:])]])
    quats = quat_multiply(quat_multiply(quat_conjugate(Q_parent), motion.quats[:, partner]), Q)
    quats = torch.where(alone.to(quats.device)[:, None], motion.quats, quats)
    mirrored = replace(
        motion,
        root_position=motion.root_position * torch.tensor([-1.0, 1.0, 1.0]).to(motion.root_position),
        quats=quats,
        translations=None if motion.translations is None else _mirrored_translations(motion, partner, alone, Q_parent),
        contacts=None if motion.contacts is None else motion.contacts[:, _swapped_contacts()],
    )
    return mirrored if skeleton.hinges is None else _on_hinges(mirrored)


def place(motion: Motion, p: tuple[float, float], yaw: float) -> Motion:
    """The clip turned by `yaw` [rad] about the world's up axis, then moved by `p` = (x, z) [m] on the ground."""
    turn = yaw_quat(torch.tensor(float(yaw), dtype=torch.float64)).to(motion.quats)
    shift = torch.tensor([p[0], 0.0, p[1]]).to(motion.root_position)
    root = quat_multiply(turn, motion.quats[:, :1])
    return replace(motion, root_position=quat_rotate(turn, motion.root_position) + shift, quats=torch.cat([root, motion.quats[:, 1:]], dim=1))


# --- parts ----------------------------------------------------------------------------------------------------------


def _same_body(a: Skeleton, b: Skeleton) -> bool:
    if a is b:
        return True
    if (a.joints, a.parents) != (b.joints, b.parents):
        return False
    return bool(torch.allclose(a.offsets, b.offsets.to(a.offsets), atol=1e-5)) and bool(torch.allclose(a.rest_quats, b.rest_quats.to(a.rest_quats), atol=1e-5))


def _translations(motion: Motion) -> Float[Tensor, "F J 3"]:
    return motion.skeleton.offsets.to(motion.quats).expand(len(motion), -1, -1) if motion.translations is None else motion.translations


def _frame_change(skeleton: Skeleton, partner: Tensor) -> Float[Tensor, "J 4"]:
    """`Q_j` of `mirror`, with signs such that Q_j' Q_j = −1 as quaternions: two mirrorings then give back the very same numbers."""
    R_rest = rest_poses(replace(skeleton, offsets=skeleton.offsets.double(), rest_quats=skeleton.rest_quats.double())).R_world_joint
    Q = matrix_to_quat(R_rest[partner].transpose(-1, -2) @ torch.diag(torch.tensor(_HALF_TURN, dtype=torch.float64)) @ R_rest)
    second = (partner < torch.arange(len(skeleton)))[:, None]
    return torch.where(second, -quat_conjugate(Q[partner]), Q)


def _mirrored_translations(motion: Motion, partner: Tensor, alone: Tensor, Q_parent: Float[Tensor, "J 4"]) -> Float[Tensor, "F J 3"]:
    """What a joint is away from its rest place in its parent, seen in the mirror by its partner."""
    assert motion.translations is not None
    offsets = motion.skeleton.offsets.to(motion.translations)
    away = motion.translations - offsets
    seen = -quat_rotate(quat_conjugate(Q_parent), away[:, partner])
    return offsets + torch.where(alone.to(away.device)[:, None], away, seen)


def _swapped_contacts() -> list[int]:
    other = {"left": "right", "right": "left"}
    sides = [role.split("_") for role in CONTACT_ROLES]
    return [CONTACT_ROLES.index(f"{other[side]}_{part}") for side, part in sides]


def _on_hinges(motion: Motion) -> Motion:
    """The twist of every hinged joint alone: what little a robot's sides differ must not bend its hinges."""
    hinges, joints = require_hinges(motion.skeleton)
    angles, _ = hinge_angles(motion)
    quats = motion.quats.clone()
    quats[:, joints] = quat_multiply(motion.skeleton.rest_quats[joints].to(quats), exp_quat(hinges.axes.to(quats) * angles[..., None]))
    return replace(motion, quats=quats)
