"""A motion from what a foreign library computed: where every joint is in the world, frame by frame and at rest (USD, FBX)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float

from bunraku.errors import FormatProblem
from bunraku.files.gltf.nodes import rotation_of
from bunraku.kinematics.forward import WorldPoses
from bunraku.kinematics.from_poses import alike, motion_from_poses, skeleton_from_poses
from bunraku.kinematics.motion import Motion, Provenance
from bunraku.kinematics.roles import infer_roles
from bunraku.kinematics.skeleton import Skeleton


@dataclass(frozen=True, kw_only=True, eq=False)
class JointTrack:
    """The joints of a file, parents first, in our axes and metres. Matrices may scale; the scale ends up in the translations."""

    name: str
    joints: tuple[str, ...]
    parents: tuple[int, ...]
    A_world_joint: Float[np.ndarray, "F J 4 4"]
    A_world_rest: Float[np.ndarray, "J 4 4"]
    fps: float


def motion_of(track: JointTrack, provenance: Provenance, known: Skeleton | None = None) -> Motion:
    """The motion, on the skeleton `known` if that is the one in the file, for it knows its roles and hinges."""
    if not (np.isfinite(track.A_world_joint).all() and np.isfinite(track.A_world_rest).all()):
        raise FormatProblem(f"'{provenance.source}' has joint transforms that are not finite numbers; export it again.")
    if track.parents.count(-1) > 1:
        track = _joined(track)
        provenance = provenance.noted(root="the skeleton has several roots; a joint at the world's origin joins them")
    skeleton = skeleton_from_poses(track.name, track.joints, track.parents, _poses(track.A_world_rest))
    skeleton = known if known is not None and alike(known, skeleton) else replace(skeleton, roles=infer_roles(skeleton))
    return replace(motion_from_poses(skeleton, _poses(track.A_world_joint), track.fps), provenance=provenance)


def _joined(track: JointTrack) -> JointTrack:
    """Several trees as one, below a joint that stands still at the origin."""
    name = "world"
    while name in track.joints:
        name += "_"
    still = np.eye(4)
    return replace(
        track,
        joints=(name, *track.joints),
        parents=(-1, *(parent + 1 for parent in track.parents)),
        A_world_joint=np.concatenate([np.broadcast_to(still, (len(track.A_world_joint), 1, 4, 4)), track.A_world_joint], axis=1),
        A_world_rest=np.concatenate([still[None], track.A_world_rest]),
    )


def _poses(A_world_joint: Float[np.ndarray, "*batch J 4 4"]) -> WorldPoses:
    """float64, as places in the parent are differences of places in the world: a kilometre out, float32 would be off by 0.1 mm."""
    R = rotation_of(A_world_joint[..., :3, :3])
    return WorldPoses(p_world_joint=torch.from_numpy(A_world_joint[..., :3, 3].copy()), R_world_joint=torch.from_numpy(R))
