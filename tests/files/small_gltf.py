"""A small glTF made by hand, and a slow second opinion on what glTF means: node matrices, samplers and skins, one number at a time.

The figure has what makes real files hard: an armature scaled a hundredfold and turned by −90°, a node pose that is not the bind
pose, a foot that hangs below the root instead of its leg, a handle without skin, a helmet without weights, interleaved vertices,
normalised integers, and properties that nobody knows.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

QUARTER = (-np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))  # −90° about x, as (x y z w)
TYPES = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4", 16: "MAT4"}
COMPONENTS = {"f4": 5126, "u1": 5121, "u2": 5123, "u4": 5125, "i1": 5120, "i2": 5122}


class Writer:
    """Puts arrays into one buffer and counts accessors."""

    def __init__(self) -> None:
        self.json: dict[str, Any] = {"asset": {"version": "2.0"}, "bufferViews": [], "accessors": [], "buffers": [{"byteLength": 0}]}
        self.data = b""

    def view(self, data: bytes, **more: Any) -> int:
        self.data += bytes(-len(self.data) % 4)
        self.json["bufferViews"].append({"buffer": 0, "byteOffset": len(self.data), "byteLength": len(data), **more})
        self.data += data
        return len(self.json["bufferViews"]) - 1

    def array(self, values: Any, kind: str = "f4", **more: Any) -> int:
        values = np.asarray(values, f"<{kind}")
        values = values[:, None] if values.ndim == 1 else values
        entry = {"bufferView": self.view(values.tobytes()), "componentType": COMPONENTS[kind], "count": len(values), "type": TYPES[values.shape[1]], **more}
        if kind == "f4" and values.shape[1] in (1, 3):
            entry |= {"min": values.min(0).tolist(), "max": values.max(0).tolist()}
        self.json["accessors"].append(entry)
        return len(self.json["accessors"]) - 1

    def glb(self) -> bytes:
        self.json["buffers"][0]["byteLength"] = len(self.data)
        return glb_bytes(self.json, self.data)


def glb_bytes(content: dict[str, Any], data: bytes, *more: tuple[int, bytes]) -> bytes:
    text = json.dumps(content).encode()
    chunks = [(0x4E4F534A, text + b" " * (-len(text) % 4)), (0x004E4942, data + bytes(-len(data) % 4)), *more]
    body = b"".join(struct.pack("<II", len(chunk), kind) + chunk for kind, chunk in chunks)
    return struct.pack("<III", 0x46546C67, 2, 12 + len(body)) + body


# node: name, parent, translation at bind in the parent, turn of the node pose away from bind about z [rad]
BONES = [
    ("Root", -1, (0.0, 0.0, 0.0), 0.0),
    ("Body", 0, (0.0, 0.0, 0.010), 0.2),
    ("Head", 1, (0.0, 0.0, 0.006), -0.3),
    ("UpperLeg.L", 1, (0.001, 0.0, -0.001), 0.4),
    ("LowerLeg.L", 3, (0.0, 0.0005, -0.004), 0.1),
    ("Foot.L", 0, (0.001, 0.0, 0.001), 0.0),
    ("PoleTarget.L", 0, (0.001, -0.02, 0.005), 0.0),
]
FIRST = 2  # node number of the first bone
SKINNED = FIRST + len(BONES)
HELMET = SKINNED + 1


def figure(interpolation: str = "LINEAR") -> Writer:
    """One skinned mesh of a few vertices around every bone, a helmet, and one clip of 1 s at 10 keys per second."""
    writer = Writer()
    nodes: list[dict[str, Any]] = [{"name": "RootNode", "children": [1, SKINNED]}]
    nodes.append({"name": "Armature", "rotation": list(QUARTER), "scale": [100, 100, 100], "children": [FIRST]})
    bind = []
    for i, (name, parent, offset, turn) in enumerate(BONES):
        local = np.eye(4)
        local[:3, 3] = offset
        bind.append(local if parent < 0 else bind[parent] @ local)
        node = {"name": name, "translation": list(offset), "rotation": [0.0, 0.0, np.sin(turn / 2), np.cos(turn / 2)]}
        children = [FIRST + k for k, bone in enumerate(BONES) if bone[1] == i] + ([HELMET] if name == "Head" else [])
        nodes.append({**node, "children": children} if children else node)
    nodes.append({"name": "Skin", "mesh": 0, "skin": 0, "rotation": list(QUARTER), "scale": [100, 100, 100], "extras": {"tailor": "K."}})
    nodes.append({"name": "Helmet", "mesh": 1, "translation": [0.0, 0.0, 0.002], "rotation": [0.6, 0.0, 0.0, 0.8]})
    rng = np.random.default_rng(7)
    writer.json |= {
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": nodes,
        "meshes": [{"name": "cloth", "primitives": [_cloth(writer, bind, rng)]}, {"name": "helmet", "primitives": [_helmet(writer, rng)]}],
        "skins": [{"joints": list(range(FIRST, FIRST + len(BONES))), "inverseBindMatrices": writer.array([np.linalg.inv(A).T.ravel() for A in bind])}],
        "materials": [{"name": "red", "pbrMetallicRoughness": {"baseColorFactor": [1, 0, 0, 1]}, "extensions": {"ACME_glow": {"power": 3}}}],
        "animations": [_clip(writer, interpolation, rng)],
        "extensionsUsed": ["ACME_glow"],
        "extras": {"unknown": [1, {"deep": None}]},
    }
    return writer


def _cloth(writer: Writer, bind: list[np.ndarray], rng: np.random.Generator) -> dict[str, Any]:
    """Eight vertices around each weighted bone, positions and normals interleaved, weights as normalised bytes."""
    count = 8 * (len(BONES) - 1)
    positions = np.concatenate([A[:3, 3] + rng.normal(size=(8, 3)) * 0.001 for A in bind[:-1]])
    normals = rng.normal(size=(count, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    view = writer.view(np.concatenate([positions, normals], axis=1).astype("<f4").tobytes(), byteStride=24, target=34962)
    low, high = positions.astype("f4").min(0).tolist(), positions.astype("f4").max(0).tolist()
    accessors = writer.json["accessors"]
    accessors.append({"bufferView": view, "componentType": 5126, "count": count, "type": "VEC3", "min": low, "max": high})
    accessors.append({"bufferView": view, "byteOffset": 12, "componentType": 5126, "count": count, "type": "VEC3"})
    place = len(accessors) - 2
    joints = np.zeros((count, 4))
    joints[:, 0], joints[:, 1] = np.repeat(np.arange(len(BONES) - 1), 8), np.repeat(np.maximum([bone[1] for bone in BONES[:-1]], 0), 8)
    share = rng.integers(128, 256, count)
    weights = np.stack([share, 255 - share, 0 * share, 0 * share], axis=1)
    weights[joints[:, 0] == joints[:, 1]] = (255, 0, 0, 0)
    joints[weights == 0] = 0
    faces = np.arange(count).reshape(-1, 4)[:, :3]
    return {
        "attributes": {
            "POSITION": place,
            "NORMAL": place + 1,
            "JOINTS_0": writer.array(joints, "u1"),
            "WEIGHTS_0": writer.array(weights, "u1", normalized=True),
            "TEXCOORD_0": writer.array(rng.random((count, 2))),
        },
        "indices": writer.array(faces.ravel(), "u2"),
        "material": 0,
    }


def _helmet(writer: Writer, rng: np.random.Generator) -> dict[str, Any]:
    return {"attributes": {"POSITION": writer.array(rng.normal(size=(6, 3)) * 0.001), "COLOR_0": writer.array(rng.random((6, 4)))}, "mode": 5}


def _clip(writer: Writer, interpolation: str, rng: np.random.Generator) -> dict[str, Any]:
    keys = 11
    clock = writer.array(np.arange(keys) / 10)
    samplers, channels = [], []
    for i, (name, _, offset, _) in enumerate(BONES):
        turns = rng.normal(size=(keys, 4)) * 0.3 + (0, 0, 0, 1)
        turns /= np.linalg.norm(turns, axis=1, keepdims=True)
        moves = np.array(offset) + rng.normal(size=(keys, 3)) * 0.001
        for path, values in (("rotation", turns), ("translation", moves)):
            if path == "translation" and name not in ("Body", "Foot.L"):
                continue
            if interpolation == "CUBICSPLINE":
                tangents = rng.normal(size=(2, *values.shape)) * 0.0005
                values = np.stack([tangents[0], values, tangents[1]], axis=1).reshape(-1, values.shape[1])
            samplers.append({"input": clock, "interpolation": interpolation, "output": writer.array(values)})
            channels.append({"sampler": len(samplers) - 1, "target": {"node": FIRST + i, "path": path}})
    return {"name": "dance", "samplers": samplers, "channels": channels, "extras": {"bars": 4}}


def save(writer: Writer, folder: Path, name: str = "figure.glb") -> Path:
    path = folder / name
    path.write_bytes(writer.glb())
    return path


# --- the second opinion -----------------------------------------------------------------------------------------------


def read_glb(data: bytes) -> tuple[dict[str, Any], bytes]:
    length = struct.unpack_from("<I", data, 12)[0]
    return json.loads(data[20 : 20 + length]), data[28 + length :]


def floats(content: dict[str, Any], data: bytes, index: int) -> np.ndarray:
    """An accessor of float32 or normalised bytes, row after row."""
    accessor = content["accessors"][index]
    view = content["bufferViews"][accessor["bufferView"]]
    width = next(k for k, name in TYPES.items() if name == accessor["type"])
    dtype = {5126: "<f4", 5121: "<u1", 5123: "<u2"}[accessor["componentType"]]
    row = np.dtype(dtype).itemsize * width
    start, stride = view.get("byteOffset", 0) + accessor.get("byteOffset", 0), view.get("byteStride", row)
    rows = [np.frombuffer(data, dtype, width, start + i * stride) for i in range(accessor["count"])]
    return np.array(rows, np.float64) / (255 if accessor.get("normalized") else 1)


def quat_matrix(q: np.ndarray) -> np.ndarray:
    x, y, z, w = q / np.linalg.norm(q)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * K + 2 * K @ K


def sample(content: dict[str, Any], data: bytes, sampler: dict[str, Any], t: float, turn: bool) -> np.ndarray:
    times, values = floats(content, data, sampler["input"])[:, 0], floats(content, data, sampler["output"])
    kind = sampler.get("interpolation", "LINEAR")
    k = int(np.clip(np.searchsorted(times, t + 1e-9) - 1, 0, len(times) - 2))
    dt = times[k + 1] - times[k]
    s = min(max((t - times[k]) / dt, 0.0), 1.0)
    if kind == "STEP":
        return values[k + 1 if s >= 1 - 1e-6 else k]
    if kind == "CUBICSPLINE":
        v = values.reshape(len(times), 3, -1)
        start = (2 * s**3 - 3 * s**2 + 1) * v[k, 1] + dt * (s**3 - 2 * s**2 + s) * v[k, 2]
        return start + (3 * s**2 - 2 * s**3) * v[k + 1, 1] + dt * (s**3 - s**2) * v[k + 1, 0]
    a, b = values[k], values[k + 1]
    if not turn:
        return a * (1 - s) + b * s
    cosine = a @ b
    a, cosine = (-a, -cosine) if cosine < 0 else (a, cosine)
    angle = np.arccos(min(cosine, 1.0))
    return a * (1 - s) + b * s if angle < 1e-6 else (np.sin((1 - s) * angle) * a + np.sin(s * angle) * b) / np.sin(angle)


def world(content: dict[str, Any], data: bytes, clip: int | None = None, t: float = 0.0) -> list[np.ndarray]:
    """The world matrix of every node, at rest or at a time of a clip."""
    nodes = [dict(node) for node in content["nodes"]]
    if clip is not None:
        for channel in content["animations"][clip]["channels"]:
            target = channel["target"]
            sampler = content["animations"][clip]["samplers"][channel["sampler"]]
            nodes[target["node"]][target["path"]] = sample(content, data, sampler, t, target["path"] == "rotation")
    parents = {child: i for i, node in enumerate(nodes) for child in node.get("children", [])}
    locals_ = []
    for node in nodes:
        A = np.eye(4)
        A[:3, :3] = quat_matrix(np.array(node.get("rotation", (0, 0, 0, 1)), float)) * np.array(node.get("scale", (1, 1, 1)), float)
        A[:3, 3] = node.get("translation", (0, 0, 0))
        locals_.append(np.array(node["matrix"], float).reshape(4, 4).T if "matrix" in node else A)

    def place(i: int) -> np.ndarray:
        return place(parents[i]) @ locals_[i] if i in parents else locals_[i]

    return [place(i) for i in range(len(nodes))]


def skinned(content: dict[str, Any], data: bytes, A_world: list[np.ndarray], node: int) -> np.ndarray:
    """Vertices of the first primitive of a mesh node, as glTF defines them."""
    entry = content["nodes"][node]
    attributes = content["meshes"][entry["mesh"]]["primitives"][0]["attributes"]
    p = np.concatenate([floats(content, data, attributes["POSITION"]), np.ones((content["accessors"][attributes["POSITION"]]["count"], 1))], axis=1)
    if "skin" not in entry:
        return (p @ A_world[node].T)[:, :3]
    skin = content["skins"][entry["skin"]]
    inverse = [A.reshape(4, 4).T for A in floats(content, data, skin["inverseBindMatrices"])]
    joints, weights = floats(content, data, attributes["JOINTS_0"]).astype(int), floats(content, data, attributes["WEIGHTS_0"])
    moved = [A_world[joint] @ A for joint, A in zip(skin["joints"], inverse, strict=True)]
    return np.array([sum(w * (moved[j] @ v)[:3] for j, w in zip(row, share, strict=True)) for v, row, share in zip(p, joints, weights, strict=True)])
