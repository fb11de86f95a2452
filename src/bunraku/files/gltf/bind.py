"""Where the joints stand in the bind pose. The inverse bind matrices say it, but in the space of the skin, not of the world.

`A_joint_skin` (the inverse bind matrix) takes skin coordinates to the joint. The node pose of a file is often some frame of an
animation, so the rest pose is taken from these matrices: `A_world_joint = A_world_skin · A_joint_skin⁻¹`. glTF never says what
`A_world_skin` is (it cancels out in a renderer); exporters use the mesh node, the armature, or the world.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from bunraku.files.gltf.accessors import read_numbers
from bunraku.files.gltf.document import GltfDocument
from bunraku.files.gltf.nodes import Array, Matrices, node_parents

_SCALE_AGREES = 0.01  # joints of bind and node pose must have the same size, whatever their pose
_SMALL = 0.02  # of the skeleton's size: a node pose this close to the bind pose leaves nothing to choose
_CLEARLY_BETTER = 0.25


def inverse_bind_matrices(document: GltfDocument, skin: int) -> dict[int, Array]:
    """Joint node → `A_joint_skin`, for those joints whose matrix says something."""
    entry = document.json["skins"][skin]
    if "inverseBindMatrices" not in entry:
        return {}
    matrices = read_numbers(document, entry["inverseBindMatrices"], 16).reshape(-1, 4, 4).swapaxes(1, 2)
    joints = entry["joints"][: len(matrices)]
    if len(joints) > 1 and np.ptp(matrices[: len(joints)], axis=0).max() == 0:
        return {}  # all alike, mostly identities: the exporter left them out
    return {joint: A for joint, A in zip(joints, matrices, strict=False) if _is_affine(A)}


def _is_affine(A: Float[np.ndarray, "4 4"]) -> bool:
    return abs(np.linalg.det(A[:3, :3])) > 1e-18 and np.allclose(A[3], (0, 0, 0, 1), atol=1e-5)


def skin_in_world(document: GltfDocument, mesh_node: int | None, inverse_bind: dict[int, Array], A_world_node: Matrices) -> Array:
    """`A_world_skin`: the mesh node's transform if the bind pose then resembles the node pose, else the best of the other customs."""
    parents, joints = node_parents(document), list(inverse_bind)
    top = next(joint for joint in joints if parents[joint] not in inverse_bind)
    candidates = [] if mesh_node is None else [A_world_node[mesh_node]]
    candidates.append(A_world_node[parents[top]] if parents[top] >= 0 else np.eye(4))
    candidates += [A_world_node[top] @ inverse_bind[top], np.eye(4)]
    A_node = A_world_node[joints]
    A_skin_joint = np.linalg.inv(np.stack(list(inverse_bind.values())))
    misfits = [_misfit(A @ A_skin_joint, A_node) for A in candidates]
    best = int(np.argmin(misfits))
    keep_first = misfits[0] < _SMALL or misfits[best] > _CLEARLY_BETTER * misfits[0]
    return candidates[0 if keep_first else best]


def _misfit(A_bind: Float[np.ndarray, "J 4 4"], A_node: Float[np.ndarray, "J 4 4"]) -> float:
    """How far the two poses are apart, in sizes of the skeleton; above 100 if already the units differ."""
    size = np.ptp(A_node[:, :3, 3], axis=0).max() or 1.0
    ratio = np.cbrt(np.abs(np.linalg.det(A_bind[:, :3, :3])) / np.maximum(np.abs(np.linalg.det(A_node[:, :3, :3])), 1e-30))
    apart = np.median(np.linalg.norm(A_bind[:, :3, 3] - A_node[:, :3, 3], axis=1)) / size
    return float(apart + (0 if abs(np.median(ratio) - 1) < _SCALE_AGREES else 100))
