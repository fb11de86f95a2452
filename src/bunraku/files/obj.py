"""Wavefront OBJ: vertices with colours, polygons with texture places and normals, and the plain part of its materials (MTL).

Corners may count backwards (−1 is the last vertex so far). Polygons become fans of triangles. Lines, points and curves are passed over.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from bunraku.errors import BunrakuError, FormatProblem
from bunraku.files.disk import read_bytes
from bunraku.files.polygons import fan_triangles
from bunraku.geometry.colour import to_linear
from bunraku.geometry.mesh import Material, Mesh
from bunraku.geometry.texture import decode_image

_PASSED_OVER = ("#", "o", "g", "s", "l", "p")


@dataclass(kw_only=True)
class _Table:
    """What the lines say, in their order. `corners` are (vertex, texture place, normal), −1 where a corner has none."""

    places: list[list[float]] = field(default_factory=list)
    uvs: list[list[float]] = field(default_factory=list)
    normals: list[list[float]] = field(default_factory=list)
    corners: list[tuple[int, int, int]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    wears: list[int] = field(default_factory=list)
    materials: list[str] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)


def load_obj(path: str | os.PathLike[str]) -> tuple[Mesh, dict[str, str]]:
    """The mesh, in the file's own unit and axes, and notes on materials that were not found."""
    path = Path(path)
    table = _parse(read_bytes(path).decode("utf-8", "replace"), path)
    if not table.places:
        raise FormatProblem(f"'{path}' has no vertices (lines that begin with 'v'), so it is no OBJ mesh.")
    triangles, owner = fan_triangles(np.arange(len(table.corners)), np.array(table.sizes, np.int64))
    corners = np.array(table.corners, np.int64).reshape(-1, 3)
    if len(corners):
        kept, of_corner = np.unique(corners, axis=0, return_inverse=True)
    else:
        kept, of_corner = np.stack([np.arange(len(table.places)), *[np.full(len(table.places), -1)] * 2], axis=1), np.zeros(0, np.int64)
    numbers = np.array([[*place[:3], *_colour(place)] for place in table.places])[kept[:, 0]]
    materials, notes = _materials(table, path)
    mesh = Mesh(
        vertices=torch.from_numpy(numbers[:, :3]).float(),
        faces=torch.from_numpy(of_corner.reshape(-1)[triangles]),
        normals=_picked(table.normals, kept[:, 2]),
        uvs=_picked([[u, 1 - v] for u, v in table.uvs], kept[:, 1]),
        colours=torch.from_numpy(to_linear(numbers[:, 3:])).float() if any(len(place) >= 6 for place in table.places) else None,
        face_materials=torch.from_numpy(np.array(table.wears, np.int64)[owner]) if materials else None,
        materials=materials,
    )
    return mesh, notes


def _parse(text: str, path: Path) -> _Table:
    table = _Table()
    material = 0
    for number, line in enumerate(text.replace("\\\n", " ").replace("\\\r\n", " ").splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        if not words or words[0] in _PASSED_OVER:
            continue
        try:
            if words[0] == "v":
                table.places.append(_floats(words[1:], 3))
            elif words[0] == "vt":
                table.uvs.append(_floats([*words[1:3], "0"][:2], 2))
            elif words[0] == "vn":
                table.normals.append(_floats(words[1:4], 3))
            elif words[0] == "f" and len(words) > 3:
                counts = len(table.places), len(table.uvs), len(table.normals)
                table.corners += [_corner(word, counts) for word in words[1:]]
                table.sizes.append(len(words) - 1)
                table.wears.append(material)
            elif words[0] == "usemtl":
                name = " ".join(words[1:])
                material = table.materials.index(name) if name in table.materials else len(table.materials)
                table.materials += [name] * (material == len(table.materials))
            elif words[0] == "mtllib":
                table.libraries.append(" ".join(words[1:]))
        except (ValueError, IndexError) as error:
            raise FormatProblem(f"'{path}', line {number}, cannot be read: '{line.strip()[:60]}' ({error}).") from error
    return table


def _floats(words: Sequence[str], least: int) -> list[float]:
    values = [float(word) for word in words]
    if len(values) < least or not np.isfinite(values).all():
        raise ValueError(f"{least} finite numbers are needed")
    return values


def _corner(word: str, counts: tuple[int, int, int]) -> tuple[int, int, int]:
    """`v`, `v/vt`, `v//vn` or `v/vt/vn`, counted from 1, or from the last one backwards."""
    parts = [*word.split("/"), "", ""][:3]
    found = []
    for part, count in zip(parts, counts, strict=True):
        number = int(part) if part else 0
        index = number - 1 if number > 0 else count + number if number < 0 else -1
        if part and not 0 <= index < count:
            raise ValueError(f"{part} is named, but there are {count} so far")
        found.append(index)
    if found[0] < 0:
        raise ValueError("a corner names no vertex")
    return found[0], found[1], found[2]


def _colour(place: list[float]) -> list[float]:
    """`v x y z r g b`, as many programs write vertex colours: sRGB, white where a vertex has none."""
    return [min(max(value, 0.0), 1.0) for value in place[3:6]] if len(place) >= 6 else [1.0, 1.0, 1.0]


def _picked(values: list[list[float]], rows: np.ndarray) -> torch.Tensor | None:
    """One row for each vertex; None if any corner has none."""
    return torch.tensor(values).float()[torch.from_numpy(rows)] if values and len(rows) and rows.min() >= 0 else None


# --- materials --------------------------------------------------------------------------------------------------------


def _materials(table: _Table, path: Path) -> tuple[tuple[Material, ...], dict[str, str]]:
    """The materials that faces wear, in the order of their first use; plain ones for those no library describes."""
    notes: dict[str, str] = {}
    known: dict[str, Material] = {}
    for library in table.libraries:
        beside = _beside(path, library)
        try:
            known |= _library(read_bytes(beside).decode("utf-8", "replace"), beside, notes)
        except BunrakuError as error:
            notes[library] = f"materials were not read: {error}"
    names = table.materials or list(known)[:1]
    missing = [name for name in names if name not in known]
    if missing and table.libraries:
        notes["materials"] = "plain ones stand for those not described: " + ", ".join(missing)[:200]
    return tuple(known.get(name, Material(name=name)) for name in names), notes


def _library(text: str, path: Path, notes: dict[str, str]) -> dict[str, Material]:
    """Diffuse colour, opacity and diffuse texture; what else a material says has no place in a Material."""
    known: dict[str, Material] = {}
    name = ""
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if words[:1] == ["newmtl"]:
            name = " ".join(words[1:])
            known[name] = Material(name=name)
        elif name and words:
            known[name] = _told(known[name], words, path, notes)
    return known


def _told(material: Material, words: list[str], path: Path, notes: dict[str, str]) -> Material:
    red, green, blue, alpha = material.base_color
    try:
        if words[0] == "Kd" and len(words) >= 4:
            red, green, blue = (min(max(float(word), 0.0), 1.0) for word in words[1:4])
        elif words[0] in ("d", "Tr") and len(words) >= 2:
            value = min(max(float(words[-1]), 0.0), 1.0)
            alpha = value if words[0] == "d" else 1 - value
        elif words[0] == "map_Kd" and len(words) >= 2:
            image = read_bytes(_beside(path, words[-1] if words[1].startswith("-") else " ".join(words[1:])))
            if decode_image(image, material.name) is None:
                return material
            # where there is a picture, many programs leave the colour at 0, which would turn it black
            return replace(material, image=image, base_color=(1.0, 1.0, 1.0, alpha) if not any((red, green, blue)) else material.base_color)
    except (ValueError, BunrakuError) as error:
        notes[f"material {material.name}"] = f"'{' '.join(words)[:60]}' was passed over: {error}"
        return material
    return replace(material, base_color=(red, green, blue, alpha))


def _beside(path: Path, name: str) -> Path:
    """A file that another one names: in its folder, whatever folders the author's machine had."""
    given = Path(name.replace("\\", "/"))
    inside = (path.parent / given).resolve()
    return inside if inside.is_relative_to(path.parent.resolve()) and inside.exists() else path.parent / given.name
