"""STL: triangles and nothing else, as text or in 50 bytes each. Corners on one spot become one vertex."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float

from bunraku.errors import FormatProblem
from bunraku.files.disk import read_bytes
from bunraku.geometry.mesh import Mesh

_HEAD, _ROW = 84, np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("extra", "<u2")])
_VERTEX = re.compile(rb"^\s*vertex\s+(\S+)\s+(\S+)\s+(\S+)\s*$", re.MULTILINE | re.IGNORECASE)


def load_stl(path: str | os.PathLike[str]) -> Mesh:
    """The mesh, in the file's own unit and axes."""
    path = Path(path)
    data = read_bytes(path)
    claimed = int.from_bytes(data[80:_HEAD], "little") if len(data) >= _HEAD else -1
    # many binary files begin with the word 'solid' too, so that their length decides
    if claimed >= 0 and len(data) == _HEAD + claimed * _ROW.itemsize:
        corners = _binary(data, claimed)
    elif data.lstrip()[:5].lower() == b"solid" and b"vertex" in data.lower():
        corners = _text(data, path)
    elif claimed > 0 and len(data) > _HEAD + claimed * _ROW.itemsize:
        corners = _binary(data, claimed)
    elif claimed > 0:
        held = (len(data) - _HEAD) // _ROW.itemsize
        raise FormatProblem(f"'{path}' says that it has {claimed} triangles, but ends after {held}; get a complete copy of it.")
    else:
        raise FormatProblem(f"'{path}' is no STL file: it neither begins with 'solid' nor says how many triangles it has.")
    if not np.isfinite(corners).all():
        raise FormatProblem(f"'{path}' has corners that are not finite numbers (NaN or infinity).")
    places, faces = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    return Mesh(vertices=torch.from_numpy(places).float(), faces=torch.from_numpy(faces.reshape(-1, 3).astype(np.int64)))


def _binary(data: bytes, count: int) -> Float[np.ndarray, "T 3 3"]:
    return np.frombuffer(data, _ROW, count, _HEAD)["corners"].astype(np.float64)


def _text(data: bytes, path: Path) -> Float[np.ndarray, "T 3 3"]:
    try:
        numbers = np.array(_VERTEX.findall(data), dtype="S40").astype(np.float64)
    except ValueError as error:
        raise FormatProblem(f"'{path}' has a vertex that is not three numbers: {error}.") from error
    if not len(numbers) or len(numbers) % 3:
        raise FormatProblem(f"'{path}' has {len(numbers)} lines 'vertex x y z'; triangles have three each. It may be cut off, or no STL file.")
    return numbers.reshape(-1, 3, 3)
