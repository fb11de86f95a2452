"""The door to rigging: a mesh and a skeleton in, a character out. `bunraku.api` offers it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from bunraku.errors import BadValue
from bunraku.files import formats
from bunraku.files.armature_file import load_armature, save_armature
from bunraku.files.disk import require_writable, write_atomically
from bunraku.files.image import picture_format
from bunraku.files.static_mesh import Space, StaticMesh, Up, load_static
from bunraku.geometry.mesh import Mesh
from bunraku.kinematics.skeleton import Skeleton
from bunraku.rig.bones import moving_bones
from bunraku.rig.character import Character
from bunraku.rig.heat import heat_weights
from bunraku.rig.prune import prune
from bunraku.rig.rig import rig_for, with_toe_tips

PathLike = str | os.PathLike[str]
Progress = Callable[[float], None]
_INFLUENCES = (4, 8)  # what glTF's readers expect: one set or two
_STRAY = 0.3  # so large a share of the joints outside the mesh's box deserves a warning
_SLACK = 0.05  # of the box's size: how far outside still counts as inside


def load_mesh(path: PathLike, *, unit: float | None = None, up: Up | None = None) -> Mesh:
    """The mesh in an .obj, .stl, .ply, .glb or .gltf, in metres with Y up. `unit` [m] and `up` ('y', 'z') say how the first three are to be read."""
    return load_static(path, unit=unit, up=up).mesh


def rig_character(
    mesh: Mesh | PathLike,
    skeleton: Skeleton | PathLike | None = None,
    influences: int = 4,
    *,
    unit: float | None = None,
    up: Up | None = None,
    nudges: PathLike | None = None,
    on_progress: Progress | None = None,
) -> Character:
    """A mesh that follows a skeleton by heat weights (`bunraku.rig.heat_weights`), at most `influences` (4 or 8) joints per vertex.

    `skeleton`: one that stands in the mesh, a file with one (.json, RigNet's .txt, .glb, .bvh …), the name of a template to be fitted, or
    None for the template that fits best. `nudges`: a JSON of joint → [x, y, z] that moves some of its joints. What was assumed, fitted and
    repaired is in the character's notes.
    """
    if influences not in _INFLUENCES:
        raise BadValue(f"4 or 8 influences per vertex can be written, not {influences}.")
    tell = on_progress or (lambda share: None)
    given = StaticMesh(name="character", mesh=mesh, space=Space()) if isinstance(mesh, Mesh) else load_static(mesh, unit=unit, up=up)
    if not len(given.mesh.faces):
        raise BadValue(f"the mesh has {len(given.mesh.vertices)} vertices but no faces; a mesh of triangles is needed, not a cloud of points.")
    tell(0.1)
    body, notes = _skeleton_for(given, skeleton)
    body = body if nudges is None else _nudged(body, nudges, given.space)
    tell(0.4)
    notes = {**given.notes, **notes, **_warn_if_outside(body, given.mesh)}
    bones = moving_bones(body)
    weights, report = heat_weights(given.mesh.vertices.double(), given.mesh.faces, bones.heads.double(), bones.tails.double())
    tell(0.9)
    weights = prune(bones.to_joints(weights, len(body)).float(), influences)
    notes |= {f"mesh {number}": line for number, line in enumerate(report.lines, start=1)}
    body = with_toe_tips(body, given.mesh.vertices, weights)
    return _with_document(Character(name=given.name, mesh=given.mesh, rig=rig_for(body, weights), notes=notes), given, influences)


def _skeleton_for(given: StaticMesh, skeleton: Skeleton | PathLike | None) -> tuple[Skeleton, dict[str, str]]:
    if isinstance(skeleton, Skeleton):
        return skeleton, {}
    if skeleton is not None and (Path(skeleton).suffix or os.sep in os.fspath(skeleton)):
        return load_armature(skeleton, given.space), {}
    from bunraku.rig.fit.fit import fit_skeleton  # brings solvers that a skeleton from a file does not need

    fit = fit_skeleton(given.mesh, None if skeleton is None else os.fspath(skeleton))
    notes = {"skeleton": f"'{fit.template}' fitted to the mesh, confidence {fit.confidence:.2f}"}
    if skeleton is None:
        notes["templates"] = ", ".join(f"{name} {score:.2f}" for name, score in fit.scores.items())
    return fit.skeleton, notes | {f"fit {number}": note for number, note in enumerate(fit.notes, start=1)}


def _nudged(skeleton: Skeleton, path: PathLike, space: Space) -> Skeleton:
    """With some joints moved; the file's places are in the numbers of the mesh's file."""
    from bunraku.files.nudges import load_nudges  # brings solvers along
    from bunraku.rig.fit.nudge import nudged

    given = load_nudges(path)
    places = space.places(torch.tensor(list(given.values()), dtype=torch.float64).reshape(-1, 3)).tolist()
    return nudged(skeleton, {name: (x, y, z) for name, (x, y, z) in zip(given, places, strict=True)})


def _warn_if_outside(skeleton: Skeleton, mesh: Mesh) -> dict[str, str]:
    bones = moving_bones(skeleton)
    low, high = mesh.vertices.amin(0), mesh.vertices.amax(0)
    slack = _SLACK * float((high - low).max())
    heads = bones.heads.to(mesh.vertices)
    outside = ((heads < low - slack) | (heads > high + slack)).any(1)
    stray, moving = len(set(bones.joints[outside].tolist())), len(set(bones.joints.tolist()))
    if stray <= _STRAY * moving:
        return {}
    box = " × ".join(f"{low[axis]:.3g}…{high[axis]:.3g}" for axis in range(3))
    note = (
        f"{stray} of {moving} joints of '{skeleton.name}' lie outside the mesh ({box} m); the skeleton may be in another unit, "
        "turned, or elsewhere. Look at the report, and move the joints"
    )
    warnings.warn(f"{note}.", stacklevel=3)
    return {"outside": note}


def _with_document(character: Character, given: StaticMesh, influences: int) -> Character:
    """With the document that will be written: the mesh's own with a rig put into it, or a new one."""
    from bunraku.files.gltf.build import build_document
    from bunraku.files.gltf.document import GltfDocument
    from bunraku.files.gltf.read import GltfSource
    from bunraku.files.gltf.static import with_rig

    if isinstance(given.source, GltfDocument):
        return replace(character, source=with_rig(given.source, character.rig, influences))
    document, nodes = build_document(character, influences)
    return replace(character, source=GltfSource(document=document, nodes=nodes))


def require_rig_paths(output: PathLike, report: PathLike | None = None, joints: PathLike | None = None) -> None:
    """Raises what saving there would raise, before any work is done."""
    formats.suffix_of(output, "saves", "character")
    if report is not None:
        picture_format(report)
    for path in (output, report, joints):
        if path is not None:
            require_writable(path)


def save_joints(skeleton: Skeleton, path: PathLike, like: PathLike | None = None, *, unit: float | None = None, up: Up | None = None) -> None:
    """Writes a skeleton as JSON to be edited by hand and given to `rig_character` again, in the space of the mesh file `like`."""
    save_armature(skeleton, path, None if like is None else load_static(like, unit=unit, up=up).space)


def save_rig_report(character: Character, path: PathLike) -> None:
    """Draws the skeleton in the mesh and which joint every part of the skin follows; below, all joints with the names to move them by."""
    from bunraku.picture.fit_sheet import fit_sheet
    from bunraku.picture.rig_sheet import rig_sheet
    from bunraku.picture.sheet import stacked

    kind = picture_format(path)
    sheet = stacked(rig_sheet(character), fit_sheet(character.mesh, character.skeleton))
    write_atomically(path, lambda temporary: sheet.save(temporary, format=kind, quality=92))
