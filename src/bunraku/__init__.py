"""Bunraku turns words into motion for 3D characters.

Everything a script needs is here: `bunraku.load_motion`, `bunraku.retarget`, `bunraku.check` … Names are looked up in
`bunraku.api` when first used, so that `import bunraku` and `bunraku --help` do not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from bunraku.version import VERSION

if TYPE_CHECKING:
    from bunraku import timeline
    from bunraku.api import (
        Generator,
        Guidance,
        Prompt,
        Sampling,
        Take,
        Timeline,
        animate,
        best,
        check,
        forward_kinematics,
        generate,
        generate_many,
        join,
        load_character,
        load_mesh,
        load_model,
        load_motion,
        load_robot,
        load_splats,
        mannequin,
        mirror,
        regenerate,
        render,
        resample,
        retarget,
        rig_character,
        save_character,
        save_motion,
        save_picture,
        save_splats,
        skeleton,
        splats_of,
        walk,
    )
    from bunraku.errors import BunrakuError

__version__ = VERSION
__all__ = [
    "BunrakuError",
    "Generator",
    "Guidance",
    "Prompt",
    "Sampling",
    "Take",
    "Timeline",
    "__version__",
    "animate",
    "best",
    "check",
    "forward_kinematics",
    "generate",
    "generate_many",
    "join",
    "load_character",
    "load_mesh",
    "load_model",
    "load_motion",
    "load_robot",
    "load_splats",
    "mannequin",
    "mirror",
    "regenerate",
    "render",
    "resample",
    "retarget",
    "rig_character",
    "save_character",
    "save_motion",
    "save_picture",
    "save_splats",
    "skeleton",
    "splats_of",
    "timeline",
    "walk",
]


def __getattr__(name: str) -> object:
    if name == "timeline":
        return import_module("bunraku.timeline")
    if name in __all__:
        return getattr(import_module("bunraku.api"), name)
    raise AttributeError(f"module 'bunraku' has no attribute '{name}'")
