"""NPZ archives read without trust: no pickle, and no array larger than the bytes that really lie in the file.

`numpy.load` unpickles object arrays when asked to, and allocates what an array's header claims. Here the header of each array
is compared with the bytes that follow it, and a member that claims to unpack to far more than it is packed in is not unpacked.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bunraku.errors import FormatProblem
from bunraku.files.disk import MAX_BYTES, existing_file, write_atomically

_BOMB_BYTES = 256 << 20  # members smaller than this may be packed as tightly as they like
_BOMB_RATIO = 200  # motion packs 2 to 20 times smaller; zeros 1000 times
_KINDS = "biufUS"  # bool, integers, floats, text
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, NotImplementedError, RuntimeError)


class Archive:
    """The named arrays of one NPZ file; each is read when asked for."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = existing_file(path)
        try:
            with zipfile.ZipFile(self.path) as archive:
                self._members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        except _BROKEN as error:
            raise FormatProblem(f"'{self.path}' is not a whole NPZ archive ({error}); it may be truncated: copy or export it again.") from error

    def __contains__(self, name: str) -> bool:
        return name in self._members

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def array(self, name: str) -> np.ndarray:
        """One array; its shape must fit the bytes in the file."""
        if name not in self._members:
            raise FormatProblem(f"'{self.path}' has no array '{name}' (it has: {', '.join(self.names) or 'nothing'}).")
        info = self._members[name]
        if info.file_size > MAX_BYTES or (info.file_size > _BOMB_BYTES and info.file_size > _BOMB_RATIO * info.compress_size):
            size = f"{info.file_size / 2**30:.2f} GiB out of {info.compress_size} packed bytes"
            raise FormatProblem(f"'{self.path}': array '{name}' claims {size}; no motion packs like that, so it is not read.")
        try:
            with zipfile.ZipFile(self.path) as archive:
                return self._parse(name, archive.read(info))
        except _BROKEN as error:
            raise FormatProblem(f"'{self.path}': array '{name}' is damaged ({error}); export the file again.") from error

    def _parse(self, name: str, data: bytes) -> np.ndarray:
        stream = io.BytesIO(data)
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise FormatProblem(f"'{self.path}': array '{name}' has NPY version {version}; versions 1.0 and 2.0 hold plain arrays.")
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = header(stream)
        if dtype.hasobject:
            raise FormatProblem(f"'{self.path}': array '{name}' holds pickled Python objects, which could run code; save it as plain numbers or text.")
        if dtype.kind not in _KINDS or dtype.itemsize == 0:
            raise FormatProblem(f"'{self.path}': array '{name}' has the type {dtype}; numbers, bool or text are needed.")
        claimed, present = math.prod(shape) * dtype.itemsize, len(data) - stream.tell()
        if claimed != present or min(shape, default=1) < 0:
            raise FormatProblem(f"'{self.path}': array '{name}' claims the shape {shape} ({claimed} bytes) but {present} bytes follow; the file is damaged.")
        values = np.frombuffer(bytearray(data), dtype=dtype, offset=stream.tell())
        return values.reshape(shape[::-1]).T if fortran else values.reshape(shape)

    def numbers(self, name: str) -> np.ndarray:
        """`array`, which must hold finite numbers; as float32, or float64 where it is stored so."""
        values = self.array(name)
        if values.dtype.kind in "US":
            raise FormatProblem(f"'{self.path}': array '{name}' holds text; numbers are needed.")
        values = values.astype(np.float64 if values.dtype == np.float64 else np.float32)
        if not np.isfinite(values).all():
            first = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
            raise FormatProblem(f"'{self.path}': array '{name}' is not finite at index {first}; repair or cut that frame.")
        return values

    def scalar(self, name: str) -> float:
        values = self.numbers(name)
        if values.size != 1:
            raise FormatProblem(f"'{self.path}': '{name}' has the shape {values.shape}; one number is needed.")
        return float(values.reshape(()))

    def text(self, name: str) -> str:
        values = self.array(name)
        if values.dtype.kind not in "US" or values.size != 1:
            raise FormatProblem(f"'{self.path}': '{name}' is {values.dtype} of shape {values.shape}; one text is needed.")
        value = values.reshape(()).item()
        return value if isinstance(value, str) else value.decode(errors="replace")


def write_archive(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray]) -> None:
    """Writes the arrays as one NPZ, the numbers unpacked as the release does."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]

    write_atomically(path, write)
