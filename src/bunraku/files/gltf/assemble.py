"""One mesh at rest, and one row of weights per vertex, out of all the surfaces of a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.spatial import KDTree
from torch import Tensor

from bunraku.files.gltf.armature import Armature
from bunraku.files.gltf.document import GltfDocument
from bunraku.files.gltf.nodes import Array, Matrices, node_parents
from bunraku.files.gltf.surface import Surface, read_materials
from bunraku.geometry.mesh import Mesh

_ONE_TRANSFORM = 1e-6  # relative: joints whose rest transforms of the skin differ less share one


@dataclass(frozen=True, kw_only=True, eq=False)
class Skin:
    inverse_bind: Mapping[int, Array]  # joint node → A_joint_skin
    A_world_skin: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class _Placed:
    """A surface at rest: what takes its vertices to the world, and the joints (of the skeleton) with weights that each follows."""

    surface: Surface
    A_world_mesh: Float[np.ndarray, "V 4 4"]
    joints: NDArray[np.int64]  # (V K)
    weights: Array  # (V K)


def assemble(
    document: GltfDocument, surfaces: Sequence[Surface], armature: Armature, skins: Mapping[int, Skin], A_world_node: Matrices
) -> tuple[Mesh, Tensor, dict[str, str]]:
    """The mesh, its weights (V J), and notes on what was left out or repaired."""
    rank = {node: joint for joint, node in enumerate(armature.nodes)}
    placed, left_out = [], []
    for surface in surfaces:
        node = document.json["nodes"][surface.node]
        part = _rigid(document, surface, armature, rank, A_world_node) if surface.joints is None else _skinned(surface, armature, rank, skins[node["skin"]])
        if part is None:
            left_out.append(node.get("name") or f"node {surface.node}")
        else:
            placed.append(part)
    notes = {}
    if left_out:
        notes["left_out"] = "not part of the character, as they hang on no joint: " + ", ".join(left_out)
    repaired = sum(part.surface.repaired for part in placed)
    if repaired:
        notes["weights"] = f"{repaired} vertices have no usable skin weights (NaN or zero) and follow their nearest neighbours"
    return _joined_mesh(document, placed), _dense_weights(placed, len(armature.nodes)), notes


def _skinned(surface: Surface, armature: Armature, rank: Mapping[int, int], skin: Skin) -> _Placed:
    assert surface.joints is not None
    assert surface.weights is not None
    to_rank = np.zeros(max(rank) + 1, np.int64)
    for node, joint in rank.items():
        to_rank[node] = joint
    joints, weights = to_rank[surface.joints], surface.weights
    if surface.repaired:
        joints, weights = _fill_from_neighbours(surface.positions, joints, weights)
    A = np.tile(np.eye(4), (len(rank), 1, 1))
    for node in np.unique(surface.joints).tolist():
        # without any matrix in the skin, glTF takes the identity; a joint that lacks one among others stands where the skin does
        A_joint_skin = skin.inverse_bind.get(node, None if skin.inverse_bind else np.eye(4))
        A[rank[node]] = skin.A_world_skin if A_joint_skin is None else armature.A_world_joint_rest[rank[node]] @ A_joint_skin
    used = A[np.unique(joints)]
    if len(used) and np.abs(used - used[0]).max() < _ONE_TRANSFORM * np.abs(used[0]).max():
        A_world_mesh = np.broadcast_to(used[0], (len(joints), 4, 4))
    else:
        A_world_mesh = np.einsum("vk,vkab->vab", weights, A[joints])
    return _Placed(surface=surface, A_world_mesh=A_world_mesh, joints=joints, weights=weights)


def _fill_from_neighbours(positions: Array, joints: NDArray[np.int64], weights: Array) -> tuple[NDArray[np.int64], Array]:
    lost = weights.sum(1) == 0
    joints, weights = joints.copy(), weights.copy()
    if lost.all():
        weights[:, 0] = 1
        return joints, weights
    nearest = np.flatnonzero(~lost)[KDTree(positions[~lost]).query(positions[lost])[1]]
    joints[lost], weights[lost] = joints[nearest], weights[nearest]
    return joints, weights


def _rigid(document: GltfDocument, surface: Surface, armature: Armature, rank: Mapping[int, int], A_world_node: Matrices) -> _Placed | None:
    """A helmet, a weapon: it follows the first joint above its node. None if there is none."""
    parents, node, count = node_parents(document), surface.node, len(surface.positions)
    while node >= 0 and node not in rank:
        node = parents[node]
    if node < 0:
        return None
    A = armature.A_world_joint_rest[rank[node]] @ np.linalg.pinv(A_world_node[node]) @ A_world_node[surface.node]
    joints = np.full((count, 1), rank[node], np.int64)
    return _Placed(surface=surface, A_world_mesh=np.broadcast_to(A, (count, 4, 4)), joints=joints, weights=np.ones((count, 1)))


def placed_mesh(document: GltfDocument, surfaces: Sequence[Surface], A_world_mesh: Sequence[Array]) -> Mesh:
    """Surfaces without joints, each where its matrix puts it."""
    none = [(np.zeros((len(surface.positions), 0), np.int64), np.zeros((len(surface.positions), 0))) for surface in surfaces]
    parts = [
        _Placed(surface=surface, A_world_mesh=np.broadcast_to(A, (len(joints), 4, 4)), joints=joints, weights=weights)
        for surface, A, (joints, weights) in zip(surfaces, A_world_mesh, none, strict=True)
    ]
    return _joined_mesh(document, parts)


# --- joining --------------------------------------------------------------------------------------------------------


def _joined_mesh(document: GltfDocument, parts: Sequence[_Placed]) -> Mesh:
    materials = read_materials(document)
    starts = np.cumsum([0, *(len(part.joints) for part in parts)])
    faces = [_outward(part) + start for part, start in zip(parts, starts, strict=False)]
    owners = [part.surface.face_materials % len(materials) for part in parts]  # −1, no material, is the last one
    normals = [_normals_at_rest(part.surface.normals, part.A_world_mesh) for part in parts if part.surface.normals is not None]
    return Mesh(
        vertices=_stacked([np.einsum("vab,vb->va", part.A_world_mesh[:, :3, :3], part.surface.positions) + part.A_world_mesh[:, :3, 3] for part in parts], 3),
        faces=torch.from_numpy(np.concatenate([*faces, np.zeros((0, 3), np.int64)])),
        normals=_stacked(normals, 3) if len(normals) == len(parts) else None,
        uvs=_filled([part.surface.uvs for part in parts], starts, 2, 0.0),
        colours=_filled([part.surface.colours for part in parts], starts, 3, 1.0),
        face_materials=torch.from_numpy(np.concatenate([*owners, np.zeros(0, np.int64)])),
        materials=materials,
    )


def _outward(part: _Placed) -> NDArray[np.int64]:
    """Faces turned round where the transform mirrors."""
    A, faces = part.A_world_mesh, part.surface.faces
    return faces[:, ::-1] if len(A) and np.linalg.det(A[0, :3, :3]) < 0 else faces


def _normals_at_rest(normals: Array, A: Float[np.ndarray, "V 4 4"]) -> Array:
    x, y, z = np.moveaxis(A[:, :3, :3], -1, 0)
    cofactors = np.stack([np.cross(y, z), np.cross(z, x), np.cross(x, y)], axis=-1)  # the inverse transposed, times the determinant
    turned = np.einsum("vab,vb->va", cofactors, normals) * np.sign(np.einsum("va,va->v", x, cofactors[..., 0]))[:, None]
    length = np.linalg.norm(turned, axis=1, keepdims=True)
    return np.where(length > 0, turned / np.where(length > 0, length, 1), (0.0, 1.0, 0.0))


def _stacked(parts: Sequence[Array], width: int) -> Tensor:
    return torch.from_numpy(np.concatenate([*parts, np.zeros((0, width))])).float()


def _filled(parts: Sequence[Array | None], starts: NDArray[np.int64], width: int, value: float) -> Tensor | None:
    """One array over all parts, with a neutral value where a part has none; None if no part has any."""
    if all(part is None for part in parts):
        return None
    lengths = np.diff(starts).tolist()
    return _stacked([np.full((length, width), value) if part is None else part for part, length in zip(parts, lengths, strict=True)], width)


def _dense_weights(parts: Sequence[_Placed], joints: int) -> Tensor:
    rows = [np.zeros((0, joints), np.float32)]
    for part in parts:
        block = np.zeros((len(part.joints), joints), np.float32)
        for influence in range(part.joints.shape[1]):
            block[np.arange(len(block)), part.joints[:, influence]] += part.weights[:, influence]  # each row once, so nothing is lost
        rows.append(block)
    return torch.from_numpy(np.concatenate(rows))
