"""Safetensors files in our sentences: whole or refused, and what lies in their header."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from torch import Tensor

from bunraku.errors import FormatProblem
from bunraku.files.disk import existing_file

_SAMPLE_BYTES, _SAMPLES = 1 << 16, 16


def read_tensors(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All tensors of a file, mapped and not copied, and its texts."""
    from safetensors import SafetensorError, safe_open

    path = existing_file(path)
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118, it is no mapping
    except (SafetensorError, OSError) as error:
        raise FormatProblem(f"'{path}' is not a whole safetensors file ({error}); it may be truncated: copy or download it again.") from error


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with existing_file(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def fingerprint(path: Path) -> str:
    """Like `file_hash`, of the size and 16 evenly spaced pieces: it tells 16 GB of weights from others without reading them all."""
    size = existing_file(path).stat().st_size
    if size <= _SAMPLES * _SAMPLE_BYTES:
        return file_hash(path)
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as stream:
        for i in range(_SAMPLES):
            stream.seek((size - _SAMPLE_BYTES) * i // (_SAMPLES - 1))
            digest.update(stream.read(_SAMPLE_BYTES))
    return digest.hexdigest()
