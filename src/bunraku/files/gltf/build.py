"""A plain character GLB from a mesh and a rig alone: one node per joint, one skin, one mesh with a primitive per material."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float

from bunraku.files.axes import xyzw_from_wxyz
from bunraku.files.gltf.append import ARRAY_BUFFER, ELEMENT_ARRAY_BUFFER, Appender
from bunraku.files.gltf.document import GltfDocument, Json
from bunraku.files.metadata import KEY
from bunraku.geometry.mesh import Material, Mesh
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rigid import rigid_inverse
from bunraku.rig.character import Character
from bunraku.rig.rig import Rig

INFLUENCES = 4  # what every renderer reads


def build_document(character: Character, influences: int = INFLUENCES) -> tuple[GltfDocument, tuple[int, ...]]:
    """A new document, and the node behind each joint. A vertex keeps its strongest joints, 4 or 8."""
    empty: Json = {"asset": {"version": "2.0", "generator": "Bunraku"}, "scene": 0, "buffers": [{"byteLength": 0}]}
    appender = Appender(GltfDocument(json=empty, buffers=(b"",), path=Path(f"{character.name}.glb")))
    nodes = add_joints(appender, character.skeleton, 0)
    tops = [0]
    add_skin(appender, nodes, character.skeleton, rigid_inverse(character.rig.T_world_joint_rest.double()).numpy())
    if len(character.mesh.faces):
        appender.add("meshes", {"name": character.name, "primitives": _primitives(appender, character.mesh, character.rig, influences)})
        tops.insert(0, appender.add("nodes", {"name": character.name, "mesh": 0, "skin": 0}))
    appender.add("scenes", {"nodes": tops})
    return appender.document(), nodes


def add_joints(appender: Appender, skeleton: Skeleton, first: int) -> tuple[int, ...]:
    """Nodes for all joints and, behind them, for the tips; `first` is how many nodes there were. The node of each joint."""
    nodes = tuple(range(first, first + len(skeleton)))
    extra = first + len(nodes)
    for joint, node in enumerate(nodes):
        children = [nodes[child] for child in skeleton.children[joint]]
        if joint in skeleton.tips:
            children.append(extra)
            extra += 1
        quat = xyzw_from_wxyz(skeleton.rest_quats[joint].double()).tolist()
        entry: Json = {"name": skeleton.joints[joint], "translation": skeleton.offsets[joint].tolist(), "rotation": quat}
        assert appender.add("nodes", {**entry, "children": children} if children else entry) == node
    for joint in sorted(skeleton.tips):
        appender.add("nodes", {"name": f"{skeleton.joints[joint]}_end", "translation": list(skeleton.tips[joint])})
    return nodes


def add_skin(appender: Appender, nodes: tuple[int, ...], skeleton: Skeleton, A_joint_skin: Float[np.ndarray, "J 4 4"]) -> int:
    """The skin also remembers the skeleton's name and roles."""
    meta = {"skeleton": skeleton.name, "roles": {role: skeleton.joints[joint] for role, joint in skeleton.roles.items()}}
    columns = appender.numbers(np.swapaxes(A_joint_skin, 1, 2).reshape(-1, 16))
    return appender.add("skins", {"joints": list(nodes), "skeleton": nodes[0], "inverseBindMatrices": columns, "extras": {KEY: meta}})


def _primitives(appender: Appender, mesh: Mesh, rig: Rig, influences: int) -> list[Json]:
    """All primitives share the vertices; each has the faces of one material."""
    attributes = {"POSITION": appender.numbers(mesh.vertices.numpy(), ARRAY_BUFFER, bounds=True)}
    if mesh.normals is not None:
        attributes["NORMAL"] = appender.numbers(torch.nn.functional.normalize(mesh.normals, dim=-1).numpy(), ARRAY_BUFFER)
    if mesh.uvs is not None:
        attributes["TEXCOORD_0"] = appender.numbers(mesh.uvs.numpy(), ARRAY_BUFFER)
    if mesh.colours is not None:
        attributes["COLOR_0"] = appender.numbers(mesh.colours.clamp(0, 1).numpy(), ARRAY_BUFFER)
    attributes |= add_weights(appender, rig.weights, influences)
    materials = [_add_material(appender, material) for material in mesh.materials]
    owner = torch.zeros(len(mesh.faces), dtype=torch.long) if mesh.face_materials is None else mesh.face_materials
    kind = np.uint16 if len(mesh.vertices) < 65535 else np.uint32
    primitives = []
    for number in owner.unique().tolist():
        indices = mesh.faces[owner == number].flatten().numpy().astype(kind)[:, None]
        primitive: Json = {"attributes": attributes, "indices": appender.numbers(indices, ELEMENT_ARRAY_BUFFER)}
        primitives.append({**primitive, "material": materials[number]} if materials else primitive)
    return primitives


def add_weights(appender: Appender, weights: torch.Tensor, influences: int) -> dict[str, int]:
    """JOINTS_0 and WEIGHTS_0, and further ones where more than 4 influences are asked for and there."""
    joints, values = strongest(weights, influences)
    attributes = {}
    for number in range(joints.shape[1] // 4):
        if number and not values[:, 4 * number :].any():
            break
        part = slice(4 * number, 4 * number + 4)
        attributes[f"JOINTS_{number}"] = appender.numbers(joints[:, part], ARRAY_BUFFER)
        attributes[f"WEIGHTS_{number}"] = appender.numbers(values[:, part], ARRAY_BUFFER)
    return attributes


def strongest(weights: torch.Tensor, influences: int = INFLUENCES) -> tuple[np.ndarray, np.ndarray]:
    """The largest weights of every vertex, summing to 1 again, and their joints, in columns of a multiple of 4."""
    top, joints = weights.double().topk(min(influences, weights.shape[1]), dim=1)
    padding = (0, -top.shape[1] % 4)
    top = torch.nn.functional.pad(top / top.sum(1, keepdim=True), padding).numpy()
    joints = torch.nn.functional.pad(joints, padding).numpy()
    kind = np.uint8 if weights.shape[1] <= 256 else np.uint16
    return np.where(top > 0, joints, 0).astype(kind), top.astype(np.float32)


def _add_material(appender: Appender, material: Material) -> int:
    surface: Json = {"baseColorFactor": list(material.base_color), "metallicFactor": 0.0, "roughnessFactor": 0.8}
    if material.image is not None:
        mime = "image/png" if material.image.startswith(b"\x89PNG") else "image/jpeg"
        image = appender.add("images", {"bufferView": appender.view(material.image), "mimeType": mime})
        surface["baseColorTexture"] = {"index": appender.add("textures", {"source": image})}
    entry: Json = {"name": material.name, "pbrMetallicRoughness": surface}
    return appender.add("materials", {**entry, "doubleSided": True} if material.double_sided else entry)
