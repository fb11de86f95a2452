"""A plain character GLB from a mesh and a rig alone: one node per joint, one skin, one mesh with a primitive per material."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from bunraku.files.axes import xyzw_from_wxyz
from bunraku.files.gltf.append import ARRAY_BUFFER, ELEMENT_ARRAY_BUFFER, Appender
from bunraku.files.gltf.document import GltfDocument, Json
from bunraku.files.metadata import KEY
from bunraku.geometry.mesh import Material, Mesh
from bunraku.math.rigid import rigid_inverse
from bunraku.rig.character import Character
from bunraku.rig.rig import Rig

_INFLUENCES = 4  # what every renderer reads


def build_document(character: Character) -> tuple[GltfDocument, tuple[int, ...]]:
    """A new document, and the node behind each joint. A vertex keeps its 4 strongest joints."""
    empty: Json = {"asset": {"version": "2.0", "generator": "Bunraku"}, "scene": 0, "buffers": [{"byteLength": 0}]}
    appender = Appender(GltfDocument(json=empty, buffers=(b"",), path=Path(f"{character.name}.glb")))
    skeleton = character.skeleton
    nodes = tuple(range(len(skeleton)))
    extra = len(nodes)
    for joint in nodes:
        children = list(skeleton.children[joint])
        if joint in skeleton.tips:
            children.append(extra)
            extra += 1
        quat = xyzw_from_wxyz(skeleton.rest_quats[joint].double()).tolist()
        node: Json = {"name": skeleton.joints[joint], "translation": skeleton.offsets[joint].tolist(), "rotation": quat}
        appender.add("nodes", {**node, "children": children} if children else node)
    for joint in sorted(skeleton.tips):
        appender.add("nodes", {"name": f"{skeleton.joints[joint]}_end", "translation": list(skeleton.tips[joint])})
    tops = [0]
    inverse_bind = rigid_inverse(character.rig.T_world_joint_rest.double()).transpose(-1, -2).flatten(-2).numpy()
    meta = {"skeleton": skeleton.name, "roles": {role: skeleton.joints[joint] for role, joint in skeleton.roles.items()}}
    appender.add("skins", {"joints": list(nodes), "skeleton": 0, "inverseBindMatrices": appender.numbers(inverse_bind), "extras": {KEY: meta}})
    if len(character.mesh.faces):
        appender.add("meshes", {"name": character.name, "primitives": _primitives(appender, character.mesh, character.rig)})
        tops.insert(0, appender.add("nodes", {"name": character.name, "mesh": 0, "skin": 0}))
    appender.add("scenes", {"nodes": tops})
    return appender.document(), nodes


def _primitives(appender: Appender, mesh: Mesh, rig: Rig) -> list[Json]:
    """All primitives share the vertices; each has the faces of one material."""
    attributes = {"POSITION": appender.numbers(mesh.vertices.numpy(), ARRAY_BUFFER, bounds=True)}
    if mesh.normals is not None:
        attributes["NORMAL"] = appender.numbers(torch.nn.functional.normalize(mesh.normals, dim=-1).numpy(), ARRAY_BUFFER)
    if mesh.uvs is not None:
        attributes["TEXCOORD_0"] = appender.numbers(mesh.uvs.numpy(), ARRAY_BUFFER)
    if mesh.colours is not None:
        attributes["COLOR_0"] = appender.numbers(mesh.colours.clamp(0, 1).numpy(), ARRAY_BUFFER)
    joints, weights = strongest(rig.weights)
    attributes["JOINTS_0"] = appender.numbers(joints, ARRAY_BUFFER)
    attributes["WEIGHTS_0"] = appender.numbers(weights, ARRAY_BUFFER)
    materials = [_add_material(appender, material) for material in mesh.materials]
    owner = torch.zeros(len(mesh.faces), dtype=torch.long) if mesh.face_materials is None else mesh.face_materials
    kind = np.uint16 if len(mesh.vertices) < 65535 else np.uint32
    primitives = []
    for number in owner.unique().tolist():
        indices = mesh.faces[owner == number].flatten().numpy().astype(kind)[:, None]
        primitive: Json = {"attributes": attributes, "indices": appender.numbers(indices, ELEMENT_ARRAY_BUFFER)}
        primitives.append({**primitive, "material": materials[number]} if materials else primitive)
    return primitives


def strongest(weights: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The 4 largest weights of every vertex, summing to 1 again, and their joints."""
    top, joints = weights.double().topk(min(_INFLUENCES, weights.shape[1]), dim=1)
    top = torch.nn.functional.pad(top / top.sum(1, keepdim=True), (0, _INFLUENCES - top.shape[1])).numpy()
    joints = torch.nn.functional.pad(joints, (0, _INFLUENCES - joints.shape[1])).numpy()
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
