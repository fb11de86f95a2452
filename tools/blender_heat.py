"""Has Blender bind meshes to bones with automatic weights, and times it: a second opinion for the tests and the table in docs/lab.md.

Run by the Python that has `bpy` (`.oracles/blender/bin/python tools/blender_heat.py IN.npz OUT.npz`), in a process of its own: Blender is GPL
and is never imported by the package. IN holds `vertices (V 3)`, `faces (T 3)`, `heads (B 3)`, `tails (B 3)`; OUT gets `weights (V B)`,
`seconds` (of the `parent_set` call alone, the best of `--repeats`) and `problems` (what Blender said).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import bpy
import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("given", type=Path)
    parser.add_argument("answer", type=Path)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    given = np.load(options.given)
    seconds = []
    for _ in range(options.repeats):
        weights, took, problems = bind(given["vertices"], given["faces"], given["heads"], given["tails"])
        seconds.append(took)
    np.savez(options.answer, weights=weights, seconds=min(seconds), problems=problems)


def bind(vertices: np.ndarray, faces: np.ndarray, heads: np.ndarray, tails: np.ndarray) -> tuple[np.ndarray, float, str]:
    bpy.ops.wm.read_factory_settings(use_empty=True)
    mesh = bpy.data.meshes.new("body")
    mesh.from_pydata(vertices.tolist(), [], faces.tolist())
    mesh.update()
    body = bpy.data.objects.new("body", mesh)
    armature = bpy.data.objects.new("bones", bpy.data.armatures.new("bones"))
    for thing in (body, armature):
        bpy.context.collection.objects.link(thing)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    for number, (head, tail) in enumerate(zip(heads.tolist(), tails.tolist(), strict=True)):
        bone = armature.data.edit_bones.new(f"bone{number}")
        bone.head, bone.tail = head, tail
    bpy.ops.object.mode_set(mode="OBJECT")
    body.select_set(True)
    armature.select_set(True)
    said, seconds = heard(lambda: bpy.ops.object.parent_set(type="ARMATURE_AUTO"))
    columns = {group.index: int(group.name.removeprefix("bone")) for group in body.vertex_groups}
    weights = np.zeros((len(vertices), len(heads)))
    for vertex in mesh.vertices:
        for group in vertex.groups:
            weights[vertex.index, columns[group.group]] = group.weight
    return weights, seconds, said


def heard(call: Callable[[], object]) -> tuple[str, float]:
    """Runs the call with everything that it prints caught: Blender reports failed bones on the standard output only."""
    sys.stdout.flush()
    kept = os.dup(1)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 1)
        start = time.perf_counter()
        call()
        seconds = time.perf_counter() - start
        os.dup2(kept, 1)
        os.close(kept)
        said.seek(0)
        return said.read().decode(errors="replace").strip(), seconds


if __name__ == "__main__":
    main()
