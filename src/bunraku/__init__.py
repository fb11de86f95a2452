"""Bunraku turns words into motion for 3D characters.

Everything a script needs is here: `bunraku.load_motion`, `bunraku.retarget`, `bunraku.check` … Names are looked up in
`bunraku.api` when first used, so that `import bunraku` and `bunraku --help` do not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunraku.api import (
        check,
        forward_kinematics,
        join,
        load_character,
        load_motion,
        load_robot,
        mannequin,
        mirror,
        resample,
        retarget,
        save_character,
        save_motion,
        save_picture,
        skeleton,
        walk,
    )
    from bunraku.errors import BunrakuError

__version__ = "0.1.0"
__all__ = [
    "BunrakuError",
    "__version__",
    "check",
    "forward_kinematics",
    "join",
    "load_character",
    "load_motion",
    "load_robot",
    "mannequin",
    "mirror",
    "resample",
    "retarget",
    "save_character",
    "save_motion",
    "save_picture",
    "skeleton",
    "walk",
]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module("bunraku.api"), name)
    raise AttributeError(f"module 'bunraku' has no attribute '{name}'")
