"""Whether a document's JSON has the shape that the readers rely on; after this they index without asking again.

Checked are the lists, numbers and cross-references that we follow, not all of glTF: everything else is carried along unread.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from bunraku.errors import FormatProblem

# (list, property): (list it points into, whether the property is itself a list, whether it must be there)
_REFERENCES = {
    ("scenes", "nodes"): ("nodes", True, False),
    ("nodes", "children"): ("nodes", True, False),
    ("nodes", "mesh"): ("meshes", False, False),
    ("nodes", "skin"): ("skins", False, False),
    ("skins", "joints"): ("nodes", True, True),
    ("skins", "skeleton"): ("nodes", False, False),
    ("skins", "inverseBindMatrices"): ("accessors", False, False),
    ("accessors", "bufferView"): ("bufferViews", False, False),
    ("bufferViews", "buffer"): ("buffers", False, True),
    ("images", "bufferView"): ("bufferViews", False, False),
    ("textures", "source"): ("images", False, False),
}
_COUNTS = {"accessors": ("count", "byteOffset", "componentType"), "bufferViews": ("byteLength", "byteOffset", "byteStride"), "buffers": ("byteLength",)}
_REQUIRED = {"accessors": ("count", "componentType", "type"), "bufferViews": ("byteLength",), "buffers": ("byteLength",)}
_TRANSFORMS = {"matrix": 16, "translation": 3, "rotation": 4, "scale": 3}
_STRINGS = ("name", "uri", "type", "mimeType")
_LISTS = ("scenes", "nodes", "meshes", "skins", "accessors", "bufferViews", "buffers", "images", "textures", "materials", "animations")
_COMPRESSIONS = {
    "KHR_draco_mesh_compression": "Draco",
    "EXT_meshopt_compression": "meshopt",
    "KHR_meshopt_compression": "meshopt",
}


def check_structure(document: dict[str, Any], path: Path) -> None:
    try:
        _check(document)
    except _Broken as error:
        raise FormatProblem(f"'{path}' is not valid glTF: {error}.") from None
    for extension in document.get("extensionsRequired", []):
        if extension in _COMPRESSIONS:
            raise FormatProblem(f"'{path}' is compressed with {_COMPRESSIONS[extension]}, which is not read; export it again without {extension}.")


class _Broken(Exception):
    pass


def _check(document: dict[str, Any]) -> None:
    version = _of(document.get("asset"), dict, "asset").get("version")
    if not isinstance(version, str) or not version.startswith("2."):
        raise _Broken(f"its version is {version!r}, and version 2 is read")
    _strings(_of(document.get("extensionsRequired", []), list, "extensionsRequired"), "extensionsRequired")
    for name in _LISTS:
        for i, entry in enumerate(_of(document.get(name, []), list, name)):
            where = f"{name}[{i}]"
            _of(entry, dict, where)
            for key in _STRINGS:
                if key in entry:
                    _of(entry[key], str, f"{where}.{key}")
            for key in _REQUIRED.get(name, ()):
                if key not in entry:
                    raise _Broken(f"{where} has no {key}")
            for key in _COUNTS.get(name, ()):
                if key in entry:
                    _natural(entry[key], f"{where}.{key}")
    for (name, key), (target, many, required) in _REFERENCES.items():
        for i, entry in enumerate(document.get(name, [])):
            _reference(document, entry, key, f"{name}[{i}]", target, many, required)
    _check_nodes(document)
    _check_meshes(document)
    _check_animations(document)
    _check_materials(document)
    _check_sparse(document)
    if "scene" in document:
        _index(document["scene"], document, "scenes", "scene")


def _check_nodes(document: dict[str, Any]) -> None:
    nodes = document.get("nodes", [])
    parent = [-1] * len(nodes)
    for i, node in enumerate(nodes):
        for key, size in _TRANSFORMS.items():
            if key in node:
                _numbers(node[key], size, f"nodes[{i}].{key}")
        if "weights" in node:
            _numbers(node["weights"], None, f"nodes[{i}].weights")
        for child in node.get("children", []):
            if parent[child] >= 0:
                raise _Broken(f"node {child} has two parents ({parent[child]} and {i})")
            parent[child] = i
    for start in range(len(nodes)):
        node, steps = start, 0
        while node >= 0 and steps <= len(nodes):
            node, steps = parent[node], steps + 1
        if node >= 0:
            raise _Broken(f"the nodes above node {start} form a cycle")
        if steps > 2000:
            raise _Broken(f"node {start} lies {steps} levels deep")


def _check_meshes(document: dict[str, Any]) -> None:
    for i, mesh in enumerate(document.get("meshes", [])):
        if "weights" in mesh:
            _numbers(mesh["weights"], None, f"meshes[{i}].weights")
        for k, primitive in enumerate(_of(mesh.get("primitives"), list, f"meshes[{i}].primitives")):
            where = f"meshes[{i}].primitives[{k}]"
            _of(primitive, dict, where)
            maps = [_of(primitive.get("attributes"), dict, f"{where}.attributes"), *_of(primitive.get("targets", []), list, f"{where}.targets")]
            for accessors in maps:
                for key, value in _of(accessors, dict, f"{where}.targets").items():
                    _index(value, document, "accessors", f"{where}.{key}")
            _reference(document, primitive, "indices", where, "accessors", False, False)
            _reference(document, primitive, "material", where, "materials", False, False)
            _natural(primitive.get("mode", 4), f"{where}.mode")


def _check_animations(document: dict[str, Any]) -> None:
    for i, animation in enumerate(document.get("animations", [])):
        where = f"animations[{i}]"
        samplers = _of(animation.get("samplers"), list, f"{where}.samplers")
        for sampler in samplers:
            _of(sampler, dict, f"{where}.samplers")
            for key in ("input", "output"):
                _reference(document, sampler, key, f"{where} sampler", "accessors", False, True)
            if sampler.get("interpolation", "LINEAR") not in ("LINEAR", "STEP", "CUBICSPLINE"):
                raise _Broken(f"{where} interpolates by {str(sampler['interpolation'])[:40]!r} (LINEAR, STEP and CUBICSPLINE exist)")
        for channel in _of(animation.get("channels"), list, f"{where}.channels"):
            _index(_of(channel, dict, f"{where}.channels").get("sampler"), {"samplers": samplers}, "samplers", f"{where} channel.sampler")
            target = _of(channel.get("target"), dict, f"{where} channel.target")
            _of(target.get("path"), str, f"{where} channel.target.path")
            _reference(document, target, "node", f"{where} channel.target", "nodes", False, False)


def _check_materials(document: dict[str, Any]) -> None:
    for i, material in enumerate(document.get("materials", [])):
        surface = _of(material.get("pbrMetallicRoughness", {}), dict, f"materials[{i}].pbrMetallicRoughness")
        if "baseColorFactor" in surface:
            _numbers(surface["baseColorFactor"], 4, f"materials[{i}].baseColorFactor")
        texture = _of(surface.get("baseColorTexture", {}), dict, f"materials[{i}].baseColorTexture")
        _reference(document, texture, "index", f"materials[{i}].baseColorTexture", "textures", False, False)
        _natural(texture.get("texCoord", 0), f"materials[{i}].baseColorTexture.texCoord")


def _check_sparse(document: dict[str, Any]) -> None:
    for i, accessor in enumerate(document.get("accessors", [])):
        if "sparse" not in accessor:
            continue
        sparse = _of(accessor["sparse"], dict, f"accessors[{i}].sparse")
        _natural(sparse.get("count"), f"accessors[{i}].sparse.count")
        for key in ("indices", "values"):
            part = _of(sparse.get(key), dict, f"accessors[{i}].sparse.{key}")
            _reference(document, part, "bufferView", f"accessors[{i}].sparse.{key}", "bufferViews", False, True)
            _natural(part.get("byteOffset", 0), f"accessors[{i}].sparse.{key}.byteOffset")
        _natural(sparse["indices"].get("componentType"), f"accessors[{i}].sparse.indices.componentType")


# --- one value ------------------------------------------------------------------------------------------------------


def _of(value: object, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        raise _Broken(f"{where} is {_short(value)}, not {_KIND_NAMES[kind]}")
    return value


_KIND_NAMES = {dict: "an object", list: "a list", str: "text"}


def _strings(values: list[Any], where: str) -> None:
    for value in values:
        _of(value, str, where)


def _natural(value: object, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _Broken(f"{where} is {_short(value)}, not a whole number from 0")


def _index(value: object, document: dict[str, Any], target: str, where: str) -> None:
    _natural(value, where)
    if value >= len(document.get(target, [])):  # type: ignore[operator]
        raise _Broken(f"{where} points at {target}[{_short(value)}], but there are {len(document.get(target, []))}")


def _reference(document: dict[str, Any], entry: dict[str, Any], key: str, where: str, target: str, many: bool, required: bool) -> None:
    if key not in entry:
        if required:
            raise _Broken(f"{where} has no {key}")
        return
    for value in _of(entry[key], list, f"{where}.{key}") if many else [entry[key]]:
        _index(value, document, target, f"{where}.{key}")


def _numbers(values: object, size: int | None, where: str) -> None:
    if not isinstance(values, list) or (size is not None and len(values) != size):
        raise _Broken(f"{where} is {_short(values)}, not {size or 'a list of'} numbers")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or abs(value) > 1e30:
            raise _Broken(f"{where} holds {_short(value)}, not a finite number")


def _short(value: object) -> str:
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
