"""A clip of a character's document as a Motion.

Joint scale has no place in a Motion: every joint's turn is taken out of its world matrix and its position kept exactly, through
`Motion.translations` wherever bones are not rigid (feet baked from inverse kinematics, squash and stretch).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from bunraku.errors import BadValue, FormatProblem
from bunraku.files.gltf.armature import NO_NODE
from bunraku.files.gltf.document import GltfDocument
from bunraku.files.gltf.nodes import rotation_of, world_matrices
from bunraku.files.gltf.read import GltfSource
from bunraku.files.gltf.sample import Track, local_matrices, natural_rate, read_tracks
from bunraku.files.metadata import KEY, provenance_from_json
from bunraku.kinematics.forward import WorldPoses
from bunraku.kinematics.from_poses import motion_from_poses
from bunraku.kinematics.motion import Motion
from bunraku.rig.character import Character

_MAX_POSES = 20_000_000  # frames × joints: two hours of 77 joints at 30 frames per second, 2 GB while reading
_MATRICES_AT_ONCE = 500_000  # 64 MB
_SCALE_MOVES = 1e-3


def load_clip(character: Character, name: str | int = 0, fps: float | None = None) -> Motion:
    """An animation of the character's file. `fps` None: its own rate if we wrote it, else the one on whose grid its keys lie."""
    if not isinstance(character.source, GltfSource):
        raise BadValue(f"character '{character.name}' was not read from a glTF file, so it has no clips.")
    document, clip = character.source.document, _find(character, name)
    tracks = read_tracks(document, clip)
    if not tracks:
        raise FormatProblem(f"'{document.path}': the animation '{character.clips[clip]}' moves no node.")
    meta = _metadata(document, clip)
    rate = fps if fps is not None else _own_rate(meta) or natural_rate(tracks)
    if not 0 < rate < float("inf"):
        raise BadValue(f"a clip is sampled at a positive number of frames per second; got {rate}.")
    times = _frame_times(document, tracks, rate, len(character.skeleton))
    poses = _world_poses(document, character.source.nodes, tracks, times)
    provenance = provenance_from_json(meta, str(document.path))
    provenance = provenance.noted(**_notes(document, tracks, times))
    return replace(motion_from_poses(character.skeleton, poses, rate), contacts=_contacts(meta, len(times)), provenance=provenance)


def _find(character: Character, name: str | int) -> int:
    clips = character.clips
    if isinstance(name, str):
        if name in clips:
            return clips.index(name)
        known = ", ".join(f"'{clip}'" for clip in clips[:12]) + (" …" if len(clips) > 12 else "")
        raise BadValue(f"character '{character.name}' has no clip '{name}' (it has: {known or 'none'}).")
    if not -len(clips) <= name < len(clips):
        raise BadValue(f"character '{character.name}' has {len(clips)} clips; there is no number {name}.")
    return name % len(clips)


def _metadata(document: GltfDocument, clip: int) -> dict[str, Any]:
    """What we wrote beside the clip when it was saved; empty for anybody else's."""
    extras = document.list("animations")[clip].get("extras")
    meta = extras.get(KEY) if isinstance(extras, dict) else None
    return meta if isinstance(meta, dict) else {}


def _own_rate(meta: Mapping[str, Any]) -> float | None:
    rate = meta.get("fps")
    return float(rate) if isinstance(rate, (int, float)) and not isinstance(rate, bool) and 0 < rate < 1e6 else None


def _contacts(meta: Mapping[str, Any], frames: int) -> Bool[torch.Tensor, "F 4"] | None:
    rows = meta.get("contacts")
    if not isinstance(rows, list) or len(rows) != frames:
        return None
    if not all(isinstance(row, list) and len(row) == 4 and all(flag in (0, 1) for flag in row) for row in rows):
        return None
    return torch.tensor(rows).bool()


def _frame_times(document: GltfDocument, tracks: Sequence[Track], fps: float, joints: int) -> Float[np.ndarray, " F"]:
    start, end = min(track.times[0] for track in tracks), max(track.times[-1] for track in tracks)
    count = (end - start) * fps
    if count * joints > _MAX_POSES:
        most = f"{_MAX_POSES / joints / fps:.6g} s of {joints} joints"
        raise FormatProblem(f"'{document.path}': a clip claims to last {end - start:.6g} s; up to {most} are read at {fps:g} frames per second.")
    return _on_keys(start + np.arange(int(count + 1e-3) + 1) / fps, np.unique(np.concatenate([track.times for track in tracks])))


def _on_keys(times: Float[np.ndarray, " F"], keys: Float[np.ndarray, " K"]) -> Float[np.ndarray, " F"]:
    """Times next to a key, put on it. glTF stores float32: ten minutes into a clip a frame is 30 µs off, in which a hand goes 0.3 mm."""
    above = np.minimum(np.searchsorted(keys, times), len(keys) - 1)
    below = np.maximum(above - 1, 0)
    nearest = np.where(np.abs(keys[above] - times) < np.abs(keys[below] - times), keys[above], keys[below])
    return np.where(np.abs(nearest - times) <= 2 * np.spacing(np.abs(nearest).astype(np.float32)), nearest, times)


def _world_poses(document: GltfDocument, nodes: Sequence[int], tracks: Sequence[Track], times: Float[np.ndarray, " F"]) -> WorldPoses:
    R, p = np.tile(np.eye(3), (len(times), len(nodes), 1, 1)), np.zeros((len(times), len(nodes), 3))
    real = [joint for joint, node in enumerate(nodes) if node != NO_NODE]
    picked = [nodes[joint] for joint in real]
    step = max(1, _MATRICES_AT_ONCE // len(document.list("nodes")))
    for start in range(0, len(times), step):
        some = slice(start, start + step)
        A = world_matrices(document, local_matrices(document, tracks, times[some]), len(times[some]))[:, picked]
        R[some, real], p[some, real] = rotation_of(A[..., :3, :3]), A[..., :3, 3]
    return WorldPoses(p_world_joint=torch.from_numpy(p), R_world_joint=torch.from_numpy(R))


def _notes(document: GltfDocument, tracks: Sequence[Track], times: Float[np.ndarray, " F"]) -> dict[str, str]:
    notes = {"clip_start": f"{times[0]:g} s"} if times[0] > 0 else {}
    scaled = []
    for track in tracks:
        if track.path == "scale":
            moves = np.ptp(track.at(times), axis=0).max(-1) > _SCALE_MOVES
            scaled += [node for node, scales in zip(track.nodes, moves, strict=True) if scales]
    if scaled:
        names = [document.list("nodes")[node].get("name", f"node {node}") for node in scaled]
        notes["scale"] = f"joint scale is left out ({', '.join(names[:4])}{' …' if len(names) > 4 else ''}); joint positions stay exact"
    return notes
