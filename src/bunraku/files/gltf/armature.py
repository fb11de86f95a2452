"""From nodes to a skeleton: which nodes are joints, how they hang together, and where they stand at rest."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float

from bunraku.files.gltf.document import GltfDocument
from bunraku.files.gltf.nodes import Array, Matrices, node_parents, node_trs, rotation_of, top_down
from bunraku.files.gltf.repair import find_detached
from bunraku.kinematics.forward import WorldPoses
from bunraku.kinematics.from_poses import skeleton_from_poses
from bunraku.kinematics.roles import infer_roles
from bunraku.kinematics.skeleton import Skeleton

NO_NODE = -1  # the joint invented where skeletons have no common node above them: the world's origin


@dataclass(frozen=True, kw_only=True, eq=False)
class Armature:
    """A skeleton and the node behind each joint. `A_world_joint_rest` is its rest pose with the sizes that the nodes have."""

    skeleton: Skeleton
    nodes: tuple[int, ...]
    A_world_joint_rest: Float[np.ndarray, "J 4 4"]
    notes: Mapping[str, str]


def build_armature(document: GltfDocument, joints: Sequence[int], A_bind: Mapping[int, Array], weighted: set[int], A_world_node: Matrices) -> Armature:
    """The skeleton over all `joints` (nodes, in the order of the skins). `A_bind` is the bind pose of those that have one, `weighted` who moves skin."""
    tree_parents = node_parents(document)
    nodes, parents = _one_tree(set(joints), tree_parents)
    names = _unique_names(["world" if node == NO_NODE else document.list("nodes")[node].get("name") or f"joint_{node}" for node in nodes])
    A_rest = _rest_matrices(nodes, parents, A_bind, A_world_node)
    moves = find_detached(names, parents, A_rest[:, :3, 3], np.array([node in weighted for node in nodes]))
    notes = {}
    if moves:
        notes["reparented"] = ", ".join(f"{names[joint]} below {names[bone]}" for joint, bone in moves.items())
    keep, parents = _prune_root(nodes, [moves.get(joint, parent) for joint, parent in enumerate(parents)], set(joints))
    order = _in_file_order(nodes, parents, keep, joints)
    rank = {joint: i for i, joint in enumerate(order)}
    chosen = tuple(nodes[joint] for joint in order)
    if NO_NODE in chosen:
        notes["root"] = "the skeletons in this file have no common node above them; the joint 'world' at the origin joins them"
    skeleton = _skeleton(document, [names[joint] for joint in order], [rank.get(parents[joint], -1) for joint in order], A_rest[order], chosen)
    return Armature(skeleton=skeleton, nodes=chosen, A_world_joint_rest=A_rest[order], notes=notes)


def _one_tree(joints: set[int], tree_parents: Sequence[int]) -> tuple[list[int], list[int]]:
    """The joints with the nodes between them and up to the first node above all, and each one's parent in that list."""
    paths = []
    for joint in joints:
        path = [joint]
        while tree_parents[path[-1]] >= 0:
            path.append(tree_parents[path[-1]])
        paths.append(path[::-1])
    common = 0
    while all(len(path) > common and path[common] == paths[0][common] for path in paths):
        common += 1
    members = {node for path in paths for node in path[max(common - 1, 0) :]}
    nodes = [node for node in top_down(list(tree_parents)) if node in members]
    if common == 0:
        nodes = [NO_NODE, *nodes]
    rank = {node: i for i, node in enumerate(nodes)}
    top = 0 if common == 0 else -1
    return nodes, [-1 if node == NO_NODE else rank.get(tree_parents[node], top) for node in nodes]


def _prune_root(nodes: Sequence[int], parents: list[int], joints: set[int]) -> tuple[set[int], list[int]]:
    """Without nodes at the top that are no joints and, now that feet hang on their legs, hold one child only."""
    keep, parents = set(range(len(nodes))), list(parents)
    while True:
        top = next(joint for joint in keep if parents[joint] < 0)
        below = [joint for joint in keep if parents[joint] == top]
        if nodes[top] in joints or len(below) != 1:
            return keep, parents
        keep.discard(top)
        parents[below[0]] = -1


def _in_file_order(nodes: Sequence[int], parents: Sequence[int], keep: set[int], joints: Sequence[int]) -> list[int]:
    """As the skins list them, but parents before children."""
    place = {node: i for i, node in enumerate(joints)}
    children: dict[int, list[int]] = {}
    for joint in keep:
        children.setdefault(parents[joint], []).append(joint)
    waiting = [(place.get(nodes[joint], -1), joint) for joint in children[-1]]
    order = []
    while waiting:
        joint = heapq.heappop(waiting)[1]
        order.append(joint)
        for child in children.get(joint, ()):
            heapq.heappush(waiting, (place.get(nodes[child], -1), child))
    return order


def _unique_names(names: Sequence[str]) -> list[str]:
    """Repeated names numbered `_2`, `_3` …, passing over names that are given. As fast for thousands of one name as for one."""
    given, taken = set(names), set[str]()
    numbers: dict[str, int] = {}
    unique = []
    for name in names:
        candidate = name
        while candidate in taken or (candidate != name and candidate in given):
            numbers[name] = numbers.get(name, 1) + 1
            candidate = f"{name}_{numbers[name]}"
        taken.add(candidate)
        unique.append(candidate)
    return unique


def _rest_matrices(nodes: Sequence[int], parents: Sequence[int], A_bind: Mapping[int, Array], A_world_node: Matrices) -> Float[np.ndarray, "J 4 4"]:
    """Turn and place of the bind pose, size of the node pose: a bone that a file shrinks stays shrunk.

    A joint without a bind pose stands to its parent as its node does.
    """
    rest = np.tile(np.eye(4), (len(nodes), 1, 1))
    for i, node in enumerate(nodes):
        if node == NO_NODE:
            continue
        A_node = A_world_node[node]
        if node in A_bind:
            A = A_bind[node]
        elif parents[i] >= 0 and nodes[parents[i]] != NO_NODE:
            A = rest[parents[i]] @ np.linalg.pinv(A_world_node[nodes[parents[i]]]) @ A_node
        else:
            A = A_node
        rest[i, :3, :3] = rotation_of(A[:3, :3]) @ rotation_of(A_node[:3, :3]).T @ A_node[:3, :3]
        rest[i, :3, 3] = A[:3, 3]
    return rest


def _skeleton(document: GltfDocument, names: list[str], parents: list[int], A_rest: Float[np.ndarray, "J 4 4"], nodes: Sequence[int]) -> Skeleton:
    R = torch.from_numpy(rotation_of(A_rest[:, :3, :3]))
    poses = WorldPoses(p_world_joint=torch.from_numpy(A_rest[:, :3, 3].copy()), R_world_joint=R)
    skeleton = skeleton_from_poses(document.path.stem, names, parents, poses)
    skeleton = replace(skeleton, tips=_tips(document, nodes, A_rest))
    return replace(skeleton, roles=infer_roles(skeleton))


def _tips(document: GltfDocument, nodes: Sequence[int], A_rest: Float[np.ndarray, "J 4 4"]) -> dict[int, tuple[float, float, float]]:
    """Where leaf bones end, told by nodes named `…_end` that some exporters add."""
    all_nodes, tips = document.list("nodes"), {}
    for joint, node in enumerate(nodes):
        for child in [] if node == NO_NODE else all_nodes[node].get("children", []):
            if child not in nodes and all_nodes[child].get("name", "").lower().endswith("_end"):
                stretch = rotation_of(A_rest[joint, :3, :3]).T @ A_rest[joint, :3, :3]
                tips[joint] = tuple(map(float, stretch @ node_trs(all_nodes[child])[0]))
    return tips  # type: ignore[return-value]
