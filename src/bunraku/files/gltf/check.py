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
    _each_of(_of(document.get("extensionsRequired", []), list, "extensionsRequired"), str, "extensionsRequired")
    for name in _LISTS:
        entries = _of(document.get(name, []), list, name)
        _each_of(entries, dict, name)
        for key in _REQUIRED.get(name, ()):
            _present(entries, key, name)
        for key in _STRINGS:
            _each_of([entry[key] for entry in entries if key in entry], str, f"{name}.{key}")
        for key in _COUNTS.get(name, ()):
            _naturals([entry[key] for entry in entries if key in entry], f"{name}.{key}")
    for (name, key), (target, many, required) in _REFERENCES.items():
        _references(document, document.get(name, []), key, name, target, many=many, required=required)
    _check_nodes(document)
    _check_meshes(document)
    _check_animations(document)
    _check_materials(document)
    _check_sparse(document)
    _references(document, [document], "scene", "the document", "scenes")


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
        where = f"meshes[{i}].primitives"
        primitives = _of(mesh.get("primitives"), list, where)
        _each_of(primitives, dict, where)
        for primitive in primitives:
            maps = [primitive.get("attributes"), *_of(primitive.get("targets", []), list, f"{where}.targets")]
            _each_of(maps, dict, f"{where}.attributes")
            _indices([index for accessors in maps for index in accessors.values()], document, "accessors", f"{where}.attributes")
        _references(document, primitives, "indices", where, "accessors")
        _references(document, primitives, "material", where, "materials")
        _naturals([primitive.get("mode", 4) for primitive in primitives], f"{where}.mode")


def _check_animations(document: dict[str, Any]) -> None:
    for i, animation in enumerate(document.get("animations", [])):
        where = f"animations[{i}]"
        samplers, channels = (_of(animation.get(key), list, f"{where}.{key}") for key in ("samplers", "channels"))
        _each_of(samplers, dict, f"{where}.samplers")
        _each_of(channels, dict, f"{where}.channels")
        for key in ("input", "output"):
            _references(document, samplers, key, f"{where}.samplers", "accessors", required=True)
        for kind in (sampler.get("interpolation", "LINEAR") for sampler in samplers):
            if kind not in ("LINEAR", "STEP", "CUBICSPLINE"):
                raise _Broken(f"{where} interpolates by {_short(kind)} (LINEAR, STEP and CUBICSPLINE exist)")
        _references({"samplers": samplers}, channels, "sampler", f"{where}.channels", "samplers", required=True)
        targets = [channel.get("target") for channel in channels]
        _each_of(targets, dict, f"{where}.channels.target")
        _each_of([target.get("path") for target in targets], str, f"{where}.channels.target.path")
        _references(document, targets, "node", f"{where}.channels.target", "nodes")


def _check_materials(document: dict[str, Any]) -> None:
    for i, material in enumerate(document.get("materials", [])):
        surface = _of(material.get("pbrMetallicRoughness", {}), dict, f"materials[{i}].pbrMetallicRoughness")
        if "baseColorFactor" in surface:
            _numbers(surface["baseColorFactor"], 4, f"materials[{i}].baseColorFactor")
        texture = _of(surface.get("baseColorTexture", {}), dict, f"materials[{i}].baseColorTexture")
        _references(document, [texture], "index", f"materials[{i}].baseColorTexture", "textures")
        _naturals([texture.get("texCoord", 0)], f"materials[{i}].baseColorTexture.texCoord")


def _check_sparse(document: dict[str, Any]) -> None:
    for i, accessor in enumerate(document.get("accessors", [])):
        if "sparse" not in accessor:
            continue
        sparse = _of(accessor["sparse"], dict, f"accessors[{i}].sparse")
        for key in ("indices", "values"):
            part = _of(sparse.get(key), dict, f"accessors[{i}].sparse.{key}")
            _references(document, [part], "bufferView", f"accessors[{i}].sparse.{key}", "bufferViews", required=True)
            _naturals([part.get("byteOffset", 0)], f"accessors[{i}].sparse.{key}.byteOffset")
        _naturals([sparse.get("count"), sparse["indices"].get("componentType")], f"accessors[{i}].sparse")


# --- many values at once: a file has a hundred thousand of them ---------------------------------------------------------


def _of(value: object, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        raise _Broken(f"{where} is {_short(value)}, not {_KIND_NAMES[kind]}")
    return value


_KIND_NAMES = {dict: "an object", list: "a list", str: "text"}


def _each_of(values: list[Any], kind: type, where: str) -> None:
    if not all(type(value) is kind for value in values):
        wrong = next(value for value in values if type(value) is not kind)
        raise _Broken(f"{where} holds {_short(wrong)}, not {_KIND_NAMES[kind]}")


def _present(entries: list[dict[str, Any]], key: str, where: str) -> None:
    for i, entry in enumerate(entries):
        if key not in entry:
            raise _Broken(f"{where}[{i}] has no {key}")


def _naturals(values: list[Any], where: str) -> None:
    if not all(type(value) is int and value >= 0 for value in values):
        wrong = next(value for value in values if type(value) is not int or value < 0)
        raise _Broken(f"{where} is {_short(wrong)}, not a whole number from 0")


def _indices(values: list[Any], document: dict[str, Any], target: str, where: str) -> None:
    _naturals(values, where)
    count = len(document.get(target, []))
    if values and max(values) >= count:
        raise _Broken(f"{where} points at {target}[{_short(max(values))}], but there are {count}")


def _references(
    document: dict[str, Any], entries: list[dict[str, Any]], key: str, where: str, target: str, *, many: bool = False, required: bool = False
) -> None:
    """Property `key` of the entries points into the list `target`."""
    if required:
        _present(entries, key, where)
    values = [entry[key] for entry in entries if key in entry]
    if many:
        _each_of(values, list, f"{where}.{key}")
        values = [index for indices in values for index in indices]
    _indices(values, document, target, f"{where}.{key}")


def _numbers(values: object, size: int | None, where: str) -> None:
    if not isinstance(values, list) or (size is not None and len(values) != size):
        raise _Broken(f"{where} is {_short(values)}, not {size or 'a list of'} numbers")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or abs(value) > 1e30:
            raise _Broken(f"{where} holds {_short(value)}, not a finite number")


def _short(value: object) -> str:
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
