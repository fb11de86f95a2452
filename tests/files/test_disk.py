"""Paths that are no ordinary files, and names at the limit of what a disk allows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bunraku.errors import FileProblem
from bunraku.files.disk import existing_file, read_bytes, write_bytes
from bunraku.files.formats import load_motion


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.bvh")
    (tmp_path / "ring.bvh").symlink_to("ring.bvh")
    (tmp_path / "zero.npz").symlink_to("/dev/zero")
    (tmp_path / "a.bvh").write_text("")
    for name, said in (
        ("pipe.bvh", "pipe"),
        ("zero.npz", "device"),
        ("ring.bvh", "cannot be read"),
        ("n" * 300, "too long"),
        ("a\0b", "null"),
        ("a.bvh/b.bvh", "no file"),
        (".", "folder"),
    ):
        with pytest.raises(FileProblem, match=said) as raised:
            existing_file(tmp_path / name)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("suffix", ["bvh", "npz", "usda", "fbx", "glb"])
def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"a.{suffix}").write_text("")
    monkeypatch.setattr("os.access", lambda *_, **__: False)  # whoever runs the tests may read everything
    with pytest.raises(FileProblem, match="permission denied"):
        load_motion(tmp_path / f"a.{suffix}")


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.bvh")
    (tmp_path / "ring.bvh").symlink_to("ring.bvh")
    (tmp_path / "a.bvh").write_text("")
    before = sorted(tmp_path.iterdir())
    for name, said in (("pipe.bvh", "pipe"), ("ring.bvh", "cannot be written"), ("n" * 300, "too long"), ("a\0b", "null"), ("a.bvh/b.bvh", "folder")):
        with pytest.raises(FileProblem, match=said):
            write_bytes(tmp_path / name, b"new")
    assert sorted(tmp_path.iterdir()) == before


def test_the_longest_name_that_a_disk_takes_is_written(tmp_path: Path) -> None:
    longest = tmp_path / ("n" * 251 + ".bvh")
    write_bytes(longest, b"new")
    assert read_bytes(longest) == b"new"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.bvh").write_bytes(b"old")
    (tmp_path / "link.bvh").symlink_to(tmp_path / "elsewhere" / "a.bvh")
    write_bytes(tmp_path / "link.bvh", b"new")
    assert (tmp_path / "link.bvh").is_symlink()
    assert (tmp_path / "elsewhere" / "a.bvh").read_bytes() == b"new"
