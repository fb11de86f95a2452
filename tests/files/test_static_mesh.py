"""Meshes without a rig, from every format: the same cube whoever wrote it, and a sentence for what is no mesh."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from small_gltf import Writer

from bunraku.errors import BadValue, BunrakuError
from bunraku.files.obj import load_obj
from bunraku.files.static_mesh import load_static
from bunraku.geometry.mesh import Mesh

CORNERS = np.array([[x, y, z] for x in (0.0, 2.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
QUADS = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
TRIANGLES = QUADS[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3)


def obj_text(style: str) -> str:
    lines = [f"v {x} {y} {z}" + (" 1 0 0" if style == "coloured" else "") for x, y, z in CORNERS]
    if style in ("full", "textured"):
        lines += ["vt 0 0", "vt 1 0.25", *["vn 0 0 1"]]
    words = {
        "plain": lambda i: f"{i + 1}",
        "coloured": lambda i: f"{i + 1}",
        "backwards": lambda i: f"{i - 8}",
        "textured": lambda i: f"{i + 1}/{i % 2 + 1}",
        "full": lambda i: f"{i + 1}/-1/1",
        "normals": lambda i: f"{i + 1}",
    }[style]
    return "\n".join(["# a cube", "o Cube", *lines, "s off", *("f " + " ".join(words(i) for i in quad) for quad in QUADS)])


def stl_bytes(text: bool) -> bytes:
    rows = CORNERS[TRIANGLES]
    if text:
        facets = ("facet normal 0 0 0\nouter loop\n" + "".join(f"vertex {x} {y} {z}\n" for x, y, z in row) + "endloop\nendfacet\n" for row in rows)
        return ("solid cube\n" + "".join(facets) + "endsolid cube\n").encode()
    return b"solid but binary".ljust(80) + struct.pack("<I", len(rows)) + b"".join(struct.pack("<12fH", 0, 0, 0, *row.ravel(), 0) for row in rows)


def ply_bytes(form: str, faces: np.ndarray = QUADS, extra: bool = False) -> bytes:
    order = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}[form]
    head = f"ply\nformat {form} 1.0\ncomment made\nelement vertex 8\nproperty float x\nproperty float y\nproperty float z\n"
    head += "property uchar red\nproperty uchar green\nproperty uchar blue\n"
    head += f"element face {len(faces)}\n" + "property list uchar int vertex_indices\n" + ("property uchar flags\n" if extra else "") + "end_header\n"
    if not order:
        rows = [f"{x} {y} {z} 255 0 0" for x, y, z in CORNERS] + [f"{len(face)} " + " ".join(map(str, face)) + (" 7" if extra else "") for face in faces]
        return (head + "\n".join(rows) + "\n").encode()
    body = b"".join(struct.pack(f"{order}3f3B", *place, 255, 0, 0) for place in CORNERS)
    return head.encode() + body + b"".join(struct.pack(f"{order}B{len(f)}i", len(f), *f) + b"\7" * extra for f in faces)


def glb_bytes() -> bytes:
    writer = Writer()
    primitive = {"attributes": {"POSITION": writer.array(CORNERS)}, "indices": writer.array(TRIANGLES.ravel(), "u2")}
    writer.json |= {
        "meshes": [{"primitives": [primitive], "extras": {"kept": 1}}],
        "nodes": [{"children": [1], "translation": [0, 0, 0.25]}, {"mesh": 0, "translation": [0, 0, -0.25], "name": "cube"}],
        "scenes": [{"nodes": [0]}],
        "scene": 0,
    }
    return writer.glb()


FILES = {
    "plain.obj": obj_text("plain").encode(),
    "coloured.obj": obj_text("coloured").encode(),
    "backwards.obj": obj_text("backwards").encode(),
    "textured.obj": obj_text("textured").encode(),
    "full.obj": obj_text("full").encode(),
    "windows.obj": obj_text("plain").replace("\n", "\r\n").encode(),
    "continued.obj": obj_text("plain").replace("f 1 2", "f 1 \\\n2").encode(),
    "text.stl": stl_bytes(True),
    "binary.stl": stl_bytes(False),
    "text.ply": ply_bytes("ascii"),
    "little.ply": ply_bytes("binary_little_endian"),
    "big.ply": ply_bytes("binary_big_endian"),
    "extra.ply": ply_bytes("binary_big_endian", extra=True),
    "extra text.ply": ply_bytes("ascii", extra=True),
    "cube.glb": glb_bytes(),
}


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def volume(mesh: Mesh) -> float:
    a, b, c = mesh.vertices.double()[mesh.faces].unbind(1)
    return float((a * torch.linalg.cross(b, c)).sum() / 6)


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_cube(tmp_path: Path, name: str) -> None:
    mesh = load_static(write(tmp_path, name, FILES[name]), up=None if name.endswith("glb") else "y").mesh
    assert len(mesh.faces) == 12
    assert abs(volume(mesh)) == pytest.approx(2.0, rel=1e-6)
    assert sorted({tuple(place) for place in mesh.vertices.tolist()}) == sorted(map(tuple, CORNERS.tolist()))
    if "coloured" in name or name.endswith(".ply"):
        assert mesh.colours is not None
        assert (mesh.colours == torch.tensor([1.0, 0.0, 0.0])).all()
    if name == "full.obj":
        assert mesh.uvs is not None
        assert mesh.normals is not None
        assert mesh.uvs[0].tolist() == [1, 0.75]  # counted from the upper left
    if name == "textured.obj":
        assert len(mesh.vertices) == 8
        assert mesh.normals is None


@pytest.mark.parametrize("name", FILES)
def test_trimesh_reads_the_same(tmp_path: Path, name: str) -> None:
    trimesh = pytest.importorskip("trimesh")
    path = write(tmp_path, name, FILES[name])
    theirs = trimesh.load(path, force="mesh", process=False)
    ours = load_static(path, up=None if name.endswith("glb") else "y").mesh
    mine, other = (np.sort(np.sort(np.asarray(places).reshape(-1, 9).round(5)), axis=0) for places in (ours.vertices[ours.faces], theirs.triangles))
    assert mine.shape == other.shape
    assert np.abs(np.asarray(ours.vertices).mean(0) - CORNERS.mean(0)).max() < 0.2


def test_materials_and_textures_of_an_obj(tmp_path: Path) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (4, 4), (255, 0, 0)).save(picture, "PNG")
    write(tmp_path, "skin.png", picture.getvalue())
    mtl = "newmtl skin\nKd 0 0 0\nmap_Kd C:\\somewhere\\skin.png\nnewmtl cloth\nKd 0.1 0.2 0.3\nd 0.5\nmap_Kd gone.png\n"
    write(tmp_path, "cube.mtl", mtl.encode())
    lines = obj_text("full").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("f"))
    text = "\n".join(["mtllib cube.mtl", *lines[:at], "usemtl cloth", *lines[at : at + 2], "usemtl skin", *lines[at + 2 :]])
    mesh, notes = load_obj(write(tmp_path, "cube.obj", text.encode()))
    cloth, skin = mesh.materials
    assert (cloth.name, cloth.base_color, cloth.image) == ("cloth", (0.1, 0.2, 0.3, 0.5), None)
    assert (skin.base_color, skin.image) == ((1, 1, 1, 1), picture.getvalue())
    assert mesh.face_materials is not None
    assert mesh.face_materials.tolist() == [0] * 4 + [1] * 8
    assert "gone.png" in notes["material cloth"]
    assert load_obj(write(tmp_path, "alone.obj", text.replace("cube.mtl", "lost.mtl").encode()))[1]["lost.mtl"].startswith("materials were not read")


def test_units_and_up(tmp_path: Path) -> None:
    path = write(tmp_path, "cube.obj", FILES["plain.obj"])
    assert load_static(path).notes == {}
    lying = load_static(path, unit=0.01, up="z").mesh
    assert lying.vertices.amax(0).tolist() == pytest.approx([0.02, 0.01, 0])
    assert volume(lying) == pytest.approx(volume(load_static(path).mesh) * 1e-6)
    stl = load_static(write(tmp_path, "cube.stl", FILES["binary.stl"]))
    assert "Z is taken as up" in stl.notes["up"]
    assert stl.mesh.vertices.amin(0).tolist() == pytest.approx([0, 0, -1])
    assert "200 m large" in load_static(path, unit=100).notes.get("unit", "200 m large")
    large = obj_text("plain").replace("2.0", "170")
    assert "170 m large" in load_static(write(tmp_path, "cm.obj", large.encode())).notes["unit"]
    with pytest.raises(BadValue, match="metres with Y up"):
        load_static(write(tmp_path, "cube.glb", FILES["cube.glb"]), unit=0.01)
    with pytest.raises(BadValue, match="positive number of metres"):
        load_static(path, unit=-1)


BAD = {
    "empty.obj": (b"", "no vertices"),
    "cloud.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\n", "no faces"),
    "nan.obj": (b"v 0 0 nan\n", "line 1"),
    "words.obj": (b"v 0 0 zero\n", "line 1"),
    "far.obj": (b"v 0 0 0\nv 1 0 0\nf 1 2 3\n", "line 3"),
    "huge.obj": (b"v 0 0 0\nv 4e9 0 0\nv 0 1 0\nf 1 2 3\n", "units from the origin"),
    "line.obj": (b"v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n", "none of which has an area"),
    "point.obj": (b"v 1 1 1\nv 1 1 1\nv 1 1 1\nf 1 2 3\n", "none of which has an area"),
    "cut.stl": (stl_bytes(False)[:-20], "ends after 11"),
    "cut text.stl": (stl_bytes(True)[:400], "triangles have three each|not three numbers|no STL"),
    "nan.stl": (stl_bytes(True).replace(b"vertex 0.0 0.0 0.0", b"vertex nan 0 0"), "not finite"),
    "short.stl": (b"hello", "no STL file"),
    "cut.ply": (ply_bytes("binary_little_endian")[:-3], "cut off"),
    "cut text.ply": (ply_bytes("ascii")[:-6], "cut off|face"),
    "far.ply": (ply_bytes("ascii", QUADS + 4), "names vertex"),
    "cloud.ply": (ply_bytes("ascii", QUADS[:0]), "no faces"),
    "no.ply": (b"plyply", "not a PLY"),
    "cube.fbx": (b"Kaydara", "no mesh that can be read"),
    "bad.glb": (b"glTF", "truncated"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.usefixtures("unchecked_shapes")
def test_what_is_no_mesh_is_said_in_words(tmp_path: Path, name: str) -> None:
    data, said = BAD[name]
    with pytest.raises(BunrakuError, match=said) as caught:
        load_static(write(tmp_path, name, data), up=None)
    assert name in str(caught.value)


def test_textures_of_absurd_size_are_left_out(tmp_path: Path) -> None:
    head = struct.pack(">4sIIBBBBB", b"IHDR", 100_000, 100_000, 8, 2, 0, 0, 0)
    data = struct.pack(">I4sI", 0, b"IDAT", zlib.crc32(b"IDAT"))
    bomb = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head)) + data
    write(tmp_path, "bomb.png", bomb)
    write(tmp_path, "m.mtl", b"newmtl a\nmap_Kd bomb.png\n")
    mesh, notes = load_obj(write(tmp_path, "m.obj", ("mtllib m.mtl\nusemtl a\n" + obj_text("textured")).encode()))
    assert mesh.materials[0].image is None
    assert "pixels" in str(notes)


def test_a_rigged_glb_is_read_without_its_rig(tmp_path: Path) -> None:
    import bunraku

    character = bunraku.mannequin(bunraku.skeleton("soma30"))
    bunraku.save_character(character, tmp_path / "body.glb")
    loaded = load_static(tmp_path / "body.glb")
    assert "left out" in loaded.notes["rig"]
    assert torch.allclose(loaded.mesh.vertices, character.mesh.vertices, atol=1e-6)
