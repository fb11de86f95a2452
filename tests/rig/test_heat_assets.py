"""Heat weights on real characters: no limb follows its neighbour, artists agree more or less, and Blender agrees closely."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from bunraku.files.gltf import load_character
from bunraku.geometry.primitives import capsule
from bunraku.geometry.weld import weld
from bunraku.kinematics.skeleton import SIDES, Skeleton
from bunraku.rig import Bones, heat_weights, moving_bones
from bunraku.rig.character import Character
from bunraku.rig.prune import prune

ROOT = Path(__file__).resolve().parents[2]
CLEAN = ("animals/Alpaca", "animals/Donkey", "animals/Fox", "animals/Horse", "animals/Husky", "animals/Whale", "animals/Wolf")
CLEAN += ("dinosaurs/Apatosaurus", "dinosaurs/Triceratops", "dinosaurs/Velociraptor")
LEG = ("knee", "foot", "toe")


def skinned(character: Character) -> torch.Tensor:
    bones = moving_bones(character.skeleton)
    weights, _ = heat_weights(character.mesh.vertices.double(), character.mesh.faces, bones.heads.double(), bones.tails.double())
    return prune(bones.to_joints(weights, len(character.skeleton)))


def lower_leg(skeleton: Skeleton, side: str, limb: tuple[str, ...] = LEG) -> list[int]:
    """The joints of a side's lower leg with all below them."""
    top = [skeleton.roles[f"{side}_{part}"] for part in limb if f"{side}_{part}" in skeleton.roles]
    return sorted(joint for joint in range(len(skeleton)) if set(skeleton.ancestors(joint)) & set(top))


@pytest.mark.parametrize("group", ["animals", "humanoids", "dinosaurs", "khronos"])
def test_a_foot_never_follows_the_other_foot(shared: Path, group: str) -> None:
    """Skin that an artist gave to one shin or foot alone takes nothing from the other one; likewise front legs and forearms."""
    for path in sorted((shared / "data" / "rigged_assets" / group).glob("*.glb")):
        character = load_character(path)
        for limb in (LEG, ("elbow", "hand")):
            sides = [lower_leg(character.skeleton, side, limb) for side in SIDES]
            if not all(sides) or set(sides[0]) & set(sides[1]):
                continue
            weights, painted = skinned(character), character.rig.weights
            for own, other in (sides, sides[::-1]):
                mine = painted[:, own].sum(1) > 0.99
                assert not len(weights[mine]) or float(weights[mine][:, other].sum(1).max()) < 1e-3, (path.stem, limb)


@pytest.mark.parametrize("name", CLEAN)
def test_clean_bodies_listen_to_their_bones(shared: Path, name: str) -> None:
    character = load_character(shared / "data" / "rigged_assets" / f"{name}.glb")
    weights = skinned(character)
    assert float((weights.sum(1) - 1).abs().max()) < 1e-6
    painted = character.rig.weights[:, weights.sum(0) > 0]
    assert float((painted - weights[:, weights.sum(0) > 0]).abs().sum(1).median()) / 2 < 0.25


# --- Blender ------------------------------------------------------------------------------------------------------------


def blender_weights(folder: Path, vertices: np.ndarray, faces: np.ndarray, heads: np.ndarray, tails: np.ndarray) -> np.ndarray:
    python = ROOT / ".oracles" / "blender" / "bin" / "python"
    if not python.exists():
        pytest.skip("Blender is not installed")
    np.savez(folder / "given.npz", vertices=vertices, faces=faces, heads=heads, tails=tails)
    subprocess.run([python, ROOT / "tools" / "blender_heat.py", folder / "given.npz", folder / "answer.npz"], check=True)
    weights = np.load(folder / "answer.npz")["weights"]
    return weights / weights.sum(1, keepdims=True)


def require_alike(folder: Path, vertices: np.ndarray, faces: np.ndarray, heads: np.ndarray, tails: np.ndarray, mean: float) -> None:
    ours = prune(torch.from_numpy(heat_weights(vertices, faces, heads, tails)[0]), 1000).numpy()
    difference = np.abs(ours - blender_weights(folder, vertices, faces, heads, tails))
    assert difference.mean() < mean
    assert difference.sum(1).mean() / 2 < 0.03  # of the whole row


@pytest.mark.oracle
def test_blender_agrees_on_a_capsule(tmp_path: Path) -> None:
    mesh = capsule(*torch.tensor([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=torch.float64), 0.15, 0.1, segments=24, rings=8, spans=24)
    joints = np.stack([np.zeros(5), np.linspace(0, 1, 5), np.zeros(5)], axis=1)
    require_alike(tmp_path, mesh.vertices.numpy(), mesh.faces.numpy(), joints[:-1], joints[1:], 1e-3)


@pytest.mark.oracle
@pytest.mark.parametrize("name", CLEAN)
def test_blender_agrees_on_clean_bodies(shared: Path, tmp_path: Path, name: str) -> None:
    character = load_character(shared / "data" / "rigged_assets" / f"{name}.glb")
    bones = used_bones(character)
    welded = weld(character.mesh.vertices.double().numpy(), character.mesh.faces.numpy())
    heads, tails = (welded.to_unit(ends.double().numpy()) for ends in (bones.heads, bones.tails))
    require_alike(tmp_path, welded.points, welded.faces, heads, tails, 0.005)


def used_bones(character: Character) -> Bones:
    bones = moving_bones(character.skeleton)
    keep = (bones.tails - bones.heads).norm(dim=1) > 1e-6
    return Bones(heads=bones.heads[keep], tails=bones.tails[keep], joints=bones.joints[keep])
