"""Machine code from Python functions by numba, kept on disk wherever there is a folder for it."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numba


def machine_code(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function compiled; division by zero gives what numpy gives. `options` are numba's."""
    function = inspect.unwrap(function)  # tests wrap every function in checks of shapes
    try:
        return numba.njit(cache=True, error_model="numpy", **options)(function)
    except RuntimeError:  # numba found no folder that it may write to
        warnings.warn("kernels cannot be kept on disk and are compiled anew in every process (10 s); set NUMBA_CACHE_DIR to a folder.", stacklevel=3)
        return numba.njit(error_model="numpy", **options)(function)
