"""Skin weights against Blender's automatic ones: how fast, how alike, and who comes closer to what artists painted.

Needs `make oracles` (Blender's module, run in a process of its own) and, but for the speed, the folder of rigged characters.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command sets it

import numpy as np
import torch
from jaxtyping import Float
from timing import best_of, table

import bunraku
from bunraku.files.gltf import load_clip
from bunraku.geometry.primitives import capsule
from bunraku.geometry.weld import weld
from bunraku.kinematics.forward import WorldPoses, forward_kinematics
from bunraku.rig import Bones, bones_of, heat_weights
from bunraku.rig.character import Character
from bunraku.rig.prune import prune
from bunraku.rig.skinning import skin_vertices

ROOT = Path(__file__).resolve().parents[1]
BLENDER = ROOT / ".oracles" / "blender" / "bin" / "python"
ASSETS = ROOT.parent / "shared" / "data" / "rigged_assets"
SOMA = ROOT.parent / "shared" / "data" / "soma_body" / "skin_standard.npz"
FRAMES_PER_CLIP = 6
NOT_SKINNED_BY_BONES = {"RecursiveSkeletons"}  # Khronos' test of 84 skins, each with a skeleton of its own


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What both are given: vertices without seams, or Blender finds no solution."""

    vertices: Float[np.ndarray, "V 3"]
    faces: np.ndarray
    heads: Float[np.ndarray, "B 3"]
    tails: Float[np.ndarray, "B 3"]


def blender(asked: Asked, repeats: int = 1) -> tuple[Float[np.ndarray, "V B"], float]:
    """Blender's weights, and the seconds of its `parent_set` call alone."""
    if not BLENDER.exists():
        raise SystemExit("Blender's module is not installed; run `make oracles`.")
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder, "given.npz"), Path(folder, "answer.npz")
        np.savez(given, vertices=asked.vertices, faces=asked.faces, heads=asked.heads, tails=asked.tails)
        subprocess.run([BLENDER, ROOT / "tools" / "blender_heat.py", given, answer, "--repeats", str(repeats)], check=True)
        with np.load(answer) as found:
            return found["weights"], float(found["seconds"])


def ours(asked: Asked, influences: int = 1 << 30) -> Float[np.ndarray, "V B"]:
    weights, _ = heat_weights(asked.vertices, asked.faces, asked.heads, asked.tails)
    return prune(torch.from_numpy(weights), influences).numpy()


# --- speed --------------------------------------------------------------------------------------------------------------


def big_capsule() -> Asked:
    """16,258 vertices and 20 bones."""
    ends = torch.tensor([[0.0, 0.0, 0.0], [0.0, 2.0, 0.0]], dtype=torch.float64)
    mesh = capsule(*ends, 0.2, 0.2, segments=128, rings=32, spans=64)
    joints = np.stack([np.zeros(21), np.linspace(0, 2, 21), np.zeros(21)], axis=1)
    return Asked(vertices=mesh.vertices.numpy(), faces=mesh.faces.numpy(), heads=joints[:-1], tails=joints[1:])


def soma_body() -> Asked:
    with np.load(SOMA) as data:
        places, links = data["bind_rig_transform"][:, :3, 3].astype(np.float64), data["rig_joint_connections"]
        heads, tails = places[links[:, 0]], places[links[:, 1]]
        real = np.linalg.norm(heads - tails, axis=1) > 1e-6
        return Asked(vertices=data["bind_vertices"].astype(np.float64), faces=data["faces"].astype(np.int64), heads=heads[real], tails=tails[real])


def speed() -> str:
    rows = []
    for name, asked in (("capsule", big_capsule()), *((("SOMA body", soma_body()),) if SOMA.exists() else ())):
        mine, _ = best_of(6, lambda asked=asked: heat_weights(asked.vertices, asked.faces, asked.heads, asked.tails), lambda: None)
        theirs, seconds = blender(asked, 3)
        difference = np.abs(prune(torch.from_numpy(mine.result[0]), 1 << 30).numpy() - _filled(theirs)).mean()
        counts = f"{len(asked.vertices):,}", str(len(asked.heads))
        rows.append([name, *counts, f"{mine.seconds:.3f} s", f"{seconds:.3f} s", f"{seconds / mine.seconds:.1f} ×", f"{difference:.5f}"])
    head = ("body", "vertices", "bones", "ours", "Blender 5.0", "ours is faster by", "mean \\|Δw\\|")
    return f"`heat_weights` against `parent_set(type='ARMATURE_AUTO')` (that call alone, in its own process).\n\n{table(head, rows)}"


def _filled(weights: Float[np.ndarray, "V B"]) -> Float[np.ndarray, "V B"]:
    total = weights.sum(1, keepdims=True)
    return weights / np.where(total > 0, total, 1)


# --- quality ------------------------------------------------------------------------------------------------------------


def quality() -> str:
    rows, sums = [], []
    for path in sorted(ASSETS.glob("*/*.glb")):
        if path.stem not in NOT_SKINNED_BY_BONES:
            cells, errors = _compared(path)
            rows.append(cells)
            sums.append(errors)
            print(" | ".join(cells), flush=True)
    mean = np.nanmean(np.array(sums), axis=0)
    rows.append(["**mean**", "", "", "", *(f"**{value:.3f}**" for value in mean)])
    head = ("asset", "shells", "closed", "mean \\|Δw\\|", "ours", "Blender", "ours, where Blender found any", "Blender there")
    return (
        "4 influences, the artists' skeletons. Errors: mean distance of skinned vertices from where the artists' weights put them, over 6 frames of each "
        f"clip, in % of the body's size; what Blender gave no weight stays at rest.\n\n{table(head, rows)}"
    )


def _compared(path: Path) -> tuple[list[str], tuple[float, ...]]:
    character = bunraku.load_character(path)
    bones = _used_bones(character)
    welded = weld(character.mesh.vertices.double().numpy(), character.mesh.faces.numpy())
    asked = Asked(
        vertices=welded.points, faces=welded.faces, heads=welded.to_unit(bones.heads.double().numpy()), tails=welded.to_unit(bones.tails.double().numpy())
    )
    mine, theirs = ours(asked, 4), _filled(blender(asked)[0])
    found = theirs.sum(1) > 0
    difference = np.abs(ours(asked) - theirs)[found].mean() if found.any() else np.nan
    edges = np.sort(np.concatenate([asked.faces[:, [0, 1]], asked.faces[:, [1, 2]], asked.faces[:, [2, 0]]]), axis=1)
    closed = np.unique(edges, axis=0, return_counts=True)[1]
    _, report = heat_weights(asked.vertices, asked.faces, asked.heads, asked.tails)
    errors = _errors(character, bones, mine[welded.of_vertex], theirs[welded.of_vertex], welded.size) if character.clips else (np.nan,) * 4
    cells = [path.stem, str(report.shells), f"{(closed == 2).mean():.0%}", f"{difference:.4f}", *(f"{error:.3f}" for error in errors)]
    return cells, errors


def _used_bones(character: Character) -> Bones:
    """Those of joints that the artist gave any skin."""
    bones = bones_of(character.skeleton)
    keep = (character.rig.weights.sum(0) > 0)[bones.joints] & ((bones.tails - bones.heads).norm(dim=1) > 1e-6)
    return Bones(heads=bones.heads[keep], tails=bones.tails[keep], joints=bones.joints[keep])


def _errors(character: Character, bones: Bones, mine: np.ndarray, theirs: np.ndarray, size: float) -> tuple[float, ...]:
    poses = [_some_frames(character, clip) for clip in range(len(character.clips))]
    truth = [skin_vertices(character, pose) for pose in poses]
    found = theirs.sum(1) > 0
    means = []
    for weights in (mine, theirs):
        joint_weights = bones.to_joints(torch.from_numpy(weights).float(), len(character.skeleton))
        off = []
        for pose, right in zip(poses, truth, strict=True):
            moved = _skinned(character, joint_weights, pose)
            moved[:, weights.sum(1) == 0] = character.mesh.vertices[weights.sum(1) == 0]
            off.append((moved - right).norm(dim=-1).mean(0))
        means.append(torch.stack(off).mean(0).numpy() / size * 100)
    there = (means[0][found].mean(), means[1][found].mean()) if found.any() else (np.nan, np.nan)
    return float(means[0].mean()), float(means[1].mean()), float(there[0]), float(there[1])


def _some_frames(character: Character, clip: int) -> WorldPoses:
    poses = forward_kinematics(load_clip(character, clip))
    rows = torch.linspace(0, len(poses.p_world_joint) - 1, FRAMES_PER_CLIP).long().unique()
    return WorldPoses(p_world_joint=poses.p_world_joint[rows], R_world_joint=poses.R_world_joint[rows])


def _skinned(character: Character, weights: torch.Tensor, poses: WorldPoses) -> torch.Tensor:
    from bunraku.math.rigid import rigid, rigid_inverse

    T = rigid(poses.R_world_joint, poses.p_world_joint) @ rigid_inverse(character.rig.T_world_joint_rest)
    blended = (weights @ T[:, :, :3].flatten(-2)).unflatten(-1, (3, 4))
    return (blended[..., :3] @ character.mesh.vertices[:, :, None]).squeeze(-1) + blended[..., 3]
