"""A glTF document as it lies on disk: its JSON and its buffers, untouched, so that whatever we do not know survives.

`.glb` holds both in one file; `.gltf` is the JSON with buffers beside it or inside it as base64. What is written is always one
file: buffers and images that lay beside a `.gltf` are carried inside.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from bunraku.errors import FileProblem, FormatProblem
from bunraku.files.disk import read_bytes, write_bytes
from bunraku.files.gltf.check import check_structure

_MAGIC, _JSON, _BIN = 0x46546C67, 0x4E4F534A, 0x004E4942
_MIME = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".ktx2": "image/ktx2"}

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class GltfDocument:
    """`buffers[i]` are the bytes of `json["buffers"][i]`; `chunks` are GLB chunks of kinds we do not know, in their order."""

    json: Json
    buffers: tuple[bytes, ...]
    path: Path
    chunks: tuple[tuple[int, bytes], ...] = ()

    def list(self, name: str) -> list[Json]:
        """A top-level list of the JSON; empty if the document has none."""
        return self.json.get(name, [])


def read_document(path: str | os.PathLike[str]) -> GltfDocument:
    """Reads `.glb` or `.gltf`; which of the two it is, the content says."""
    path = Path(path)
    data = read_bytes(path)
    if data[:4] == struct.pack("<I", _MAGIC):
        text, binary, chunks = _split_glb(data, path)
    elif data.lstrip()[:1] == b"{":
        text, binary, chunks = data, None, ()
    else:
        raise FormatProblem(f"'{path}' is neither GLB (it begins with {data[:4]!r}, not b'glTF') nor glTF JSON.")
    document = _parse_json(text, path)
    check_structure(document, path)
    buffers = tuple(_read_buffer(i, entry, binary, path) for i, entry in enumerate(document.get("buffers", [])))
    return GltfDocument(json=document, buffers=buffers, path=path, chunks=chunks)


def write_document(document: GltfDocument, path: str | os.PathLike[str]) -> None:
    """Writes `.glb` or, by its suffix, `.gltf`. Nothing is left outside the one file."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".glb", ".gltf"):
        raise FileProblem(f"'{path}' does not end in .glb or .gltf.")
    whole = _with_images_inside(document)
    write_bytes(path, _glb_bytes(whole) if suffix == ".glb" else _gltf_bytes(whole))


# --- GLB ------------------------------------------------------------------------------------------------------------


def _split_glb(data: bytes, path: Path) -> tuple[bytes, bytes | None, tuple[tuple[int, bytes], ...]]:
    if len(data) < 20:
        raise FormatProblem(f"'{path}' is truncated: {len(data)} bytes are too few for a GLB.")
    _, version, length = struct.unpack_from("<III", data)
    if version != 2:
        raise FormatProblem(f"'{path}' is GLB version {version}; version 2 is read.")
    if length > len(data):
        raise FormatProblem(f"'{path}' is truncated: it says it has {length} bytes, but {len(data)} are there.")
    at, chunks = 12, []
    while at + 8 <= length:
        size, kind = struct.unpack_from("<II", data, at)
        if size > length - at - 8:
            raise FormatProblem(f"'{path}' is corrupt: a chunk claims {size} bytes where {length - at - 8} are left.")
        chunks.append((kind, data[at + 8 : at + 8 + size]))
        at += 8 + size
    if not chunks or chunks[0][0] != _JSON:
        raise FormatProblem(f"'{path}' is corrupt: its first chunk is not JSON.")
    binary = next((content for kind, content in chunks[1:] if kind == _BIN), None)
    others = tuple((kind, content) for kind, content in chunks[1:] if kind not in (_BIN, _JSON))
    return chunks[0][1], binary, others


def _parse_json(text: bytes, path: Path) -> Json:
    def refuse(constant: str) -> float:
        raise ValueError(f"{constant} is not a JSON number")

    def finite(number: str) -> float:
        value = float(number)
        return value if math.isfinite(value) else refuse(number)

    try:
        document = json.loads(text.decode("utf-8-sig"), parse_constant=refuse, parse_float=finite)
    except (ValueError, RecursionError) as error:
        raise FormatProblem(f"'{path}' holds JSON that cannot be read: {str(error)[:120]}.") from error
    if not isinstance(document, dict):
        raise FormatProblem(f"'{path}' holds JSON that is not an object, so it is no glTF.")
    return document


def _json_bytes(content: Json) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _glb_bytes(document: GltfDocument) -> bytes:
    entries = [dict(entry) for entry in document.list("buffers")]
    binary = None
    for i, (entry, data) in enumerate(zip(entries, document.buffers, strict=True)):
        if i == 0:
            entry.pop("uri", None)
            binary = data
        else:
            entry["uri"] = _data_uri(data, "application/octet-stream")
    content = {**document.json, "buffers": entries} if entries else document.json
    chunks = [(_JSON, _padded(_json_bytes(content), b" "))]
    if binary is not None:
        chunks.append((_BIN, _padded(binary, b"\0")))
    chunks += document.chunks
    total = 12 + sum(8 + len(chunk) for _, chunk in chunks)
    return struct.pack("<III", _MAGIC, 2, total) + b"".join(struct.pack("<II", len(chunk), kind) + chunk for kind, chunk in chunks)


def _gltf_bytes(document: GltfDocument) -> bytes:
    entries = [{**entry, "uri": _data_uri(data, "application/octet-stream")} for entry, data in zip(document.list("buffers"), document.buffers, strict=True)]
    return _json_bytes({**document.json, "buffers": entries} if entries else document.json)


def _padded(data: bytes, filler: bytes) -> bytes:
    return data + filler * (-len(data) % 4)


# --- what lies beside the file ----------------------------------------------------------------------------------------


def _read_buffer(number: int, entry: Json, binary: bytes | None, path: Path) -> bytes:
    length, uri = entry["byteLength"], entry.get("uri")
    if uri is None:
        if number != 0 or binary is None:
            raise FormatProblem(f"'{path}': buffer {number} has no data (no uri, and the file has no binary chunk for it).")
        data = binary
    else:
        data = read_uri(uri, path)
    if length > len(data):
        raise FormatProblem(f"'{path}': buffer {number} claims {length} bytes, but {len(data)} are there; the file is truncated or corrupt.")
    return data[:length]


def read_uri(uri: str, path: Path) -> bytes:
    """The bytes behind a uri of the document at `path`: base64 inside it, or a file in its folder."""
    if uri.startswith("data:"):
        head, _, body = uri.partition(",")
        try:
            return base64.b64decode(body, validate=True) if head.endswith(";base64") else unquote(body).encode()
        except (binascii.Error, ValueError) as error:
            raise FormatProblem(f"'{path}' carries base64 data that is corrupt: {error}.") from error
    if "://" in uri:
        raise FormatProblem(f"'{path}' refers to '{uri[:80]}'; only files in its own folder are read.")
    folder = path.parent.resolve()
    beside = (folder / unquote(uri)).resolve()
    if not beside.is_relative_to(folder):
        raise FormatProblem(f"'{path}' refers to '{uri[:80]}' outside its own folder; put the file beside it.")
    return read_bytes(beside)


def _with_images_inside(document: GltfDocument) -> GltfDocument:
    images = document.list("images")
    if not any("uri" in image and not image["uri"].startswith("data:") for image in images):
        return document
    return replace(document, json={**document.json, "images": [_inside(image, document.path) for image in images]})


def _inside(image: Mapping[str, Any], path: Path) -> Json:
    uri = image.get("uri", "data:")
    if uri.startswith("data:"):
        return dict(image)
    mime = image.get("mimeType") or _MIME.get(Path(unquote(uri)).suffix.lower())
    if mime is None:
        raise FormatProblem(f"'{path}' refers to the image '{uri[:80]}', whose kind is not known; PNG and JPEG are.")
    return {**image, "uri": _data_uri(read_uri(uri, path), mime)}


def _data_uri(data: bytes, mime: str) -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"
