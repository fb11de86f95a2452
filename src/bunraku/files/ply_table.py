"""PLY's vertices as a table of named numbers: the header in words, then rows as text or as bytes of either order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from bunraku.errors import FormatProblem

_LONGEST_HEADER = 1 << 16  # [bytes]
KINDS = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "float": "f4", "double": "f8"}
KINDS |= {"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4", "float32": "f4", "float64": "f8"}
_ORDERS = {"binary_little_endian": "<", "binary_big_endian": ">", "ascii": "="}


@dataclass(frozen=True, kw_only=True)
class VertexTable:
    """The element `vertex` of a file: its first `count` rows of numbers, one column for each property."""

    path: Path
    count: int
    row: np.dtype
    text: bool
    data: bytes  # from the first vertex on

    def columns(self, names: tuple[str, ...]) -> Float[np.ndarray, "N C"]:
        """Some properties, in the order asked for, as float32."""
        if self.text:
            wanted = [list(self.row.names or ()).index(name) for name in names]
            return self._numbers()[:, wanted].astype(np.float32)
        rows = np.frombuffer(self.data, dtype=self.row, count=self.count)
        return np.stack([rows[name].astype(np.float32) for name in names], axis=-1)

    def _numbers(self) -> Float[np.ndarray, "N P"]:
        width = len(self.row.names or ())
        words = self.data.split(maxsplit=self.count * width)[: self.count * width]
        if len(words) < self.count * width:
            raise FormatProblem(f"'{self.path}' ends after {len(words) // width} of {self.count} vertices; get a complete copy of it.")
        try:
            return np.array(words, dtype=np.float64).reshape(self.count, width)
        except ValueError as error:
            raise FormatProblem(f"'{self.path}' has something that is no number among its vertices: {error}.") from error


def read_vertices(data: bytes, path: Path) -> VertexTable:
    """The vertices of a PLY file. What else it holds, such as faces, is not looked at."""
    end = data.find(b"end_header", 0, _LONGEST_HEADER)
    if not data.startswith((b"ply\n", b"ply\r")) or end < 0:
        raise FormatProblem(f"'{path}' is not a PLY file; such a file begins with a line 'ply' and a header that ends with 'end_header'.")
    body = data.find(b"\n", end) + 1 or len(data)
    lines = header_lines(data)
    form = next((words[1] for words in lines if words[0] == "format" and len(words) > 1), "")
    if form not in _ORDERS:
        raise FormatProblem(f"'{path}' has the PLY format '{form}'; {', '.join(_ORDERS)} are read.")
    count, row = _vertex_rows(lines, _ORDERS[form], path)
    if form != "ascii" and count * row.itemsize > len(data) - body:
        held = (len(data) - body) // max(row.itemsize, 1)
        raise FormatProblem(f"'{path}' says that it has {count} vertices, but ends after {held}; get a complete copy of it.")
    if form == "ascii" and 2 * count * len(row.names or ()) > len(data) - body + 1:
        raise FormatProblem(f"'{path}' says that it has {count} vertices, for which its {len(data)} bytes are too few; get a complete copy of it.")
    return VertexTable(path=path, count=count, row=row, text=form == "ascii", data=data[body:])


def header_lines(data: bytes) -> list[list[str]]:
    """The words of each line before `end_header`."""
    header = data[: data.find(b"end_header", 0, _LONGEST_HEADER)]
    return [words for line in header.decode("latin-1").splitlines() if (words := line.split())]


def _vertex_rows(lines: list[list[str]], order: str, path: Path) -> tuple[int, np.dtype]:
    """How many vertices there are, and what a row of theirs looks like."""
    elements = [number for number, words in enumerate(lines) if words[0] == "element"]
    if not elements or lines[elements[0]][1:2] != ["vertex"]:
        first = " ".join(lines[elements[0]][1:2]) if elements else "none"
        raise FormatProblem(f"'{path}' does not begin with vertices (its first element: {first}), as PLY files of splats do.")
    words = lines[elements[0]]
    if len(words) != 3 or not words[2].isdecimal():
        raise FormatProblem(f"'{path}' has a header that does not say how many vertices there are: '{' '.join(words)[:80]}'.")
    stop = elements[1] if len(elements) > 1 else len(lines)
    properties = [words for words in lines[elements[0] + 1 : stop] if words[0] == "property"]
    names = [words[-1] for words in properties]
    if any(len(words) != 3 or words[1] not in KINDS for words in properties) or len(set(names)) != len(names):
        raise FormatProblem(f"'{path}' has vertices with lists, unknown kinds of numbers or a property that occurs twice; splats have plain numbers.")
    return int(words[2]), np.dtype([(words[2], order + KINDS[words[1]]) for words in properties])
