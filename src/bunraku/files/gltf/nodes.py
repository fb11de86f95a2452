"""The tree of nodes: local transforms as the file gives them, and where every node is in the world. float64 throughout.

`A_world_node` is affine, not rigid: armatures scaled a hundredfold and turned by −90° are common, and bones may be scaled too.
`rotation_of` takes the turn out of such a matrix, `p` = its last column is where the node is.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray

from bunraku.files.axes import wxyz_from_xyzw, xyzw_from_wxyz
from bunraku.files.gltf.document import GltfDocument, Json
from bunraku.math.rotations import matrix_to_quat, quat_to_matrix

Array = NDArray[np.float64]
Matrices = Float[np.ndarray, "N 4 4"]
MIRROR = np.diag([-1.0, 1.0, 1.0])  # taken out of a mirroring matrix before its rotation is read


def node_parents(document: GltfDocument) -> list[int]:
    """Parent of every node, −1 at the top."""
    parents = [-1] * len(document.list("nodes"))
    for i, node in enumerate(document.list("nodes")):
        for child in node.get("children", []):
            parents[child] = i
    return parents


def top_down(parents: list[int]) -> list[int]:
    """All nodes, every parent before its children, otherwise in the file's order."""
    children: list[list[int]] = [[] for _ in parents]
    for node, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(node)
    order, waiting = [], [node for node, parent in enumerate(parents) if parent < 0][::-1]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += children[node][::-1]
    return order


def node_trs(node: Json) -> tuple[Array, Array, Array]:
    """Translation, quaternion (x y z w, unit) and scale of a node, also of one that gives a matrix."""
    if "matrix" in node:
        return decompose(np.array(node["matrix"], np.float64).reshape(4, 4).T)
    quat = np.array(node.get("rotation", (0, 0, 0, 1)), np.float64)
    length = np.linalg.norm(quat)
    quat = quat / length if length > 1e-12 else np.array([0.0, 0.0, 0.0, 1.0])
    return np.array(node.get("translation", (0, 0, 0)), np.float64), quat, np.array(node.get("scale", (1, 1, 1)), np.float64)


def decompose(A: Float[np.ndarray, "4 4"]) -> tuple[Array, Array, Array]:
    """Translation, quaternion (x y z w) and scale of an affine matrix; shear, which glTF forbids in nodes, is dropped."""
    R = rotation_of(A[:3, :3])
    return A[:3, 3].copy(), matrix_to_xyzw(R), np.diag(R.T @ A[:3, :3]).copy()


def trs_matrix(
    translation: Float[np.ndarray, "*batch 3"], xyzw: Float[np.ndarray, "*batch 4"], scale: Float[np.ndarray, "*batch 3"]
) -> Float[np.ndarray, "*batch 4 4"]:
    A = np.zeros((*translation.shape[:-1], 4, 4))
    A[..., :3, :3] = xyzw_to_matrix(xyzw) * scale[..., None, :]
    A[..., :3, 3] = translation
    A[..., 3, 3] = 1
    return A


def node_matrix(node: Json) -> Float[np.ndarray, "4 4"]:
    if "matrix" in node:
        return np.array(node["matrix"], np.float64).reshape(4, 4).T
    return trs_matrix(*node_trs(node))


def world_matrices(document: GltfDocument, moving: Mapping[int, Float[np.ndarray, "F 4 4"]] | None = None, frames: int = 1) -> Float[np.ndarray, "F N 4 4"]:
    """`A_world_node` of every node in every frame; `moving` replaces the local matrices of some nodes."""
    moving = moving or {}
    nodes, parents = document.list("nodes"), node_parents(document)
    world = np.zeros((frames, len(nodes), 4, 4))
    for node in top_down(parents):
        local = moving[node] if node in moving else node_matrix(nodes[node])
        world[:, node] = local if parents[node] < 0 else world[:, parents[node]] @ local
    return world


# --- turns ----------------------------------------------------------------------------------------------------------


@np.errstate(over="ignore", invalid="ignore")  # what numbers near 1e300 make of themselves is refused as not finite, in words
def rotation_of(M: Float[np.ndarray, "*batch 3 3"]) -> Float[np.ndarray, "*batch 3 3"]:
    """The rotation in M = R · stretch (polar decomposition). Where M mirrors, R · diag(−1, 1, 1) is its orthogonal part.

    A mirror has no nearest rotation that stays continuous in time, so one fixed axis is chosen for it, here and in write-back.
    """
    M = np.where((np.linalg.det(M) < 0)[..., None, None], M @ MIRROR, M)
    lengths = np.linalg.norm(M, axis=-2, keepdims=True)
    R = M / np.where(lengths > 0, lengths, 1)
    sheared = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max((-1, -2)) > 1e-9
    if sheared.any():  # columns that are at right angles need no singular values, and most are
        U, _, Vh = np.linalg.svd(M[sheared])
        U[..., :, 2] *= np.where(np.linalg.det(U @ Vh) < 0, -1.0, 1.0)[..., None]  # only a singular matrix is still a mirror here
        R[sheared] = U @ Vh
    return R


def xyzw_to_matrix(xyzw: Float[np.ndarray, "*batch 4"]) -> Float[np.ndarray, "*batch 3 3"]:
    return quat_to_matrix(wxyz_from_xyzw(torch.from_numpy(np.ascontiguousarray(xyzw)))).numpy()


def matrix_to_xyzw(R: Float[np.ndarray, "*batch 3 3"]) -> Float[np.ndarray, "*batch 4"]:
    return xyzw_from_wxyz(matrix_to_quat(torch.from_numpy(R))).numpy()
