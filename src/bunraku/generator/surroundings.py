"""Motion that is already there: what a new stretch leads on from, what it must lead to, and what is kept of it to the last number."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.generator.features import FeatureLayout, encode
from bunraku.kinematics.contacts import detect_contacts
from bunraku.kinematics.edit import join, resample
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.from_poses import alike
from bunraku.kinematics.heading import heading_of
from bunraku.kinematics.library import skeleton as library_skeleton
from bunraku.kinematics.motion import Motion, is_finite
from bunraku.kinematics.retarget import retarget
from bunraku.kinematics.skeleton import Skeleton
from bunraku.kinematics.soma import expand_soma, reduce_soma


@dataclass(frozen=True, kw_only=True, eq=False)
class Surroundings:
    """The frames of a motion before and after a stretch that is to be drawn, at the model's frame rate."""

    before: Motion | None  # on the model's skeleton
    after: Motion | None
    features_before: Float[Tensor, "P D"] | None
    features_after: Float[Tensor, "Q D"] | None
    kept_before: Motion | None  # on the skeleton that results are on
    kept_after: Motion | None
    start_xz: tuple[float, float]  # [m] where the smoothed root is at the first frame of the stretch
    heading: float  # [rad] there
    notes: dict[str, str]


def surround(layout: FeatureLayout, motion: Motion, frames: range | None) -> Surroundings:
    """`frames` are those that the new stretch takes the place of; None: it goes on after the last."""
    start, stop = (len(motion), len(motion)) if frames is None else (frames.start, frames.stop)
    if frames is not None and (frames.step != 1 or not 0 <= start < stop <= len(motion)):
        raise BadValue(f"the frames {start} to {stop} cannot be drawn anew: this motion has the frames 0 to {len(motion) - 1}.")
    if not is_finite(motion):
        raise BadValue("the motion to go on from holds numbers that are not finite; look at it with `bunraku check`.")
    notes = {}
    if motion.fps != layout.fps:
        notes["frame rate"] = f"the motion that was there is resampled from {motion.fps:g} to {layout.fps:g} frames per second, which the model draws"
        start, stop = (round(frame * layout.fps / motion.fps) for frame in (start, stop))
        motion = resample(motion, layout.fps)
        stop = len(motion) if frames is None else min(max(stop, 1), len(motion))
        start = stop if frames is None else min(start, stop - 1)
    motion = motion.to("cpu", torch.float32)
    body = result_body(layout.skeleton)
    seen = on_body(motion, layout.skeleton)
    kept = motion if alike(motion.skeleton, body) and motion.translations is None else on_result_body(seen)
    if kept is not motion and not (motion.skeleton.name.startswith("soma") and layout.skeleton.name.startswith("soma")):
        notes["skeleton"] = f"the motion that was there is retargeted from '{motion.skeleton.name}' to '{body.name}', which the model draws"
    features = encode(layout, seen)
    if kept.contacts is None:
        kept = replace(kept, contacts=detect_contacts(kept))
    at = min(start, len(motion) - 1)
    p_there = forward_kinematics(seen[at : at + 1]).p_world_joint[0]
    return Surroundings(
        before=seen[:start] if start else None,
        after=seen[stop:] if stop < len(motion) else None,
        features_before=features[:start] if start else None,
        features_after=features[stop:] if stop < len(motion) else None,
        kept_before=kept[:start] if start else None,
        kept_after=kept[stop:] if stop < len(motion) else None,
        start_xz=(float(features[at, 0]), float(features[at, 2])),
        heading=float(heading_of(layout.skeleton, p_there)),
        notes=notes,
    )


def on_body(motion: Motion, body: Skeleton) -> Motion:
    """The motion on the model's skeleton, bones of fixed length."""
    if alike(motion.skeleton, body) and motion.translations is None:
        return replace(motion, skeleton=body)
    if (motion.skeleton.name, body.name) == ("soma77", "soma30") and motion.translations is None:
        return reduce_soma(motion)
    return retarget(motion, body)


def result_body(body: Skeleton) -> Skeleton:
    """What results of a model are on: its skeleton, or for SOMA the whole of it, as in the release."""
    return library_skeleton("soma77") if body.name == "soma30" else body


def on_result_body(motion: Motion) -> Motion:
    return expand_soma(motion) if motion.skeleton.name == "soma30" else motion


def enclose(motion: Motion, around: Surroundings | None) -> Motion:
    """The new stretch (on the results' skeleton) between what was kept."""
    parts = [] if around is None else [around.kept_before, around.kept_after]
    if not any(part is not None for part in parts):
        return motion
    whole = join([part for part in (parts[0], motion, parts[1]) if part is not None])
    return replace(whole, provenance=motion.provenance)
