"""GLB and glTF as they lie on disk: what we do not know survives, what is broken is refused in one sentence."""

from __future__ import annotations

import base64
import copy
import json
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_gltf import Writer, figure, glb_bytes, save

from bunraku.errors import BunrakuError, FileProblem, FormatProblem
from bunraku.files.gltf import load_character, load_clip, save_character
from bunraku.files.gltf.document import read_document, write_document

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def test_a_document_comes_back_as_it_was(tmp_path: Path) -> None:
    path = save(figure(), tmp_path, "Käfer 1 — ü.glb")
    document = read_document(path)
    write_document(document, tmp_path / "again.glb")
    again = read_document(tmp_path / "again.glb")
    assert again.json == document.json
    assert list(again.json) == list(document.json)
    assert again.buffers == document.buffers


def test_unknown_chunks_survive(tmp_path: Path) -> None:
    writer = figure()
    writer.glb()
    (tmp_path / "a.glb").write_bytes(glb_bytes(writer.json, writer.data, (0x12345678, b"who knows   ")))
    write_document(read_document(tmp_path / "a.glb"), tmp_path / "b.glb")
    assert read_document(tmp_path / "b.glb").chunks == ((0x12345678, b"who knows   "),)


@pytest.mark.parametrize("inside", [True, False])
def test_gltf_with_its_buffer_inside_or_beside_it(tmp_path: Path, inside: bool) -> None:
    writer = figure()
    writer.glb()
    (tmp_path / "my bones.bin").write_bytes(writer.data)
    uri = "data:application/octet-stream;base64," + base64.b64encode(writer.data).decode() if inside else "my%20bones.bin"
    writer.json["buffers"][0]["uri"] = uri
    (tmp_path / "a.gltf").write_text(json.dumps(writer.json))
    document = read_document(tmp_path / "a.gltf")
    assert document.buffers == (writer.data,)
    for name in ("b.glb", "c.gltf"):
        write_document(document, tmp_path / name)
        (tmp_path / "my bones.bin").rename(tmp_path / "away")
        assert read_document(tmp_path / name).buffers == (writer.data,)
        (tmp_path / "away").rename(tmp_path / "my bones.bin")
    assert load_character(tmp_path / "c.gltf").skeleton.joints == load_character(tmp_path / "a.gltf").skeleton.joints


def test_a_motion_needs_no_second_buffer_wherever_the_first_one_lay(tmp_path: Path) -> None:
    writer = figure()
    writer.glb()
    (tmp_path / "bones.bin").write_bytes(writer.data)
    writer.json["buffers"][0]["uri"] = "bones.bin"
    (tmp_path / "a.gltf").write_text(json.dumps(writer.json))
    character = load_character(tmp_path / "a.gltf")
    save_character(character, tmp_path / "b.glb", load_clip(character, 0))
    (buffer,) = read_document(tmp_path / "b.glb").json["buffers"]
    assert "uri" not in buffer
    assert read_document(tmp_path / "b.glb").buffers[0].startswith(writer.data)
    assert (tmp_path / "bones.bin").read_bytes() == writer.data


def test_images_beside_a_gltf_are_carried_inside(tmp_path: Path) -> None:
    (tmp_path / "skin.png").write_bytes(PNG)
    (tmp_path / "a.gltf").write_text(json.dumps({"asset": {"version": "2.0"}, "images": [{"uri": "skin.png", "name": "skin"}]}))
    write_document(read_document(tmp_path / "a.gltf"), tmp_path / "b.glb")
    assert read_document(tmp_path / "b.glb").json["images"] == [{"uri": "data:image/png;base64," + base64.b64encode(PNG).decode(), "name": "skin"}]


def broken_glb(edit: Any) -> bytes:
    return edit(bytearray(figure().glb()))


def _overwrite(at: int, value: int) -> Any:
    def edit(data: bytearray) -> bytes:
        struct.pack_into("<I", data, at, value)
        return bytes(data)

    return edit


BROKEN = {
    "empty": (lambda data: b"", "neither GLB"),
    "other magic": (lambda data: b"glTX" + data[4:], "neither GLB"),
    "header only": (lambda data: bytes(data[:12]), "truncated"),
    "half": (lambda data: bytes(data[: len(data) // 2]), "truncated"),
    "version 1": (_overwrite(4, 1), "version 1"),
    "length lies": (_overwrite(8, 2**31), "truncated"),
    "chunk length lies": (_overwrite(12, 2**31), "chunk claims"),
    "first chunk not JSON": (_overwrite(16, 7), "not JSON"),
    "garbage for JSON": (lambda data: bytes(data[:20] + b"#" * 40 + data[60:]), "JSON"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_glb_is_refused(tmp_path: Path, name: str) -> None:
    edit, message = BROKEN[name]
    (tmp_path / "a.glb").write_bytes(broken_glb(edit))
    with pytest.raises(FormatProblem, match=message):
        load_character(tmp_path / "a.glb")


def _set(*keys: Any) -> Any:
    """An edit of the JSON: `_set("nodes", 0, "children", value)`."""
    *path, last, value = keys

    def edit(content: Any) -> None:
        for key in path:
            content = content[key]
        content[last] = value

    return edit


WRONG = {
    "version": (_set("asset", "version", "1.0"), "version"),
    "no asset": (lambda content: content.pop("asset"), "asset"),
    "cycle": (_set("nodes", 4, "children", [0]), "cycle"),
    "two parents": (_set("nodes", 0, "children", [1, 2, 9]), "two parents"),
    "child out of range": (_set("nodes", 0, "children", [99]), r"nodes\[99\]"),
    "child is text": (_set("nodes", 0, "children", ["x"]), "whole number"),
    "nodes is a number": (_set("nodes", 5), "not a list"),
    "joint out of range": (_set("skins", 0, "joints", [-1]), "whole number"),
    "translation of two": (_set("nodes", 3, "translation", [0, 0]), "3 numbers"),
    "infinite rotation": (_set("nodes", 3, "rotation", [0, 0, 0, 1e300]), "finite"),
    "huge count": (_set("accessors", 0, "count", 10**9), "needs"),
    "count is a float": (_set("accessors", 0, "count", 1.5), "whole number"),
    "buffer longer than its data": (_set("buffers", 0, "byteLength", 10**9), "claims"),
    "buffer missing": (_set("buffers", 0, "uri", "gone.bin"), "no file"),
    "buffer on the net": (_set("buffers", 0, "uri", "https://example.com/a.bin"), "own folder"),
    "buffer elsewhere": (_set("buffers", 0, "uri", "../a.bin"), "outside"),
    "bad base64": (_set("buffers", 0, "uri", "data:;base64,???"), "base64"),
    "no skin": (lambda content: [content.pop("skins"), content["nodes"][9].pop("skin")], "no skin"),
    "Draco": (_set("extensionsRequired", ["KHR_draco_mesh_compression"]), "Draco"),
    "meshopt": (_set("extensionsRequired", ["EXT_meshopt_compression"]), "meshopt"),
    "weights without joints": (lambda content: content["meshes"][0]["primitives"][0]["attributes"].pop("WEIGHTS_0"), "without WEIGHTS_0"),
    "face beyond the vertices": (lambda content: content["meshes"][0]["primitives"][0]["attributes"].update(POSITION=9), "accessor|positions|vertex"),
    "interpolation": (_set("animations", 0, "samplers", 0, "interpolation", "MAGIC"), "MAGIC"),
    "input is an output": (lambda content: content["animations"][0]["samplers"][0].update(input=0), "accessor 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_document_is_refused(tmp_path: Path, name: str) -> None:
    edit, message = WRONG[name]
    writer = figure()
    writer.glb()
    edit(writer.json)
    (tmp_path / "a.glb").write_bytes(glb_bytes(writer.json, writer.data))
    with pytest.raises((FormatProblem, FileProblem), match=message):
        load_clip(load_character(tmp_path / "a.glb"))


def test_numbers_beyond_floats_and_deep_nesting_are_no_json(tmp_path: Path) -> None:
    for text in ('{"asset":{"version":"2.0"},"extras":1e999}', '{"asset":NaN}', '{"a":' + "[" * 100_000 + "]" * 100_000 + "}", "{", '{"a":1'):
        (tmp_path / "a.gltf").write_text(text)
        with pytest.raises(FormatProblem, match="JSON"):
            read_document(tmp_path / "a.gltf")


def test_a_clip_that_claims_a_year_is_not_sampled(tmp_path: Path) -> None:
    writer = figure()
    start = writer.json["bufferViews"][writer.json["accessors"][writer.json["animations"][0]["samplers"][0]["input"]]["bufferView"]]["byteOffset"]
    writer.data = writer.data[: start + 40] + np.array([3e7], "<f4").tobytes() + writer.data[start + 44 :]
    with pytest.raises(FormatProblem, match="claims to last 3e\\+07 s"):
        load_clip(load_character(save(writer, tmp_path)))


def test_missing_files_folders_and_other_suffixes(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="no file"):
        load_character(tmp_path / "no.glb")
    with pytest.raises(FileProblem, match="folder"):
        load_character(tmp_path)
    document = read_document(save(figure(), tmp_path))
    with pytest.raises(FileProblem, match=r"\.glb or \.gltf"):
        write_document(document, tmp_path / "a.fbx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure.glb"]


JUNK = [None, True, -1, 0, 3, 10**9, 1.5, 1e300, "x", [], [0], {}, {"a": 1}, [[]], [None]]


def _places(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [path] * bool(path) + [place for key, value in inner for place in _places(value, (*path, key))]


def test_junk_anywhere_in_the_json_is_refused_or_harmless(tmp_path: Path) -> None:
    """Every value in turn becomes something else: there may be an error of ours, never another exception."""
    writer = figure("CUBICSPLINE")
    writer.glb()
    places, draw = _places(writer.json), random.Random(1)
    messages = []
    for place in draw.sample(places, 200):
        content = copy.deepcopy(writer.json)
        _set(*place, draw.choice(JUNK))(content)
        (tmp_path / "a.glb").write_bytes(glb_bytes(content, writer.data))
        try:
            character = load_character(tmp_path / "a.glb")
            if character.clips:
                load_clip(character)
        except BunrakuError as error:
            messages.append(str(error))
    assert len(messages) > 60
    assert not any("\n" in message for message in messages)


def test_flipped_bytes_are_refused_or_harmless(tmp_path: Path) -> None:
    data, draw = figure().glb(), random.Random(2)
    for _ in range(100):
        broken = bytearray(data)
        for _ in range(3):
            broken[draw.randrange(len(broken))] = draw.randrange(256)
        (tmp_path / "a.glb").write_bytes(broken)
        try:
            character = load_character(tmp_path / "a.glb")
            if character.clips:
                load_clip(character)
        except BunrakuError:
            pass


def test_a_writer_of_our_own_makes_what_it_should() -> None:
    writer = Writer()
    writer.array(np.zeros((2, 3)))
    assert struct.unpack_from("<III", writer.glb()) == (0x46546C67, 2, len(writer.glb()))
