"""Numbers out of buffers: strides, normalised integers, sparse parts, and claims that the bytes do not cover."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_gltf import Writer, save

from bunraku.errors import FormatProblem
from bunraku.files.gltf.accessors import read_accessor, read_numbers, read_whole_numbers
from bunraku.files.gltf.document import GltfDocument, read_document


def document_of(writer: Writer, tmp_path: Path) -> GltfDocument:
    return read_document(save(writer, tmp_path))


def test_rows_lie_a_stride_apart(tmp_path: Path) -> None:
    writer, rows = Writer(), np.arange(20, dtype="<f4").reshape(4, 5)
    writer.view(rows.tobytes(), byteStride=20)
    writer.json["accessors"] += [
        {"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"},
        {"bufferView": 0, "byteOffset": 12, "componentType": 5126, "count": 4, "type": "VEC2"},
    ]
    document = document_of(writer, tmp_path)
    np.testing.assert_array_equal(read_numbers(document, 0, 3), rows[:, :3])
    np.testing.assert_array_equal(read_numbers(document, 1, 2), rows[:, 3:])


@pytest.mark.parametrize(("kind", "low", "high"), [("u1", 0, 255), ("i1", -128, 127), ("u2", 0, 65535), ("i2", -32768, 32767)])
def test_normalised_integers_span_one(tmp_path: Path, kind: str, low: int, high: int) -> None:
    writer = Writer()
    writer.array([low, 0, high], kind, normalized=True)
    writer.array([low, 0, high], kind)
    document = document_of(writer, tmp_path)
    np.testing.assert_array_equal(read_numbers(document, 0, 1)[:, 0], [-1.0 if low < 0 else 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(read_whole_numbers(document, 1, 1)[:, 0], [low, 0, high])


@pytest.mark.parametrize("with_base", [True, False])
def test_sparse_values_replace_rows(tmp_path: Path, with_base: bool) -> None:
    writer = Writer()
    base = np.arange(15.0).reshape(5, 3)
    writer.array(base)
    rows, values = writer.view(np.array([1, 4], "<u2").tobytes()), writer.view(np.full((2, 3), 9, "<f4").tobytes())
    sparse = {"count": 2, "indices": {"bufferView": rows, "componentType": 5123}, "values": {"bufferView": values}}
    entry = {"componentType": 5126, "count": 5, "type": "VEC3", "sparse": sparse}
    writer.json["accessors"].append({"bufferView": 0, **entry} if with_base else entry)
    expected = base * with_base
    expected[[1, 4]] = 9
    document = document_of(writer, tmp_path)
    np.testing.assert_array_equal(read_numbers(document, 1, 3), expected)
    np.testing.assert_array_equal(read_numbers(document, 0, 3), base)  # the base itself stays


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 10**12}, "needs"),
        ({"count": 6}, "needs"),
        ({"byteOffset": 10**30}, "needs"),
        ({"componentType": 5124}, "no number type"),
        ({"type": "VEC4"}, "not what its use needs"),
        ({"type": "VEC9"}, "not what its use needs"),
    ],
)
def test_claims_beyond_the_bytes_are_refused(tmp_path: Path, change: dict, message: str) -> None:
    writer = Writer()
    writer.array(np.zeros((5, 3)))
    writer.json["accessors"][0] |= change
    with pytest.raises(FormatProblem, match=message):
        read_accessor(document_of(writer, tmp_path), 0, 3)


def test_rows_without_any_bytes_are_not_allocated(tmp_path: Path) -> None:
    writer = Writer()
    writer.json["accessors"].append({"componentType": 5126, "count": 10**12, "type": "VEC3"})
    with pytest.raises(FormatProblem, match="brings no data"):
        read_accessor(document_of(writer, tmp_path), 0, 3)


def test_a_view_beyond_its_buffer_and_a_stride_below_a_row_are_refused(tmp_path: Path) -> None:
    for change, message in (({"byteLength": 1000}, "ends at byte"), ({"byteStride": 4}, "stride")):
        writer = Writer()
        writer.array(np.zeros((5, 3)))
        writer.json["bufferViews"][0] |= change
        with pytest.raises(FormatProblem, match=message):
            read_accessor(document_of(writer, tmp_path), 0, 3)


def test_sparse_rows_outside_the_accessor_are_refused(tmp_path: Path) -> None:
    writer = Writer()
    writer.array(np.zeros((2, 3)))
    rows, values = writer.view(np.array([7], "<u1").tobytes()), writer.view(bytes(12))
    writer.json["accessors"][0]["sparse"] = {"count": 1, "indices": {"bufferView": rows, "componentType": 5121}, "values": {"bufferView": values}}
    with pytest.raises(FormatProblem, match="replaces row 7"):
        read_accessor(document_of(writer, tmp_path), 0, 3)


def test_nan_and_floats_for_whole_numbers_are_refused(tmp_path: Path) -> None:
    writer = Writer()
    writer.array([[0.0, 1.0, 2.0]])
    position = len(writer.data) - 4
    writer.data = writer.data[:position] + np.array([np.nan], "<f4").tobytes()
    document = document_of(writer, tmp_path)
    with pytest.raises(FormatProblem, match="not finite"):
        read_numbers(document, 0, 3)
    with pytest.raises(FormatProblem, match="whole numbers"):
        read_whole_numbers(document, 0, 3)
