"""Fingerprints of weights: of every byte where a file is small, of pieces where it is large."""

from __future__ import annotations

from pathlib import Path

from bunraku.generator.text.tensors import file_hash, fingerprint


def test_small_files_are_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"weights")
    assert fingerprint(tmp_path / "a") == file_hash(tmp_path / "a")


def test_large_files_are_told_apart_by_size_ends_and_between(tmp_path: Path) -> None:
    path, size = tmp_path / "b", 3 << 20
    seen = set()
    for at, length in ((0, size), (1, size), (size // 15 * 7, size), (size - 1, size), (0, size + 1)):
        data = bytearray(length)
        data[at] = 1
        path.write_bytes(data)
        seen.add(fingerprint(path))
    assert len(seen) == 5
