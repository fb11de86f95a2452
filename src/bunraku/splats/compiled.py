"""Machine code from Python functions: how the kernels of the CPU rasteriser are compiled by numba, kept on disk, and run on all cores.

Kernels release Python's lock and take the half-open range of work to do as their last two arguments, so plain threads suffice: no
parallel runtime is started beside torch's, and pieces may be handed out in any order because none writes where another does.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from bunraku.math.machine_code import machine_code

# sums may be regrouped, so that loops over pixels use vector instructions; not-a-number keeps its meaning
_FAST = {"reassoc", "contract", "nsz", "arcp"}
_PIECES = 4  # for each core, so that one with heavy tiles does not keep the others waiting
_PATIENCE = 3.0  # [s] of compiling, more than loading from disk takes, before a line says what is going on


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function to be compiled."""
    return machine_code(function, nogil=True, fastmath=_FAST)


def on_cores(compiled: Callable[..., Any], bounds: Sequence[int], *arguments: object) -> None:
    """Runs a kernel over the consecutive ranges between `bounds`, on as many cores as torch uses."""
    ranges = [(int(first), int(last)) for first, last in pairwise(bounds) if first < last]
    if torch.get_num_threads() == 1 or len(ranges) < 2:
        for first, last in ranges:
            compiled(*arguments, first, last)
        return
    pool = _pool(os.getpid(), torch.get_num_threads())
    for done in [pool.submit(compiled, *arguments, first, last) for first, last in ranges]:
        done.result()


def evenly(count: int, least: int) -> list[int]:
    """Bounds of equal pieces of `count`, none much smaller than `least`, some for each core."""
    pieces = max(min(_PIECES * torch.get_num_threads(), count // least), 1)
    return [count * piece // pieces for piece in range(pieces + 1)]


def by_cost(start: np.ndarray) -> list[int]:
    """Bounds of pieces of equal cost, where item i costs `start[i + 1] - start[i]`."""
    shares = np.linspace(start[0], start[-1], _PIECES * torch.get_num_threads() + 1)[1:-1]
    return [0, *np.searchsorted(start, shares).clip(0, len(start) - 1).tolist(), len(start) - 1]


@lru_cache(maxsize=4)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """One for each process, as threads do not survive a fork."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"bunraku-{process}")


@contextmanager
def said_when_slow(sentence: str) -> Iterator[None]:
    """Prints a line if what follows takes longer than one is ready to wait without a word."""
    timer = threading.Timer(_PATIENCE, lambda: print(sentence, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
