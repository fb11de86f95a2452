"""Reading and writing files safely: clear errors for what is not there, and never a half-written output.

A writer gets a temporary path beside the target; only when it has finished is that file renamed over the target, so a crash,
a full disk or an error in the middle leaves whatever was there before.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from bunraku.errors import FileProblem, FormatProblem

MAX_BYTES = 4 << 30  # nothing we read is larger; a file that claims more is refused before it fills the memory


def existing_file(path: str | os.PathLike[str]) -> Path:
    """The path, if it is a file that can be read."""
    path = Path(path)
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileProblem(f"there is no file '{path}'.") from error
    except (OSError, ValueError) as error:  # a name that is too long, a ring of links, a folder that may not be entered, a null character
        raise FileProblem(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if stat.S_ISDIR(found.st_mode):
        raise FileProblem(f"'{path}' is a folder; a file is needed.")
    if not stat.S_ISREG(found.st_mode):
        raise FileProblem(f"'{path}' is a pipe or a device, which may never end; a file is needed.")
    if not os.access(path, os.R_OK):  # said here, as foreign readers call such a file damaged
        raise FileProblem(f"'{path}' cannot be read: permission denied.")
    if found.st_size > MAX_BYTES:
        raise FormatProblem(f"'{path}' is {found.st_size / 2**30:.1f} GiB; files up to {MAX_BYTES >> 30} GiB are read.")
    return path


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    path = existing_file(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileProblem(f"'{path}' cannot be read: {error.strerror}.") from error


def read_text(path: str | os.PathLike[str]) -> str:
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatProblem(f"'{path}' is not a text file (byte {error.start} is not UTF-8).") from error


def write_atomically(path: str | os.PathLike[str], write: Callable[[Path], object]) -> None:
    """Calls `write` with a temporary path that has the target's suffix, then renames the result onto `path`, or onto what `path` links to."""
    path, temporary = _beside(path)
    try:
        write(temporary)
        mode = path.stat().st_mode if path.exists() else 0o666 & ~_umask()
        temporary.chmod(mode)
        temporary.replace(path)
    except OSError as error:
        raise FileProblem(f"'{path}' cannot be written: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raises what writing there would raise: for those who work long before they write."""
    _beside(path)[1].unlink(missing_ok=True)


def _beside(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """What `path` is or links to, and a new empty file beside it."""
    path = Path(path)
    try:
        path = path.resolve() if path.is_symlink() else path
        if path.is_dir():
            raise FileProblem(f"'{path}' is a folder; name a file to write.")
        if not path.parent.is_dir():
            raise FileProblem(f"the folder '{path.parent}' does not exist; create it before writing '{path.name}'.")
        if path.exists() and not path.is_file():
            raise FileProblem(f"'{path}' is a pipe or a device; name a file to write.")
        # the name is cut so that what is added to it does not make it longer than a name may be
        handle, name = tempfile.mkstemp(prefix=f".{path.stem[:20]}-", suffix=path.suffix, dir=path.parent)
    except (OSError, RuntimeError, ValueError) as error:
        raise FileProblem(f"'{path}' cannot be written: {getattr(error, 'strerror', None) or error}.") from error
    os.close(handle)
    return path, Path(name)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    write_atomically(path, lambda temporary: temporary.write_bytes(data))


def write_text(path: str | os.PathLike[str], text: str) -> None:
    write_bytes(path, text.encode())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
