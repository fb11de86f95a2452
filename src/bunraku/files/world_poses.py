"""A motion from what a foreign library computed: where every joint is in the world, frame by frame and at rest (USD, FBX)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float

from bunraku.errors import FormatProblem
from bunraku.files.gltf.nodes import rotation_of
from bunraku.kinematics.forward import WorldPoses, local_rotations, local_translations
from bunraku.kinematics.motion import Motion, Provenance
from bunraku.kinematics.roles import infer_roles
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import matrix_to_quat, quat_continuous, quat_distance

_STILL = 1e-5  # of the longest offset: bones that change less do not stretch
_SAME_BONE, _SAME_TURN = 1e-4, 1e-3  # [m], [rad]


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
    poses, skeleton = _poses(track.A_world_joint), _skeleton(track)
    if known is not None and _alike(known, skeleton):
        skeleton = known
    translations = local_translations(skeleton, poses)
    stretch = (translations - skeleton.offsets)[:, 1:].abs()
    moves = bool((stretch > _STILL * max(float(skeleton.offsets.abs().max()), 1e-3)).any())
    quats = matrix_to_quat(local_rotations(skeleton, poses.R_world_joint))
    return Motion(
        skeleton=skeleton,
        fps=track.fps,
        root_position=poses.p_world_joint[:, 0],
        quats=quat_continuous(quats.transpose(0, 1)).transpose(0, 1).contiguous(),
        translations=translations if moves else None,
        provenance=provenance,
    )


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
    R = rotation_of(A_world_joint[..., :3, :3])
    return WorldPoses(p_world_joint=torch.from_numpy(A_world_joint[..., :3, 3].copy()).float(), R_world_joint=torch.from_numpy(R).float())


def _skeleton(track: JointTrack) -> Skeleton:
    rest = _poses(track.A_world_rest)
    bare = Skeleton(name=track.name, joints=track.joints, parents=track.parents, offsets=torch.zeros(len(track.joints), 3))
    skeleton = replace(bare, offsets=local_translations(bare, rest), rest_quats=matrix_to_quat(local_rotations(bare, rest.R_world_joint)))
    return replace(skeleton, roles=infer_roles(skeleton))


def _alike(a: Skeleton, b: Skeleton) -> bool:
    if a.joints != b.joints or a.parents != b.parents:
        return False
    return float((a.offsets - b.offsets).abs().max()) < _SAME_BONE and float(quat_distance(a.rest_quats, b.rest_quats).max()) < _SAME_TURN
