"""Meshes without a rig: which file is what, where up is, how long its unit is, and what is no body at all.

A `.glb` or `.gltf` says that it is in metres with Y up. The others say nothing: they are taken as metres with Y up (STL: Z up, as printers
and CAD have it) unless the caller knows better; what was assumed is noted.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue, FileProblem, FormatProblem
from bunraku.files.axes import Frame, vectors_from, vectors_to
from bunraku.files.disk import existing_file
from bunraku.geometry.mesh import Mesh

Up = Literal["y", "z"]
MESHES = (".obj", ".stl", ".ply", ".glb", ".gltf")
_SUFFIXES_THAT_TELL = (".glb", ".gltf")
_FARTHEST = 1e6  # units: beyond it float32 rounds to centimetres and worse
_USUAL = (0.02, 30.0)  # [m] what a character measures; outside the unit deserves a remark


@dataclass(frozen=True, kw_only=True)
class Space:
    """How a file's numbers become ours: metres per unit, and which axis is up."""

    unit: float = 1.0  # [m]
    up: Up = "y"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.unit) and self.unit > 0):
            raise BadValue(f"a unit is a positive number of metres (0.01 for centimetres); got {self.unit:g}.")
        if self.up not in ("y", "z"):
            raise BadValue(f"up is 'y' or 'z'; got '{self.up}'.")

    def places(self, p_theirs: Float[Tensor, "N 3"]) -> Float[Tensor, "N 3"]:
        return self.directions(p_theirs) * self.unit

    def directions(self, v_theirs: Float[Tensor, "N 3"]) -> Float[Tensor, "N 3"]:
        return vectors_from(self._frame, v_theirs)

    def theirs(self, p_ours: Float[Tensor, "N 3"]) -> Float[Tensor, "N 3"]:
        """Our places as the file would write them."""
        return vectors_to(self._frame, p_ours) / self.unit

    @property
    def _frame(self) -> Frame:
        return Frame.Z_UP_Y_BACK if self.up == "z" else Frame.Y_UP


@dataclass(frozen=True, kw_only=True, eq=False)
class StaticMesh:
    """A mesh in our space, how its file's numbers became that, the document it came from (glTF only), and what had to be assumed."""

    name: str
    mesh: Mesh
    space: Space
    source: object | None = None
    notes: Mapping[str, str] = field(default_factory=dict)


def load_static(path: str | os.PathLike[str], *, unit: float | None = None, up: Up | None = None) -> StaticMesh:
    """The mesh of an .obj, .stl, .ply, .glb or .gltf; what a glTF has of a rig is passed over."""
    path = existing_file(path)
    suffix = path.suffix.lower()
    if suffix not in MESHES:
        raise FileProblem(f"'{path}' is no mesh that can be read; {', '.join(MESHES)} are. Export it from Blender as .glb.")
    if suffix in _SUFFIXES_THAT_TELL and (unit is not None or up is not None):
        raise BadValue(f"'{path}' is in metres with Y up, as glTF has it; unit and up are given for .obj, .stl and .ply only.")
    space = Space(unit=1.0 if unit is None else unit, up=up or ("z" if suffix == ".stl" else "y"))
    mesh, source, notes = _read(path, suffix)
    _require_body(mesh, path)
    if suffix not in _SUFFIXES_THAT_TELL:
        mesh = _moved(mesh, space)
        notes |= _assumed(mesh, unit, up, space)
    return StaticMesh(name=path.stem, mesh=mesh, space=space, source=source, notes=notes)


def _read(path: Path, suffix: str) -> tuple[Mesh, object | None, dict[str, str]]:
    if suffix == ".obj":
        from bunraku.files.obj import load_obj

        mesh, notes = load_obj(path)
        return mesh, None, notes
    if suffix == ".stl":
        from bunraku.files.stl import load_stl

        return load_stl(path), None, {}
    if suffix == ".ply":
        from bunraku.files.mesh_ply import load_mesh_ply

        return load_mesh_ply(path), None, {}
    from bunraku.files.gltf import load_character
    from bunraku.files.gltf.document import read_document
    from bunraku.files.gltf.static import has_skin, read_static

    document = read_document(path)
    if has_skin(document):
        return load_character(path).mesh, None, {"rig": "the file's own joints and skin weights were left out, as were its animations"}
    return read_static(document), document, {}


def _require_body(mesh: Mesh, path: Path) -> None:
    if not len(mesh.faces):
        raise FormatProblem(f"'{path}' has {len(mesh.vertices)} vertices but no faces; a mesh of triangles is needed, not a cloud of points.")
    used = mesh.vertices[mesh.faces.flatten()]
    farthest = float(used.abs().max())
    if farthest > _FARTHEST:
        raise FormatProblem(
            f"'{path}' has a vertex {farthest:.3g} units from the origin; up to {_FARTHEST:g} are read. Move or scale it, or repair that vertex."
        )
    a, b, c = mesh.vertices.double()[mesh.faces].unbind(1)
    if float(torch.linalg.cross(b - a, c - a).norm(dim=1).max()) == 0:
        raise FormatProblem(f"'{path}' has {len(mesh.faces)} faces, none of which has an area; its vertices lie on a point or a line.")


def _moved(mesh: Mesh, space: Space) -> Mesh:
    normals = None if mesh.normals is None else torch.nn.functional.normalize(space.directions(mesh.normals), dim=-1)
    return replace(mesh, vertices=space.places(mesh.vertices), normals=normals)


def _assumed(mesh: Mesh, unit: float | None, up: Up | None, space: Space) -> dict[str, str]:
    size = float((mesh.vertices.amax(0) - mesh.vertices.amin(0)).max())
    notes = {}
    if unit is None and not _USUAL[0] <= size <= _USUAL[1]:
        notes["unit"] = (
            f"taken as metres, which makes the mesh {size:.4g} m large; give the unit if that is wrong (0.01 for centimetres, 0.001 for millimetres)"
        )
    if up is None and space.up == "z":
        notes["up"] = "Z is taken as up, as in most .stl files; give 'y' if the character lies on its face or back"
    return notes
