"""Roles of the real characters in the shared folder, from their raw joint trees."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import torch
from role_cases import EXPECTED, WITHOUT_LEGS

from bunraku.kinematics.roles import infer_roles
from bunraku.kinematics.skeleton import Skeleton


def roles_by_name(skeleton: Skeleton) -> dict[str, str]:
    return {role: skeleton.joints[joint] for role, joint in infer_roles(skeleton).items()}


def tree_of(path: Path) -> Skeleton:
    """The joint tree of a GLB as it is written: the joints of its skins and everything above them, rotations ignored in the offsets."""
    data = path.read_bytes()
    document = json.loads(data[20 : 20 + struct.unpack("<I", data[12:16])[0]])
    nodes = document["nodes"]
    parent = {child: i for i, node in enumerate(nodes) for child in node.get("children", [])}
    keep = {joint for skin in document["skins"] for joint in skin["joints"]}
    keep |= {above for joint in keep for above in _above(joint, parent)}
    order, world = [], {}

    def visit(i: int, T_above: torch.Tensor) -> None:
        world[i] = T_above @ _local(nodes[i])
        order.extend([i] if i in keep else [])
        for child in nodes[i].get("children", []):
            visit(child, world[i])

    for top in (i for i in range(len(nodes)) if i in keep and i not in parent):
        visit(top, torch.eye(4))
    p = torch.stack([world[i][:3, 3] for i in order])
    parents = [order.index(parent[i]) if i in parent else -1 for i in order]
    return Skeleton(
        name=path.stem,
        joints=tuple(nodes[i].get("name", f"Joint{i}") for i in order),
        parents=tuple(parents),
        offsets=torch.stack([p[k] - (p[above] if above >= 0 else 0) for k, above in enumerate(parents)]),
    )


def _above(joint: int, parent: dict[int, int]) -> list[int]:
    return [] if joint not in parent else [parent[joint], *_above(parent[joint], parent)]


def _local(node: dict) -> torch.Tensor:
    if "matrix" in node:
        return torch.tensor(node["matrix"]).reshape(4, 4).T
    x, y, z, w = node.get("rotation", [0.0, 0.0, 0.0, 1.0])
    R = torch.tensor(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    T = torch.eye(4)
    T[:3, :3] = R * torch.tensor(node.get("scale", [1.0, 1.0, 1.0]))
    T[:3, 3] = torch.tensor(node.get("translation", [0.0, 0.0, 0.0]))
    return T


@pytest.mark.parametrize("model", EXPECTED)
def test_roles_of_real_characters(shared: Path, model: str) -> None:
    expected = dict(item.split("=") for item in EXPECTED[model].split())
    roles = roles_by_name(tree_of(shared / "data" / "rigged_assets" / f"{model}.glb"))
    assert {role: roles.get(role) for role in expected} == expected


@pytest.mark.parametrize("model", WITHOUT_LEGS)
def test_animals_without_legs_get_no_legs(shared: Path, model: str) -> None:
    roles = roles_by_name(tree_of(shared / "data" / "rigged_assets" / "animals" / f"{model}.glb"))
    assert not [role for role in roles if role.startswith(("left_", "right_"))]


def test_no_joint_plays_two_parts_and_sides_are_mirrored(shared: Path) -> None:
    for path in sorted((shared / "data" / "rigged_assets").glob("*/*.glb")):
        if path.stem in ("RecursiveSkeletons", "RiggedSimple"):
            continue
        roles = infer_roles(tree_of(path))
        assert len(set(roles.values())) == len(roles), path.stem
        unpaired = {role for role in roles if role.startswith("left_")} ^ {role.replace("right_", "left_") for role in roles if role.startswith("right_")}
        assert unpaired <= ({"left_collar"} if path.stem == "Frog" else set()), path.stem
