"""A glTF document without a rig as a mesh, and a rig put into that document: everything else in it stays as it is."""

from __future__ import annotations

from torch import Tensor

from bunraku.files.gltf.append import Appender
from bunraku.files.gltf.assemble import placed_mesh
from bunraku.files.gltf.build import add_joints, add_skin, add_weights
from bunraku.files.gltf.document import GltfDocument, Json
from bunraku.files.gltf.nodes import world_matrices
from bunraku.files.gltf.read import GltfSource, shown_nodes
from bunraku.files.gltf.surface import primitive_groups, read_surfaces
from bunraku.geometry.mesh import Mesh
from bunraku.math.rigid import rigid_inverse
from bunraku.rig.rig import Rig


def read_static(document: GltfDocument) -> Mesh:
    """All triangles that the file shows, in the world, as its nodes stand."""
    surfaces = [surface for node in _mesh_nodes(document) for surface in read_surfaces(document, node)]
    A_world_node = world_matrices(document)[0]
    return placed_mesh(document, surfaces, [A_world_node[surface.node] for surface in surfaces])


def has_skin(document: GltfDocument) -> bool:
    return any("skin" in document.list("nodes")[node] for node in _mesh_nodes(document))


def _mesh_nodes(document: GltfDocument) -> list[int]:
    return [node for node in shown_nodes(document) if "mesh" in document.list("nodes")[node]]


def with_rig(document: GltfDocument, rig: Rig, influences: int) -> GltfSource:
    """The document with joints, skins and weights added. Rows of weights belong to the vertices of `read_static`, in their order.

    Renderers ignore where the node of a skinned mesh is, so that the inverse bind matrices say it: each node gets a skin of its own.
    """
    appender = Appender(document)
    joints = add_joints(appender, rig.skeleton, len(document.list("nodes")))
    A_joint_world, A_world_node = rigid_inverse(rig.T_world_joint_rest.double()).numpy(), world_matrices(document)[0]
    users: dict[int, int] = {}
    row = 0
    for node in _mesh_nodes(document):
        mesh = document.list("nodes")[node]["mesh"]
        users[mesh] = users.get(mesh, 0) + 1
        entry, row = _weighted(document, appender, mesh, rig.weights, row, influences)
        if users[mesh] > 1:  # the same mesh once more, elsewhere: it needs weights of its own
            mesh = appender.add("meshes", entry)
        else:
            appender.replace("meshes", mesh, entry)
        skin = add_skin(appender, joints, rig.skeleton, A_joint_world @ A_world_node[node])
        appender.replace("nodes", node, {**document.list("nodes")[node], "mesh": mesh, "skin": skin})
    if document.list("scenes"):
        scene = document.json.get("scene", 0)
        shown = document.list("scenes")[scene]
        appender.replace("scenes", scene, {**shown, "nodes": [*shown.get("nodes", []), joints[0]]})
    return GltfSource(document=appender.document(), nodes=joints)


def _weighted(document: GltfDocument, appender: Appender, mesh: int, weights: Tensor, row: int, influences: int) -> tuple[Json, int]:
    """A mesh whose primitives have weights, and the first row of the next one."""
    entry = document.json["meshes"][mesh]
    primitives = list(entry["primitives"])
    for group in primitive_groups(document, mesh):
        count = document.json["accessors"][primitives[group[0]]["attributes"]["POSITION"]]["count"]
        added = add_weights(appender, weights[row : row + count], influences)
        row += count
        for number in group:
            primitives[number] = {**primitives[number], "attributes": {**primitives[number]["attributes"], **added}}
    return {**entry, "primitives": primitives}, row
