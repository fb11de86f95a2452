"""A glTF document as a Character: one skeleton over all skins, one mesh in the rest pose, and the document kept to write back into."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bunraku.errors import FormatProblem
from bunraku.files.gltf.armature import build_armature
from bunraku.files.gltf.assemble import Skin, assemble
from bunraku.files.gltf.bind import inverse_bind_matrices, skin_in_world
from bunraku.files.gltf.document import GltfDocument, read_document
from bunraku.files.gltf.nodes import Array, Matrices, world_matrices
from bunraku.files.gltf.surface import followed_joints, read_surfaces
from bunraku.files.metadata import KEY
from bunraku.kinematics import library
from bunraku.kinematics.from_poses import alike
from bunraku.kinematics.skeleton import ROLES, Skeleton
from bunraku.rig.character import Character
from bunraku.rig.rig import rig_for, with_toe_tips


@dataclass(frozen=True, kw_only=True, eq=False)
class GltfSource:
    """What `Character.source` is for a character from glTF: the document, and the node behind each joint of the skeleton."""

    document: GltfDocument
    nodes: tuple[int, ...]


def load_character(path: str | os.PathLike[str]) -> Character:
    """The skinned meshes of a `.glb` or `.gltf` file, everything that hangs rigidly on their joints, and the names of its clips."""
    document = read_document(path)
    nodes = document.list("nodes")
    mesh_nodes = [node for node in shown_nodes(document) if "mesh" in nodes[node]]
    skins = sorted({nodes[node]["skin"] for node in mesh_nodes if "skin" in nodes[node]}) or range(len(document.list("skins")))
    joints = list(dict.fromkeys(joint for skin in skins for joint in document.json["skins"][skin]["joints"]))
    if not joints:
        raise FormatProblem(f"'{document.path}' has no skin, so it is a mesh without a rig; give it one with `bunraku rig`.")
    A_world_node = world_matrices(document)[0]
    bound = {skin: _read_skin(document, skin, mesh_nodes, A_world_node) for skin in skins}
    A_bind: dict[int, Array] = {}
    for skin in bound.values():
        for joint, A in skin.inverse_bind.items():
            A_bind.setdefault(joint, skin.A_world_skin @ np.linalg.inv(A))
    surfaces = [surface for node in mesh_nodes for surface in read_surfaces(document, node)]
    weighted = {joint for surface in surfaces for joint in followed_joints(surface)}
    armature = build_armature(document, joints, A_bind, weighted, A_world_node)
    mesh, weights, notes = assemble(document, surfaces, armature, bound, A_world_node)
    recalled = _recalled(document, min(skins), armature.skeleton)
    skeleton = with_toe_tips(recalled, mesh.vertices, weights) if recalled is armature.skeleton else recalled
    return Character(
        name=document.path.stem,
        mesh=mesh,
        rig=rig_for(skeleton, weights),
        source=GltfSource(document=document, nodes=armature.nodes),
        clips=clip_names(document),
        notes={**armature.notes, **notes},
    )


def clip_names(document: GltfDocument) -> tuple[str, ...]:
    return tuple(animation.get("name") or f"animation_{i}" for i, animation in enumerate(document.list("animations")))


def _recalled(document: GltfDocument, skin: int, skeleton: Skeleton) -> Skeleton:
    """In a file of ours the skin remembers its skeleton: one of the library's, or its name and roles."""
    extras = document.json["skins"][skin].get("extras")
    meta = extras.get(KEY) if isinstance(extras, dict) else None
    if not isinstance(meta, dict) or not isinstance(meta.get("skeleton"), str):
        return skeleton
    name = meta["skeleton"]
    if name in library.skeleton_names():
        known = library.skeleton(name)
        if alike(known, skeleton):
            return known
    roles = meta.get("roles")
    if not isinstance(roles, dict):
        return replace(skeleton, name=name)
    known_roles = {role: skeleton.joints.index(joint) for role, joint in roles.items() if role in ROLES and joint in skeleton.joints}
    renamed = roles and not known_roles  # by another program since; to have no roles at all is a choice
    return replace(skeleton, name=name, roles=skeleton.roles if renamed else known_roles)


def shown_nodes(document: GltfDocument) -> list[int]:
    """The nodes of the default scene; all nodes if the file has no scene or shows no skin in it."""
    nodes, scenes = document.list("nodes"), document.list("scenes")
    shown = list(scenes[document.json.get("scene", 0)].get("nodes", [])) if scenes else []
    for node in shown:
        shown += nodes[node].get("children", [])
    return sorted(set(shown)) if any("skin" in nodes[node] for node in shown) else list(range(len(nodes)))


def _read_skin(document: GltfDocument, skin: int, mesh_nodes: Sequence[int], A_world_node: Matrices) -> Skin:
    inverse_bind = inverse_bind_matrices(document, skin)
    mesh_node = next((node for node in mesh_nodes if document.json["nodes"][node].get("skin") == skin), None)
    A_world_skin = skin_in_world(document, mesh_node, inverse_bind, A_world_node) if inverse_bind else np.eye(4)
    return Skin(inverse_bind=inverse_bind, A_world_skin=A_world_skin)
