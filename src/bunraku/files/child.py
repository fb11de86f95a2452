"""Foreign libraries read foreign files in a process of their own, so that no crash, chatter or hunger of theirs reaches the caller.

The parent calls `read_in_child`; the child's module ends with `answer`: arrays on standard output, or one line on standard error
and exit code 3. Nothing heavy is imported here, as the child waits for it.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

import numpy as np

from bunraku.errors import FormatProblem

_REFUSED = 3
_PATIENCE = 600  # [s]
_LONGEST = 240  # [characters] of what is said about a file: USD quotes the whole line in which it stumbled
_LEAST_MEMORY = 4 << 30  # [bytes] and eight times what the file has: a few bytes may claim an array of any size


class Refused(Exception):
    """What is wrong with a file, as the sentence that follows its name."""


def read_in_child(module: str, path: Path, *arguments: str, advice: str) -> dict[str, np.ndarray]:
    """The arrays that `python -m module PATH ARGUMENTS` answers with; `advice` is the next step where it does not."""
    command = [sys.executable, "-P", "-m", module, os.fspath(path.resolve()), *arguments]  # -P: the folder it is run in holds no modules
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired as error:
        raise FormatProblem(f"'{path}' took longer than {_PATIENCE} s to read. {advice}") from error
    if done.returncode == _REFUSED:
        raise FormatProblem(f"'{path}' {done.stderr.decode(errors='replace').strip().splitlines()[-1]}. {advice}")
    if done.returncode:
        raise FormatProblem(f"'{path}' made its reader fail (exit code {done.returncode}); it is damaged or needs too much memory. {advice}")
    with np.load(io.BytesIO(done.stdout), allow_pickle=False) as archive:
        return dict(archive)


def answer(what: str, read: Callable[..., Mapping[str, np.ndarray]]) -> NoReturn:
    """The whole life of the child: reads what the command line names. `what` is the format's name.

    It leaves without tidying up, as not every library survives that.
    """
    code = 0
    try:
        _limit_memory(os.path.getsize(sys.argv[1]))
        np.savez(sys.stdout.buffer, allow_pickle=False, **read(*sys.argv[1:]))
    except Refused as problem:
        code = _refuse(str(problem))
    except MemoryError:
        code = _refuse(f"needs more memory to be read as {what} than its size allows; it is damaged or too long")
    except Exception as error:  # each library raises what it likes
        code = _refuse(f"cannot be read as {what} ({type(error).__name__}: {error})")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _refuse(sentence: str) -> int:
    sentence = " ".join(sentence.split())
    print(sentence if len(sentence) <= _LONGEST else f"{sentence[:_LONGEST]}…", file=sys.stderr)
    return _REFUSED


def _limit_memory(file_size: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # not every system knows such a limit
        import resource

        most = _LEAST_MEMORY + 8 * file_size
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
