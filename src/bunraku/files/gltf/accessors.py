"""Numbers in and out of buffers: accessors with strides, normalised integers and sparse parts, as numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import FormatProblem
from bunraku.files.gltf.document import GltfDocument

_TYPES = {5120: np.dtype("i1"), 5121: np.dtype("u1"), 5122: np.dtype("<i2"), 5123: np.dtype("<u2"), 5125: np.dtype("<u4"), 5126: np.dtype("<f4")}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
_MAX_EMPTY_ROWS = 1 << 22  # an accessor without data claims rows that no bytes vouch for


def read_numbers(document: GltfDocument, index: int, width: int) -> NDArray[np.float64]:
    """(count, width) finite float64; normalised integers become −1 … 1."""
    values = read_accessor(document, index, width)
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise FormatProblem(f"'{document.path}': accessor {index} holds numbers that are not finite (NaN or infinity).")
        return values.astype(np.float64)
    return denormalised(values) if document.json["accessors"][index].get("normalized") else values.astype(np.float64)


def read_whole_numbers(document: GltfDocument, index: int, width: int) -> NDArray[np.int64]:
    """(count, width) whole numbers: vertex indices, joint numbers."""
    values = read_accessor(document, index, width)
    if values.dtype.kind == "f":
        raise FormatProblem(f"'{document.path}': accessor {index} holds floats where whole numbers belong.")
    return values.astype(np.int64)


def denormalised(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.maximum(values.astype(np.float64) / np.iinfo(values.dtype).max, -1.0)


def read_accessor(document: GltfDocument, index: int, width: int) -> NDArray[Any]:
    """(count, width) in the accessor's own number type."""
    accessor = document.json["accessors"][index]
    dtype, has = _dtype(document, accessor["componentType"]), _WIDTHS.get(accessor["type"])
    if has != width or (accessor["type"].startswith("MAT") and dtype.kind != "f"):
        raise FormatProblem(f"'{document.path}': accessor {index} is a {accessor['type'][:20]} of {dtype}, not what its use needs ({width} numbers each).")
    count = accessor["count"]
    if "bufferView" in accessor:
        values = _read_view(document, accessor["bufferView"], accessor.get("byteOffset", 0), dtype, (count, width))
    elif count > _MAX_EMPTY_ROWS:
        raise FormatProblem(f"'{document.path}': accessor {index} claims {count} rows and brings no data for them.")
    else:
        values = np.zeros((count, width), dtype)
    return _with_sparse(document, index, values) if "sparse" in accessor else values


def _dtype(document: GltfDocument, component_type: int) -> np.dtype[Any]:
    if component_type not in _TYPES:
        raise FormatProblem(f"'{document.path}': {component_type} is no number type of glTF ({', '.join(map(str, _TYPES))} are).")
    return _TYPES[component_type]


def _read_view(document: GltfDocument, index: int, offset: int, dtype: np.dtype[Any], shape: tuple[int, int]) -> NDArray[Any]:
    view = document.json["bufferViews"][index]
    count, width = shape
    row = dtype.itemsize * width
    stride = view.get("byteStride", row)
    if stride < row:
        raise FormatProblem(f"'{document.path}': bufferView {index} has a stride of {stride} bytes, too few for rows of {row}.")
    data = view_bytes(document, index)
    needed = offset + (count - 1) * stride + row if count else 0
    if needed > len(data):
        raise FormatProblem(f"'{document.path}': an accessor needs {needed} bytes of bufferView {index}, which has {len(data)}.")
    if count == 0:
        return np.zeros(shape, dtype)
    raw = np.ndarray((count, width), dtype, buffer=data, offset=offset, strides=(stride, dtype.itemsize))
    return np.ascontiguousarray(raw)


def view_bytes(document: GltfDocument, index: int) -> memoryview:
    """The bytes of a bufferView."""
    view = document.json["bufferViews"][index]
    start, length, data = view.get("byteOffset", 0), view["byteLength"], document.buffers[view["buffer"]]
    if start + length > len(data):
        raise FormatProblem(f"'{document.path}': bufferView {index} ends at byte {start + length}, but its buffer has {len(data)}.")
    return memoryview(data)[start : start + length]


def _with_sparse(document: GltfDocument, index: int, values: NDArray[Any]) -> NDArray[Any]:
    sparse = document.json["accessors"][index]["sparse"]
    count, where, what = sparse["count"], sparse["indices"], sparse["values"]
    rows = _read_view(document, where["bufferView"], where.get("byteOffset", 0), _dtype(document, where["componentType"]), (count, 1))[:, 0].astype(np.int64)
    if count and (rows.min() < 0 or rows.max() >= len(values)):
        raise FormatProblem(f"'{document.path}': accessor {index} replaces row {rows.max()}, but has {len(values)}.")
    values = values.copy()
    values[rows] = _read_view(document, what["bufferView"], what.get("byteOffset", 0), values.dtype, (count, values.shape[1]))
    return values
