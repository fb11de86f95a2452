"""Any recording becomes soma30 at 30 frames per second, standing on y = 0, with contacts and smoothed root.

    recording ─► 30 fps ─► glitches repaired, cut where it jumps ─► for each piece:
                                 feet set on y = 0 ─► retarget ─► contacts by the released rule ─► smoothed root of the whole piece
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.datasets.clip import Caption, ClipInfo
from bunraku.datasets.glitches import repair
from bunraku.datasets.rows import PoseRows
from bunraku.datasets.source import FPS, Recording
from bunraku.errors import BunrakuError
from bunraku.kinematics.contacts import CONTACT_SPEED, body_scale, contact_joints, contacts_from_positions, ground_from_positions, rest_ground
from bunraku.kinematics.edit import resample
from bunraku.kinematics.forward import forward_kinematics, rest_poses
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, is_finite
from bunraku.kinematics.retarget import note_on_ground, retarget
from bunraku.kinematics.skeleton import SIDES, Skeleton
from bunraku.kinematics.smooth_root import smoothed_root
from bunraku.kinematics.soma import reduce_soma
from bunraku.math.curves import velocity

BODY = "soma30"
SAME_BONES = 0.001  # [m] bones that differ by less are rounded, not another body's
FEWEST = 4  # frames: shorter clips have no jerk, and nothing to learn from
NEAR_GROUND = 0.15  # [m, person-sized] floors are miscalibrated by so much; what is higher must be shown to be stood on
STOOD_ON = 0.3  # share of the frames in which a foot must rest on a ground that is further away than that
STANDS = 0.5  # [s] of rest, both feet together, that make a floor
FASTEST = 30.0  # [m/s] no joint of a body moves faster
SHAKIEST = 1500.0  # [m/s³] mean jerk of a clip: throws and kicks reach 1,000, walks 130
MOST_DROPPED = 0.6  # of a recording's frames; where more are bad, the rest is not trusted
HEARD = 0.6  # share of a caption's frames that must be left for it to be still true


@dataclass(frozen=True, kw_only=True, eq=False)
class Converted:
    """The clips of one recording, and what was left out, in sentences."""

    clips: tuple[tuple[ClipInfo, PoseRows], ...]
    left_out: tuple[tuple[str, str], ...]  # (name, why)


def convert(recording: Recording, motion: Motion, source: str) -> Converted:
    """The recording on the common body. What cannot be used is said in `left_out`, never raised."""
    try:
        return _convert(recording, motion, source)
    except BunrakuError as error:
        return Converted(clips=(), left_out=((recording.name, str(error)),))


def _convert(recording: Recording, motion: Motion, source: str) -> Converted:
    problem = _unusable(motion)
    if problem:
        return Converted(clips=(), left_out=((recording.name, problem),))
    motion = resample(motion.to(torch.float32), FPS)
    if len(motion) < FEWEST:
        return Converted(clips=(), left_out=((recording.name, f"it has {len(motion)} frames at {FPS:g} fps; at least {FEWEST} are needed."),))
    mended = repair(motion)
    if mended.dropped > MOST_DROPPED * len(motion):
        why = f"it jumps at {len(mended.breaks)} frames, and {mended.dropped} of its {len(motion)} frames lie in pieces that are too short or flipped."
        return Converted(clips=(), left_out=((recording.name, why),))
    captions = [heard.on_frames(len(motion)) for heard in recording.captions]
    clips, left_out = [], []
    for number, piece in enumerate(mended.pieces, start=1):
        name = recording.name if len(mended.pieces) == 1 else f"{recording.name}#{number}"
        rows, notes = _uniform(mended.motion[piece.start : piece.stop])
        problem = _exploded(rows)
        if problem:
            left_out.append((name, problem))
            continue
        if mended.repaired:
            notes["glitches"] = f"{mended.repaired} of {len(motion)} frames interpolated"
        if len(piece) < len(motion):
            notes["cut"] = f"frames {piece.start} to {piece.stop} of {len(motion)}: the recording jumps there"
        there = [replace(c, start=max(c.start - piece.start, 0), stop=min(c.stop, piece.stop) - piece.start) for c in captions]
        kept = tuple(now for now, was in zip(there, captions, strict=True) if _still_true(now, was))
        info = ClipInfo(
            name=name,
            split=recording.split,
            frames=len(rows),
            captions=kept,
            category=recording.category,
            subject=recording.subject,
            source=source,
            notes=notes,
        )
        clips.append((info, rows))
    left_out += _unheard(recording, captions, [info for info, _ in clips])
    if mended.dropped:
        left_out.append((recording.name, f"{mended.dropped} of its {len(motion)} frames: it jumps there, or a limb is flipped."))
    return Converted(clips=tuple(clips), left_out=tuple(left_out))


def _still_true(now: Caption, was: Caption) -> bool:
    """Is enough left of what a caption describes? Bare labels, drawn seldom, hold for any part."""
    left = now.stop - now.start
    return left >= FEWEST and (was.weight < 1 or left >= HEARD * (was.stop - was.start))


def _unusable(motion: Motion) -> str:
    if not is_finite(motion):
        bad = ~torch.isfinite(motion.quats).flatten(1).all(dim=1) | ~torch.isfinite(motion.root_position).all(dim=1)
        return f"its numbers are not finite, first at frame {int(bad.to(torch.int8).argmax())}."
    if len(motion) < FEWEST:
        return f"it has {len(motion)} frames; at least {FEWEST} are needed."
    return ""


def _exploded(rows: PoseRows) -> str:
    motion = rows.motion(skeleton(BODY), FPS)
    if not is_finite(motion):
        return "on the common body its numbers are not finite."
    p = forward_kinematics(motion).p_world_joint
    fastest = float(velocity(p, FPS).norm(dim=-1).max())
    if fastest > FASTEST:
        return f"a joint moves at {fastest:.0f} m/s; no body does."
    jerk = float(torch.diff(p, n=3, dim=0).norm(dim=-1).mean() * FPS**3) if len(p) > 3 else 0.0
    return f"it shakes: its mean jerk is {jerk:.0f} m/s³, of a walk 130." if jerk > SHAKIEST else ""


def _unheard(recording: Recording, captions: list[Caption], clips: list[ClipInfo]) -> list[tuple[str, str]]:
    """Captions that no piece holds."""
    held = {(c.text, c.source) for info in clips for c in info.captions}
    lost = [c for c in captions if (c.text, c.source) not in held]
    return [(recording.name, f"the caption '{c.text:.60}' (frames {c.start} to {c.stop}): no unbroken piece of motion under it.") for c in lost]


def _uniform(motion: Motion) -> tuple[PoseRows, dict[str, str]]:
    ground = standing_ground(motion)
    notes = note_on_ground(ground)
    lowered = replace(motion, root_position=motion.root_position - torch.tensor([0.0, ground, 0.0]))
    body = skeleton(BODY)
    on_body = _on_body(lowered, body)
    p = forward_kinematics(on_body).p_world_joint
    rows = PoseRows(
        root_position=on_body.root_position,
        smooth_xz=smoothed_root(p[:, 0])[:, [0, 2]],
        quats=on_body.quats,
        contacts=contacts_from_positions(body, p, FPS),
    )
    return rows, notes


def _on_body(motion: Motion, body: Skeleton) -> Motion:
    """SOMA with 77 joints and the usual bones is the common body already, but for its fingers."""
    here = motion.skeleton
    if here.name not in (BODY, "soma77"):
        return retarget(motion, body)
    usual = skeleton(here.name).offsets
    bones = here.offsets[None] if motion.translations is None else motion.translations
    if (bones[:, 1:] - usual[1:]).abs().max() > SAME_BONES:
        return retarget(motion, body)
    motion = replace(motion, skeleton=skeleton(here.name), translations=None)
    return motion if here.name == BODY else reduce_soma(motion)


def standing_ground(motion: Motion) -> float:
    """The height [m] of the ground under this clip; 0 where nothing shows that it is elsewhere."""
    body = motion.skeleton
    p = forward_kinematics(motion).p_world_joint
    height, near = ground_from_positions(body, p, motion.fps), NEAR_GROUND * body_scale(body)
    if abs(height) <= near:
        return height
    height = min(height, _lowest_stand(body, p, motion.fps))  # who steps on to a beam and stays there began on the floor
    return height if abs(height) <= near or _stands_at(body, p, motion.fps, height) else 0.0


def _lowest_stand(body: Skeleton, p: Float[Tensor, "F J 3"], fps: float) -> float:
    """The lowest height [m] at which feet rest for a while; infinite where they never do."""
    joints = [body.roles.get(f"{side}_toe", body.roles.get(f"{side}_foot", -1)) for side in SIDES]
    joints = [joint for joint in joints if joint >= 0]
    heights = p[:, joints, 1] - (rest_poses(body).p_world_joint[joints, 1] - rest_ground(body)).to(p)
    slow = velocity(p[:, joints], fps).norm(dim=-1) < CONTACT_SPEED * body_scale(body)
    rests, needed = heights[slow].sort().values, round(STANDS * fps)
    return float(rests[needed]) if len(rests) > needed else float("inf")


def _stands_at(body: Skeleton, p: Float[Tensor, "F J 3"], fps: float, height: float) -> bool:
    """Does some foot rest near that height in a good share of the frames?"""
    _, joints = contact_joints(body)
    scale = body_scale(body)
    slow = velocity(p[:, joints], fps).norm(dim=-1) < CONTACT_SPEED * scale
    clearance = p[:, joints, 1] - height
    return bool((slow & (clearance < 0.12 * scale) & (clearance > -0.05 * scale)).any(dim=1).float().mean() > STOOD_ON)
