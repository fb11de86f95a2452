"""The surfaces of a document: for every mesh node its vertices in the mesh's own space, and which joint nodes they follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import FormatProblem
from bunraku.files.gltf.accessors import denormalised, read_accessor, read_numbers, read_whole_numbers, view_bytes
from bunraku.files.gltf.document import GltfDocument, Json, read_uri
from bunraku.files.gltf.nodes import Array
from bunraku.geometry.mesh import Material

_TRIANGLES, _STRIP, _FAN = 4, 5, 6


@dataclass(frozen=True, kw_only=True, eq=False)
class Surface:
    """Vertices that share one set of attributes. `joints` are node numbers, (V K), with `weights` that sum to 1; None = rigid."""

    node: int  # the mesh node
    positions: Array
    normals: Array | None
    uvs: Array | None
    colours: Array | None
    joints: NDArray[np.int64] | None
    weights: Array | None
    faces: NDArray[np.int64]
    face_materials: NDArray[np.int64]  # into the document's materials, −1 = none
    repaired: int = 0  # vertices whose weights were useless


def read_surfaces(document: GltfDocument, node: int) -> list[Surface]:
    """All triangles of a mesh node. Points and lines are passed over."""
    entry = document.json["nodes"][node]
    mesh = document.json["meshes"][entry["mesh"]]
    morphs = entry.get("weights", mesh.get("weights", []))
    return [_read_group(document, node, [mesh["primitives"][i] for i in group], morphs) for group in primitive_groups(document, entry["mesh"])]


def primitive_groups(document: GltfDocument, mesh: int) -> list[list[int]]:
    """The primitives of a mesh that share their vertices, for each of its surfaces."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, primitive in enumerate(document.json["meshes"][mesh]["primitives"]):
        if primitive.get("mode", _TRIANGLES) not in (_TRIANGLES, _STRIP, _FAN) or "POSITION" not in primitive["attributes"]:
            continue
        _refuse_compressed(document, primitive)
        key = (*sorted(primitive["attributes"].items()), _uv_set(document, primitive), repr(primitive.get("targets")))
        groups.setdefault(key, []).append(number)
    return list(groups.values())


def followed_joints(surface: Surface) -> list[int]:
    """The joint nodes that have any weight in the surface."""
    if surface.joints is None or surface.weights is None:
        return []
    return np.unique(surface.joints[surface.weights > 0]).tolist()


def _read_group(document: GltfDocument, node: int, primitives: list[Json], morphs: list[float]) -> Surface:
    first = primitives[0]
    positions = _attribute(document, first, "POSITION", 3, None)
    count = len(positions)
    normals = _attribute(document, first, "NORMAL", 3, count)
    for weight, target in zip(morphs, first.get("targets", []), strict=False):
        if weight and "POSITION" in target:
            positions = positions + weight * _target(document, target["POSITION"], count)
    faces = [_faces(document, primitive, count) for primitive in primitives]
    skin = document.json["nodes"][node].get("skin")
    joints, weights, repaired = (None, None, 0) if skin is None else _influences(document, first, document.json["skins"][skin]["joints"], count)
    colours = None
    if "COLOR_0" in first["attributes"]:
        width = 4 if document.json["accessors"][first["attributes"]["COLOR_0"]]["type"] == "VEC4" else 3
        colours = _attribute(document, first, "COLOR_0", width, count)[:, :3]
    return Surface(
        node=node,
        positions=positions,
        normals=normals,
        uvs=_attribute(document, first, f"TEXCOORD_{_uv_set(document, first)}", 2, count),
        colours=colours,
        joints=joints,
        weights=weights,
        faces=np.concatenate(faces),
        face_materials=np.concatenate([np.full(len(part), primitive.get("material", -1)) for part, primitive in zip(faces, primitives, strict=True)]),
        repaired=repaired,
    )


def _attribute(document: GltfDocument, primitive: Json, name: str, width: int, count: int | None) -> Any:
    index = primitive["attributes"].get(name)
    if index is None:
        return None
    values = read_numbers(document, index, width)
    if count is not None and len(values) != count:
        raise FormatProblem(f"'{document.path}': a mesh has {count} positions but {len(values)} values of {name}.")
    return values


def _target(document: GltfDocument, index: int, count: int) -> Array:
    values = read_numbers(document, index, 3)
    if len(values) != count:
        raise FormatProblem(f"'{document.path}': a morph target moves {len(values)} vertices of a mesh that has {count}.")
    return values


def _uv_set(document: GltfDocument, primitive: Json) -> int:
    material = document.list("materials")[primitive["material"]] if "material" in primitive else {}
    return material.get("pbrMetallicRoughness", {}).get("baseColorTexture", {}).get("texCoord", 0)


def _faces(document: GltfDocument, primitive: Json, count: int) -> NDArray[np.int64]:
    order = read_whole_numbers(document, primitive["indices"], 1)[:, 0] if "indices" in primitive else np.arange(count)
    if len(order) and order.max() >= count:
        raise FormatProblem(f"'{document.path}': a face names vertex {order.max()} of a mesh that has {count}.")
    mode = primitive.get("mode", _TRIANGLES)
    if mode == _TRIANGLES:
        return order[: len(order) // 3 * 3].reshape(-1, 3)
    if len(order) < 3:
        return np.zeros((0, 3), np.int64)
    if mode == _FAN:
        return np.stack([np.broadcast_to(order[0], len(order) - 2), order[1:-1], order[2:]], axis=1)
    faces = np.stack([order[:-2], order[1:-1], order[2:]], axis=1)
    faces[1::2] = faces[1::2][:, [1, 0, 2]]  # every second triangle of a strip turns the other way
    return faces


def _influences(document: GltfDocument, primitive: Json, skin_joints: list[int], count: int) -> tuple[NDArray[np.int64] | None, Array | None, int]:
    """Joint nodes and weights (V K); vertices whose weights are NaN or all zero get none, for the caller to place."""
    sets = [name.removeprefix("JOINTS_") for name in sorted(primitive["attributes"]) if name.startswith("JOINTS_")]
    if not sets:
        return None, None, 0
    joints, weights = [], []
    for number in sets:
        if f"WEIGHTS_{number}" not in primitive["attributes"]:
            raise FormatProblem(f"'{document.path}': a skinned mesh has JOINTS_{number} without WEIGHTS_{number}.")
        joints.append(read_whole_numbers(document, primitive["attributes"][f"JOINTS_{number}"], 4))
        weights.append(_weights(document, primitive["attributes"][f"WEIGHTS_{number}"]))
    local, weight = np.concatenate(joints, axis=1), np.concatenate(weights, axis=1)
    if len(local) != count or len(weight) != count:
        raise FormatProblem(f"'{document.path}': a mesh has {count} positions but skin weights for {len(local)}.")
    weight = np.where(np.isfinite(weight) & (weight > 0), weight, 0.0)
    if (local[weight > 0] >= len(skin_joints)).any():
        raise FormatProblem(f"'{document.path}': a vertex follows joint {local.max()} of a skin that has {len(skin_joints)}.")
    total = weight.sum(1, keepdims=True)
    nodes = np.array(skin_joints, np.int64)[np.minimum(local, len(skin_joints) - 1)]
    return nodes, weight / np.where(total > 0, total, 1), int((total == 0).sum())


def _weights(document: GltfDocument, index: int) -> Array:
    values = read_accessor(document, index, 4)  # NaN is allowed here: exporters write it for vertices that follow nothing
    return values.astype(np.float64) if values.dtype.kind == "f" else denormalised(values)


def _refuse_compressed(document: GltfDocument, primitive: Json) -> None:
    extensions, positions = primitive.get("extensions"), document.json["accessors"][primitive["attributes"]["POSITION"]]
    if isinstance(extensions, dict) and "KHR_draco_mesh_compression" in extensions and "bufferView" not in positions:
        raise FormatProblem(f"'{document.path}' is compressed with Draco, which is not read; export it again without compression.")


# --- materials ------------------------------------------------------------------------------------------------------


def read_materials(document: GltfDocument) -> tuple[Material, ...]:
    """The document's materials and, last, the plain white one of faces that name none."""
    return (*(_read_material(document, i, entry) for i, entry in enumerate(document.list("materials"))), Material(name="plain"))


def _read_material(document: GltfDocument, index: int, entry: Json) -> Material:
    surface = entry.get("pbrMetallicRoughness", {})
    texture = surface.get("baseColorTexture", {}).get("index")
    image = None if texture is None else document.list("textures")[texture].get("source")
    return Material(
        name=entry.get("name") or f"material_{index}",
        base_color=tuple(map(float, surface.get("baseColorFactor", (1, 1, 1, 1)))),  # type: ignore[arg-type]
        image=None if image is None else _image_bytes(document, document.list("images")[image]),
        double_sided=bool(entry.get("doubleSided", False)),
    )


def _image_bytes(document: GltfDocument, image: Json) -> bytes | None:
    if "bufferView" in image:
        return bytes(view_bytes(document, image["bufferView"]))
    return read_uri(image["uri"], document.path) if "uri" in image else None
