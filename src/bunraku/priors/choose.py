"""Video models by name, or by the folder or Hugging Face name of one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from bunraku.errors import BadValue, FileProblem
from bunraku.priors.parts import INDEX, PartsFolder, open_parts
from bunraku.priors.prior import VideoPrior

KNOWN = {
    "cogvideox-2b": "zai-org/CogVideoX-2b",
    "cogvideox-5b": "zai-org/CogVideoX-5b",
    "cogvideox1.5-5b": "zai-org/CogVideoX1.5-5B",
    "wan-1.3b": "Wan-AI/Wan2.1-T2V-1.3B-Diffusers",
    "wan-14b": "Wan-AI/Wan2.1-T2V-14B-Diffusers",
    "wan2.2-5b": "Wan-AI/Wan2.2-TI2V-5B-Diffusers",
    "ltx": "Lightricks/LTX-Video",
}


def open_prior(
    name: str | os.PathLike[str],
    *,
    frames: int | None = None,
    size: tuple[int, int] | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.bfloat16,
) -> VideoPrior:
    """A prior for clips of so many frames of width × height pixels; without them those that the model was trained on."""
    model, parts = _index(name)
    return _kind(parts.pipeline, parts.folder / INDEX).open(model, frames=frames, size=size, device=device, dtype=dtype)


def rate_of(name: str | os.PathLike[str]) -> float:
    """Frames per second of the clips that a model knows, from its index and configuration alone."""
    parts = _index(name)[1]
    if parts.pipeline.startswith("CogVideoX"):
        return 16.0 if parts.config("transformer").get("patch_size_t") == 2 else 8.0
    if parts.pipeline.startswith("Wan"):
        return 24.0 if parts.index.get("expand_timesteps") else 16.0
    return 25.0


def _index(name: str | os.PathLike[str]) -> tuple[str, PartsFolder]:
    name = os.fspath(name)
    if name not in KNOWN and not Path(name).is_dir() and name.count("/") != 1:
        raise BadValue(f"there is no prior '{name}'; choose {', '.join(KNOWN)}, or name a folder in diffusers' layout.")
    model = KNOWN.get(name, name)
    return model, open_parts(model, ("transformer",), or_else=f"choose {', '.join(KNOWN)}, or name a folder in diffusers' layout.")


def _kind(pipeline: str, path: Path) -> Any:
    if pipeline.startswith("CogVideoX"):
        from bunraku.priors.cogvideox import CogVideoX

        return CogVideoX
    if pipeline.startswith("Wan"):
        from bunraku.priors.wan import Wan

        return Wan
    if pipeline.startswith("LTX"):
        from bunraku.priors.ltx import Ltx

        return Ltx
    raise FileProblem(f"'{path}' is of a '{pipeline or 'nameless pipeline'}'; CogVideoX, Wan and LTX pipelines can be used.")
