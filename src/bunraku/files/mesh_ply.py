"""PLY as meshes are stored in it: vertices with colours, normals and texture places, and faces with any number of corners."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int

from bunraku.errors import FormatProblem
from bunraku.files.disk import read_bytes
from bunraku.files.ply_table import KINDS, VertexTable, header_lines, read_vertices
from bunraku.files.polygons import fan_triangles
from bunraku.geometry.colour import to_linear
from bunraku.geometry.mesh import Mesh

_CORNERS = ("vertex_indices", "vertex_index")
_UVS = (("u", "v"), ("s", "t"), ("texture_u", "texture_v"))


def load_mesh_ply(path: str | os.PathLike[str]) -> Mesh:
    """The mesh, in the file's own unit and axes."""
    path = Path(path)
    data = read_bytes(path)
    table = read_vertices(data, path)
    names = table.row.names or ()
    if not {"x", "y", "z"} <= set(names):
        raise FormatProblem(f"'{path}' has vertices without x, y and z; it has: {', '.join(names)[:80]}.")
    corners, sizes = _faces(table, header_lines(data))
    if len(corners) and (corners.min() < 0 or corners.max() >= table.count):
        raise FormatProblem(f"'{path}': a face names vertex {corners.min() if corners.min() < 0 else corners.max()}, but there are {table.count} vertices.")
    places = table.columns(("x", "y", "z"))
    if not np.isfinite(places).all():
        raise FormatProblem(f"'{path}' has vertices that are not finite numbers (NaN or infinity).")
    uvs = next((pair for pair in _UVS if set(pair) <= set(names)), None)
    return Mesh(
        vertices=torch.from_numpy(places),
        faces=torch.from_numpy(fan_triangles(corners, sizes)[0]),
        normals=_finite(table, ("nx", "ny", "nz")),
        uvs=None if uvs is None else _upright(table.columns(uvs)),
        colours=_colours(table),
    )


def _upright(uvs: Float[np.ndarray, "V 2"]) -> torch.Tensor:
    """Texture places counted from the upper left; PLY counts from the lower left."""
    return torch.from_numpy(np.stack([uvs[:, 0], 1 - uvs[:, 1]], axis=1))


def _finite(table: VertexTable, names: tuple[str, ...]) -> torch.Tensor | None:
    if not set(names) <= set(table.row.names or ()):
        return None
    values = table.columns(names)
    return torch.from_numpy(values) if np.isfinite(values).all() else None


def _colours(table: VertexTable) -> torch.Tensor | None:
    """Bytes are sRGB out of 255; so are floats out of 1."""
    values = _finite(table, ("red", "green", "blue"))
    if values is None:
        return None
    kind = table.row["red"].kind
    return torch.from_numpy(to_linear((values.double().numpy() / (255 if kind in "ui" else 1)).clip(0, 1))).float()


def _faces(table: VertexTable, lines: list[list[str]]) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " P"]]:
    """The corners of all faces, one after the other, and how many each has. Faces must be the second element."""
    elements = [number for number, words in enumerate(lines) if words[0] == "element"]
    none = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if len(elements) < 2 or lines[elements[1]][1:2] != ["face"]:
        return none
    words = lines[elements[1]]
    count = int(words[2]) if len(words) == 3 and words[2].isdecimal() else -1
    stop = elements[2] if len(elements) > 2 else len(lines)
    properties = [words for words in lines[elements[1] + 1 : stop] if words[0] == "property"]
    if count < 0 or any((len(words) != 5 if words[1] == "list" else len(words) != 3) or not set(words[1:-1]) <= {"list", *KINDS} for words in properties):
        raise FormatProblem(f"'{table.path}' has a header that does not say what its faces are made of.")
    if not any(words[-1] in _CORNERS and words[1] == "list" for words in properties):
        return none
    try:
        rows = _text_rows(table, properties, count) if table.text else _byte_rows(table, properties, count)
    except (IndexError, ValueError, OverflowError) as error:
        raise FormatProblem(f"'{table.path}' has {count} faces by its header, which cannot be read: it may be cut off ({error}).") from error
    sizes = np.array([len(row) for row in rows], np.int64)
    return np.concatenate([*rows, none[0]]).astype(np.int64), sizes


def _text_rows(table: VertexTable, properties: list[list[str]], count: int) -> list[np.ndarray]:
    words = table.data.split()[table.count * len(table.row.names or ()) :]
    rows, at = [], 0
    for _ in range(count):
        for entry in properties:
            size = int(words[at]) if entry[1] == "list" else 0
            if entry[-1] in _CORNERS:
                rows.append(np.array([int(word) for word in words[at + 1 : at + 1 + size]], np.int64))
                if len(rows[-1]) < size:
                    raise IndexError("a face ends early")
            at += 1 + size
    return rows


def _byte_rows(table: VertexTable, properties: list[list[str]], count: int) -> list[np.ndarray]:
    order = table.row["x"].str[0]
    start = table.count * table.row.itemsize
    quick = _same_size_rows(table.data, start, order, properties, count)
    if quick is not None:
        return quick
    rows, at, data = [], start, table.data
    for _ in range(count):
        for entry in properties:
            size = 1
            if entry[1] == "list":
                head = np.dtype(order + KINDS[entry[2]])
                size = int(np.frombuffer(data, head, 1, at)[0])
                at += head.itemsize
            kind = np.dtype(order + KINDS[entry[-2]])
            if entry[-1] in _CORNERS:
                rows.append(np.frombuffer(data, kind, size, at).astype(np.int64))
            at += size * kind.itemsize
    return rows


def _same_size_rows(data: bytes, start: int, order: str, properties: list[list[str]], count: int) -> list[np.ndarray] | None:
    """All at once where every face has as many corners as the first, as most files do."""
    if len(properties) != 1 or not count:
        return None
    head, kind = (np.dtype(order + KINDS[name]) for name in properties[0][2:4])
    size = int(np.frombuffer(data, head, 1, start)[0])
    row = np.dtype([("size", head), ("corners", kind, (size,))])
    if len(data) < start + count * row.itemsize:
        return None
    rows = np.frombuffer(data, row, count, start)
    return list(rows["corners"].astype(np.int64)) if (rows["size"] == size).all() else None
