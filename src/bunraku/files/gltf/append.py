"""Adding numbers to a document without touching what it has: new bytes go behind the old ones, new entries behind the old entries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bunraku.files.gltf.document import GltfDocument, Json

_COMPONENT = {"f": 5126, "u1": 5121, "u2": 5123, "u4": 5125}
_TYPES = {1: "SCALAR", 3: "VEC3", 4: "VEC4", 2: "VEC2", 16: "MAT4"}
ARRAY_BUFFER, ELEMENT_ARRAY_BUFFER = 34962, 34963


class Appender:
    """Collects new entries beside a document; `document()` is then the old one with the additions. The old one stays as it was."""

    def __init__(self, document: GltfDocument) -> None:
        self._old = document
        self._added: dict[str, list[Json]] = {}
        self._replaced: dict[tuple[str, int], Json] = {}
        entries = document.list("buffers")
        # behind the first buffer, wherever it lay: what is written is one file, and a GLB should need no second buffer
        self._extends = bool(entries)
        self._buffer = 0 if self._extends else len(entries)
        self._start = len(document.buffers[0]) if self._extends else 0
        self._data = bytearray(-self._start % 4)

    def add(self, name: str, entry: Json) -> int:
        """Appends an entry to a top-level list; its index."""
        added = self._added.setdefault(name, [])
        added.append(entry)
        return len(self._old.list(name)) + len(added) - 1

    def replace(self, name: str, index: int, entry: Json) -> None:
        """Another entry of a top-level list in the place of an old one."""
        self._replaced[name, index] = entry

    def view(self, data: bytes, target: int | None = None) -> int:
        """A bufferView of new bytes."""
        entry = {"buffer": self._buffer, "byteOffset": self._start + len(self._data), "byteLength": len(data)}
        self._data += data + bytes(-len(data) % 4)
        return self.add("bufferViews", entry if target is None else {**entry, "target": target})

    def numbers(self, values: NDArray[Any], target: int | None = None, *, bounds: bool = False) -> int:
        """An accessor of new numbers, (count, width), as float32 or the unsigned type they have."""
        values = np.ascontiguousarray(values, "<f4") if values.dtype.kind == "f" else np.ascontiguousarray(values)
        kind = "f" if values.dtype.kind == "f" else f"u{values.dtype.itemsize}"
        view, shape = self.view(values.tobytes(), target), _TYPES[values.shape[1]]
        entry: Json = {"bufferView": view, "componentType": _COMPONENT[kind], "count": len(values), "type": shape}
        if bounds:
            entry |= {"min": values.min(0).tolist(), "max": values.max(0).tolist()}
        return self.add("accessors", entry)

    def document(self) -> GltfDocument:
        old = self._old
        content = dict(old.json)
        for name, entries in self._added.items():
            content[name] = [*old.list(name), *entries]
        for name in {name for name, _ in self._replaced}:
            content[name] = [self._replaced.get((name, i), entry) for i, entry in enumerate(content[name])]
        buffers, entries = list(old.buffers), [dict(entry) for entry in old.list("buffers")]
        if self._extends:
            buffers[0] = buffers[0] + bytes(self._data)
            entries[0]["byteLength"] = len(buffers[0])
        elif self._data:
            buffers.append(bytes(self._data))
            entries.append({"byteLength": len(self._data)})
        content["buffers"] = entries
        return replace(old, json=content, buffers=tuple(buffers))
