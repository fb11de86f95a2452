"""Opens a .glb, .bvh or .usd file in Blender and prints where its joints are: a second opinion for the tests.

Run by the Python that has `bpy` (`.oracles/blender/bin/python tools/blender_joints.py FILE --fps 30 [--clip NAME]`), in a process of its
own: Blender is GPL and is never imported by the package. Prints one JSON object:
`{"joints": [...], "frames": [[[x, y, z], ...], ...]}`, bone heads in the world, metres, +Y up, frame i at i / fps seconds.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import bpy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--fps", type=float, required=True)
    parser.add_argument("--clip", help="name of the animation; the only one if the file has just one")
    parser.add_argument("--frames", type=int, required=True, help="how many frames to print")
    parser.add_argument("--scale", type=float, default=0.01, help="metres per unit of a BVH file")
    options = parser.parse_args()
    answer = os.dup(1)
    os.dup2(2, 1)  # Blender's importers chatter on the standard output, past Python's own
    open_file(options.file, options.fps, options.scale)
    first = first_key() if options.clip is None else choose_clip(options.clip)
    result = joint_positions(first, options.frames)
    with os.fdopen(answer, "w") as out:
        json.dump(result, out)


def open_file(path: Path, fps: float, scale: float) -> None:
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = round(fps), round(fps) / fps
    suffix = path.suffix.lower()
    if suffix in (".glb", ".gltf"):
        bpy.ops.import_scene.gltf(filepath=str(path))
    elif suffix == ".bvh":
        bpy.ops.import_anim.bvh(filepath=str(path), global_scale=scale, frame_start=0, use_fps_scale=False, update_scene_fps=False)
    elif suffix in (".usd", ".usda", ".usdc"):
        bpy.ops.wm.usd_import(filepath=str(path))
    else:
        raise SystemExit(f"{path}: .glb, .gltf, .bvh and .usd files are opened")


def first_key() -> int:
    return round(min((action.frame_range[0] for action in bpy.data.actions), default=0))


def choose_clip(name: str) -> int:
    """glTF clips become tracks of the same name on every object that moves: one is heard, the others are silent. Its first frame."""
    starts = []
    for thing in bpy.data.objects:
        if thing.animation_data is None:
            continue
        thing.animation_data.action = None
        for track in thing.animation_data.nla_tracks:
            track.mute = track.name != name
            starts += [strip.frame_start for strip in track.strips if track.name == name]
    if not starts:
        raise SystemExit(f"there is no clip '{name}'")
    return round(min(starts))


def joint_positions(first: int, count: int) -> dict[str, list]:
    scene = bpy.context.scene
    armatures = [thing for thing in bpy.data.objects if thing.type == "ARMATURE"]
    names = [bone.name for armature in armatures for bone in armature.pose.bones]
    frames = []
    for frame in range(count):
        scene.frame_set(first + frame)
        heads = [armature.matrix_world @ bone.head for armature in armatures for bone in armature.pose.bones]
        frames.append([[head.x, head.z, -head.y] for head in heads])
    return {"joints": names, "frames": frames}


if __name__ == "__main__":
    main()
