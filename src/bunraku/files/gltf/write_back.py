"""A motion as one more animation in the document that the character came from, and nothing else changed.

The skeleton may hang together differently from the document (feet are moved to their legs), nodes may be scaled, and the node pose
is often not the rest pose. So the way back leads over world poses: from the top of the document's own tree downwards, every joint
node gets the local translation and rotation that bring it to its place below the parent as that parent really is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float

from bunraku.errors import FormatProblem, SkeletonMismatch
from bunraku.files.gltf.append import Appender
from bunraku.files.gltf.armature import NO_NODE
from bunraku.files.gltf.document import GltfDocument, Json
from bunraku.files.gltf.nodes import MIRROR, Array, matrix_to_xyzw, node_parents, node_trs, rotation_of, top_down, trs_matrix, world_matrices
from bunraku.files.metadata import KEY, provenance_to_json
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import quat_continuous, quat_normalize

_STILL = 1e-6  # [rad], and in sizes of the body: a node that moves less has no channel
_SHEAR_STEPS = 40
_PATHS = ("translation", "rotation", "scale")


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeMotion:
    """Local translation and rotation (x y z w) of one node, frame by frame."""

    translation: Float[np.ndarray, "F 3"]
    rotation: Float[np.ndarray, "F 4"]


def with_animation(document: GltfDocument, nodes: Sequence[int], skeleton: Skeleton, motion: Motion, clip_name: str | None) -> GltfDocument:
    """The document with `motion` as its last animation. `nodes` are the nodes behind the skeleton's joints."""
    if motion.skeleton.joints != skeleton.joints or motion.skeleton.parents != skeleton.parents:
        raise SkeletonMismatch(
            f"motion has {len(motion.skeleton)} joints of '{motion.skeleton.name}', character '{skeleton.name}' has {len(skeleton)}. "
            "Use retarget(motion, character.skeleton)."
        )
    exact = motion.to(torch.float64)
    poses = forward_kinematics(replace(exact, quats=quat_normalize(exact.quats)))  # float32 quaternions are unit to 1e-7 only
    p, R = poses.p_world_joint.numpy(), poses.R_world_joint.numpy()
    if not (np.isfinite(p).all() and np.isfinite(R).all()):
        raise FormatProblem(f"the motion holds numbers that are not finite, so it cannot be saved in '{document.path.name}'.")
    moved = node_motions(document, {node: joint for joint, node in enumerate(nodes) if node != NO_NODE}, p, R)
    appender = Appender(document)
    animation, notes = _animation(document, appender, moved, motion, float(np.ptp(p[0], axis=0).max()))
    animation["name"] = free_name([entry.get("name", "") for entry in document.list("animations")], clip_name or motion.provenance.prompt or "motion")
    animation["extras"] = {KEY: _metadata(motion, notes)}
    appender.add("animations", animation)
    return appender.document()


def node_motions(document: GltfDocument, joint_of: Mapping[int, int], p: Float[np.ndarray, "F J 3"], R: Float[np.ndarray, "F J 3 3"]) -> dict[int, NodeMotion]:
    """What every joint node must do, in its parent as the document has it, so that joint j is at p[:, j] and turned by R[:, j]."""
    parents, frames = node_parents(document), len(p)
    still = world_matrices(document)[0]
    A_world: dict[int, Array] = {}
    motions = {}
    for node in top_down(parents):
        if node not in joint_of:
            # a node between joints that is none itself stays as it is below its parent
            above = A_world.get(parents[node])
            if above is not None:
                A_world[node] = above @ np.linalg.pinv(still[parents[node]]) @ still[node]
            continue
        joint, scale = joint_of[node], node_trs(document.list("nodes")[node])[2]
        A_parent = A_world.get(parents[node])
        if A_parent is None:
            A_parent = np.broadcast_to(np.eye(4) if parents[node] < 0 else still[parents[node]], (frames, 4, 4))
        inverse = np.linalg.pinv(A_parent[:, :3, :3])
        translation = np.einsum("fab,fb->fa", inverse, p[:, joint] - A_parent[:, :3, 3])
        rotation = _local_rotation(A_parent[:, :3, :3], R[:, joint], scale)
        quats = quat_continuous(torch.from_numpy(matrix_to_xyzw(rotation))).numpy()
        motions[node] = NodeMotion(translation=translation, rotation=quats)
        A_world[node] = A_parent @ trs_matrix(translation, quats, np.broadcast_to(scale, (frames, 3)))
    return motions


def _local_rotation(A_parent: Float[np.ndarray, "F 3 3"], R: Float[np.ndarray, "F 3 3"], scale: Float[np.ndarray, "3"]) -> Float[np.ndarray, "F 3 3"]:
    """The rotation L with `rotation_of(A_parent · L · diag(scale)) = R`; exact at once unless the parent shears.

    A mirror M = diag(−1, 1, 1) goes where `rotation_of` takes it out: behind the parent's rotation, and behind the node's own.
    """
    signs = np.diag(np.where(scale < 0, -1.0, 1.0))
    parent_mirrors = np.linalg.det(A_parent) < 0
    before = np.where(parent_mirrors[:, None, None], MIRROR, np.eye(3))
    behind = np.where((parent_mirrors ^ (np.prod(scale) < 0))[:, None, None], MIRROR, np.eye(3)) @ signs
    L = before @ np.swapaxes(rotation_of(A_parent), -1, -2) @ R @ behind
    for _ in range(_SHEAR_STEPS):
        got = rotation_of(A_parent @ (L * scale))
        if np.abs(got - R).max() < 1e-9:
            break
        L = rotation_of(L @ np.swapaxes(behind, -1, -2) @ np.swapaxes(got, -1, -2) @ R @ behind)
    return L


def free_name(taken: Sequence[str], wanted: str) -> str:
    """`wanted`, or `wanted 2` … if an animation has that name already."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted} {number}"
    return name


def _animation(document: GltfDocument, appender: Appender, moved: Mapping[int, NodeMotion], motion: Motion, size: float) -> tuple[Json, dict[str, str]]:
    """Samplers and channels: one key per frame for what moves, and one key for what only other clips of the file move."""
    moving = _moving_channels(document, moved, size)
    still = _still_channels(document, {(node, path) for node, path, _ in moving})
    if not moving and not still:
        first = next(iter(moved))
        moving = [(first, "rotation", moved[first].rotation)]
    samplers, channels = [], []
    for group, times in ((moving, np.arange(len(motion)) / motion.fps), (still, np.zeros(1))):
        clock = appender.numbers(times[:, None], bounds=True) if group else -1
        for node, path, values in group:
            channels.append({"sampler": len(samplers), "target": {"node": node, "path": path}})
            samplers.append({"input": clock, "interpolation": "LINEAR", "output": appender.numbers(values)})
    return {"channels": channels, "samplers": samplers}, _matrices_to_trs(document.list("nodes"), appender, sorted({node for node, _, _ in moving}))


def _moving_channels(document: GltfDocument, moved: Mapping[int, NodeMotion], size: float) -> list[tuple[int, str, Array]]:
    """Only what leaves the node pose."""
    still, parents = world_matrices(document)[0], node_parents(document)
    channels: list[tuple[int, str, Array]] = []
    for node, values in moved.items():
        translation, rotation, _ = node_trs(document.list("nodes")[node])
        unit = np.linalg.norm(still[parents[node]][:3, :3], 2) if parents[node] >= 0 else 1.0
        if np.abs(values.translation - translation).max() * unit > _STILL * size:
            channels.append((node, "translation", values.translation))
        if (1 - np.abs(values.rotation @ rotation)).max() > _STILL**2 / 8 + 1e-15:
            channels.append((node, "rotation", values.rotation))
    return channels


def _still_channels(document: GltfDocument, moving: set[tuple[int, str]]) -> list[tuple[int, str, Array]]:
    """The node pose of what other clips move: players that change clips leave a node without a channel where the last clip put it."""
    targets = [channel["target"] for animation in document.list("animations") for channel in animation["channels"]]
    others = sorted({(target["node"], target["path"]) for target in targets if "node" in target and target["path"] in _PATHS} - moving)
    return [(node, path, node_trs(document.list("nodes")[node])[_PATHS.index(path)][None]) for node, path in others]


def _matrices_to_trs(nodes: Sequence[Json], appender: Appender, animated: Sequence[int]) -> dict[str, str]:
    """glTF forbids animating a node that gives a matrix: such nodes now give translation, rotation and scale, with the same meaning."""
    changed = [node for node in animated if "matrix" in nodes[node]]
    for node in changed:
        translation, rotation, scale = node_trs(nodes[node])
        entry = {key: value for key, value in nodes[node].items() if key != "matrix"}
        appender.replace("nodes", node, {**entry, "translation": translation.tolist(), "rotation": rotation.tolist(), "scale": scale.tolist()})
    if not changed:
        return {}
    names = ", ".join(nodes[node].get("name", f"node {node}") for node in changed)
    return {"matrix_nodes": f"given as translation, rotation and scale instead of a matrix, which glTF does not let move: {names}"}


def _metadata(motion: Motion, notes: Mapping[str, str]) -> Json:
    meta = {"fps": motion.fps, **provenance_to_json(motion.provenance.noted(**notes))}
    return meta if motion.contacts is None else {**meta, "contacts": motion.contacts.int().tolist()}
