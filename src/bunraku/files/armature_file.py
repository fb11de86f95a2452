"""Skeletons from files that place joints by hand: our JSON, RigNet's text, and the skeleton of any character or motion file.

JSON: `{"joints": [{"name": "hips", "parent": null, "head": [0, 1, 0], "tail": [0, 1.2, 0], "role": "hips"}, …]}`. Parents are named and may
come later; `tail` (where a bone ends that has no child, or goes on beside them) and `role` may be left out. Numbers are in the space of
the mesh's own file. RigNet: lines `joints NAME x y z`, `root NAME`, `hier PARENT CHILD`; lines `skin …` are passed over.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bunraku.errors import FormatProblem, SkeletonProblem
from bunraku.files import formats
from bunraku.files.disk import existing_file, read_text, write_text
from bunraku.files.static_mesh import Space
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.roles import infer_roles, roles_from_json
from bunraku.kinematics.skeleton import Skeleton

_GLTF = (".glb", ".gltf")
_SAME_PLACE = 1e-5  # of the skeleton's size: a tail this close to a child's head says nothing new


@dataclass(frozen=True, kw_only=True)
class _Joint:
    name: str
    parent: str | None
    head: tuple[float, float, float]
    tail: tuple[float, float, float] | None = None


def load_armature(path: str | os.PathLike[str], space: Space | None = None) -> Skeleton:
    """The skeleton at rest, in our space. `space` is that of the mesh's file, which JSON and RigNet share; other formats say theirs."""
    path = existing_file(path)
    suffix = path.suffix.lower()
    if suffix == ".json":
        return _from_json(path, space or Space())
    if suffix == ".txt":
        return _from_joints(path.stem, _parse_rignet(read_text(path), path), space or Space(), path)
    if suffix in _GLTF:
        return _from_gltf(path)
    formats.suffix_of(path, "loads", "motion")
    return formats.load_motion(path).skeleton


def save_armature(skeleton: Skeleton, path: str | os.PathLike[str], space: Space | None = None) -> None:
    """Writes the JSON that `load_armature` reads, one line per joint, to be edited by hand."""
    rest, space = rest_poses(skeleton), space or Space()
    roles = {joint: role for role, joint in skeleton.roles.items()}
    heads = space.theirs(rest.p_world_joint.double())
    rows = []
    for joint, name in enumerate(skeleton.joints):
        parent = skeleton.parents[joint]
        row: dict[str, Any] = {"name": name, "parent": skeleton.joints[parent] if parent >= 0 else None, "head": _rounded(heads[joint])}
        if joint in skeleton.tips:
            tip = rest.p_world_joint[joint] + rest.R_world_joint[joint] @ torch.tensor(skeleton.tips[joint]).to(rest.R_world_joint)
            row["tail"] = _rounded(space.theirs(tip[None].double())[0])
        rows.append(json.dumps(row | ({"role": roles[joint]} if joint in roles else {}), ensure_ascii=False))
    write_text(path, '{"joints": [\n  ' + ",\n  ".join(rows) + "\n]}\n")


def _rounded(place: torch.Tensor) -> list[float]:
    return [float(f"{value:.6g}") for value in place.tolist()]


# --- JSON ---------------------------------------------------------------------------------------------------------------


def _from_json(path: Path, space: Space) -> Skeleton:
    try:
        data = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise FormatProblem(f"'{path}' holds JSON that cannot be read: {str(error)[:120]}.") from error
    rows = data.get("joints") if isinstance(data, dict) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        example = '{"joints": [{"name": "hips", "parent": null, "head": [0, 1, 0]}]}'
        raise FormatProblem(f"'{path}' is no skeleton: it needs a list of joints, such as {example}.")
    joints = [_joint(row, path) for row in rows]
    skeleton = _from_joints(path.stem, joints, space, path)
    roles = {row["role"]: row["name"] for row in rows if row.get("role") is not None}
    return roles_from_json(skeleton, roles) if roles else skeleton


def _joint(row: dict[str, Any], path: Path) -> _Joint:
    name, parent = row.get("name"), row.get("parent")
    if not isinstance(name, str) or not name:
        raise FormatProblem(f"'{path}' has a joint without a name: {json.dumps(row)[:80]}.")
    if parent is not None and not isinstance(parent, str):
        raise FormatProblem(f"'{path}': the parent of '{name}' is {parent!r}; the name of a joint is needed, or null for the root.")
    tail = row.get("tail")
    return _Joint(name=name, parent=parent, head=_place(row.get("head"), name, "head", path), tail=None if tail is None else _place(tail, name, "tail", path))


def _place(value: object, name: str, what: str, path: Path) -> tuple[float, float, float]:
    numbers = value if isinstance(value, list) else []
    if len(numbers) != 3 or not all(isinstance(number, int | float) and not isinstance(number, bool) and abs(number) < 1e6 for number in numbers):
        raise FormatProblem(f"'{path}': the {what} of '{name}' is {json.dumps(value)[:60]}; three numbers are needed, such as [0, 1, 0].")
    return float(numbers[0]), float(numbers[1]), float(numbers[2])


# --- RigNet -------------------------------------------------------------------------------------------------------------


def _parse_rignet(text: str, path: Path) -> list[_Joint]:
    heads: dict[str, tuple[float, float, float]] = {}
    parents: dict[str, str] = {}
    root = None
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if words[:1] == ["joints"] and len(words) == 5:
            try:
                x, y, z = (float(word) for word in words[2:])
            except ValueError as error:
                raise FormatProblem(f"'{path}', line {number}: '{line.strip()[:60]}' does not end in three numbers.") from error
            heads[words[1]] = _place([x, y, z], words[1], "place", path)
        elif words[:1] == ["hier"] and len(words) == 3:
            parents[words[2]] = words[1]
        elif words[:1] == ["root"] and len(words) == 2:
            root = words[1]
        elif words and words[0] != "skin":
            raise FormatProblem(f"'{path}', line {number}: '{line.strip()[:60]}' is none of joints NAME x y z, root NAME, hier PARENT CHILD, skin …")
    if not heads:
        raise FormatProblem(f"'{path}' has no lines 'joints NAME x y z', so it is no skeleton in RigNet's format.")
    for name in (*parents, *parents.values(), *([root] if root else [])):
        if name not in heads:
            raise FormatProblem(f"'{path}' speaks of the joint '{name}', which no line 'joints {name} x y z' places.")
    if root in parents:
        raise FormatProblem(f"'{path}' calls '{root}' the root, but puts it below '{parents[root]}'.")
    return [_Joint(name=name, parent=parents.get(name), head=head) for name, head in heads.items()]


# --- joints to skeleton -------------------------------------------------------------------------------------------------


def _from_joints(name: str, joints: list[_Joint], space: Space, path: Path) -> Skeleton:
    """Joints that stand unturned in the world, ordered from the root down."""
    names = [joint.name for joint in joints]
    if len(set(names)) < len(names):
        raise SkeletonProblem(f"'{path}' has two joints named '{next(n for n in names if names.count(n) > 1)}'; joint names must differ.")
    lost = next((joint for joint in joints if joint.parent is not None and joint.parent not in names), None)
    if lost is not None:
        raise SkeletonProblem(f"'{path}': the parent of '{lost.name}' is '{lost.parent}', but there is no such joint.")
    ordered = _root_first(joints, path)
    rank = {joint.name: i for i, joint in enumerate(ordered)}
    parents = tuple(-1 if joint.parent is None else rank[joint.parent] for joint in ordered)
    heads = space.places(torch.tensor([joint.head for joint in ordered], dtype=torch.float64))
    above = torch.stack([torch.zeros(3, dtype=torch.float64) if parent < 0 else heads[parent] for parent in parents])
    skeleton = Skeleton(name=name, joints=tuple(rank), parents=parents, offsets=(heads - above).float(), tips=_tips(ordered, heads, parents, space))
    return replace(skeleton, roles=infer_roles(skeleton))


def _root_first(joints: list[_Joint], path: Path) -> list[_Joint]:
    below: dict[str | None, list[_Joint]] = {}
    for joint in joints:
        below.setdefault(joint.parent, []).append(joint)
    ordered = list(below.get(None, []))
    for joint in ordered:
        ordered += below.get(joint.name, [])
    if len(ordered) < len(joints):
        caught = next(joint.name for joint in joints if joint not in ordered)
        raise SkeletonProblem(f"'{path}': '{caught}' is its own ancestor; going from parent to parent must end at the root.")
    return ordered


def _tips(joints: list[_Joint], heads: torch.Tensor, parents: tuple[int, ...], space: Space) -> dict[int, tuple[float, float, float]]:
    near = _SAME_PLACE * float(np.ptp(heads.numpy(), axis=0).max())
    tips = {}
    for i, joint in enumerate(joints):
        if joint.tail is None:
            continue
        tail = space.places(torch.tensor([joint.tail], dtype=torch.float64))[0]
        if all(float((tail - heads[child]).norm()) > near for child, parent in enumerate(parents) if parent == i):
            x, y, z = (tail - heads[i]).tolist()
            tips[i] = (x, y, z)
    return tips


# --- glTF ---------------------------------------------------------------------------------------------------------------


def _from_gltf(path: Path) -> Skeleton:
    """Of its skin; of a file without skins the tree of all nodes that are neither meshes nor cameras nor lights."""
    from bunraku.files.gltf import load_character
    from bunraku.files.gltf.armature import build_armature
    from bunraku.files.gltf.document import read_document
    from bunraku.files.gltf.nodes import world_matrices

    document = read_document(path)
    if document.list("skins"):
        return load_character(path).skeleton
    bare = [number for number, node in enumerate(document.list("nodes")) if not {"mesh", "camera"} & set(node) and "extensions" not in node]
    if not bare:
        raise FormatProblem(f"'{path}' has neither a skin nor nodes that could be joints, so it holds no skeleton.")
    return build_armature(document, bare, {}, set(), world_matrices(document)[0]).skeleton
