"""The parts of a video model on disk, in diffusers' layout: model_index.json beside a folder for each part.

A model is a folder, or a name on Hugging Face that is fetched once. Classes and weights are diffusers' and transformers' own, unmodified.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bunraku.errors import FileProblem, FormatProblem
from bunraku.files.hub import model_folder

INDEX = "model_index.json"
PARTS = ("transformer", "vae", "scheduler", "tokenizer", "text_encoder")


@dataclass(frozen=True, kw_only=True)
class PartsFolder:
    """Where a model's parts lie and what its index says of them."""

    folder: Path
    index: dict[str, Any]

    @property
    def pipeline(self) -> str:
        """The name of diffusers' pipeline that the model was saved from."""
        return str(self.index.get("_class_name", ""))

    def config(self, part: str) -> dict[str, Any]:
        """What a part says of itself."""
        for name in ("config.json", "scheduler_config.json"):
            path = self.folder / part / name
            if path.is_file():
                return _json(path)
        raise FileProblem(f"'{self.folder / part}' has no config.json; the model's folder is not complete. Fetch it again.")

    def load(self, part: str, kind: Any, dtype: torch.dtype, device: torch.device) -> Any:
        """A part through its class, ready to be used and not to be trained."""
        if not (self.folder / part).is_dir():
            raise FileProblem(f"'{self.folder}' has no folder '{part}'; a model of this kind needs it. Fetch the model again.")
        try:
            module = kind.from_pretrained(self.folder / part, torch_dtype=dtype)
        except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
            first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise FormatProblem(f"the part '{part}' of '{self.folder}' cannot be loaded: {first[:300]}") from error
        return module.to(device).eval().requires_grad_(False)


def open_parts(model: str | os.PathLike[str], parts: Sequence[str], *, or_else: str) -> PartsFolder:
    """The folder of a model that has these parts."""
    wanted = [INDEX, *(f"{part}/*" for part in parts)]
    folder = model_folder(model, wanted, or_else=or_else)
    return PartsFolder(folder=folder, index=_json(folder / INDEX))


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FormatProblem(f"'{path}' cannot be read as JSON: {error}") from error
    if not isinstance(found, dict):
        raise FormatProblem(f"'{path}' must hold a JSON object.")
    return found


def open_model(
    model: str | os.PathLike[str], transformer: str, vae: str, *, dtype: torch.dtype, device: torch.device | str
) -> tuple[PartsFolder, Any, Any]:
    """A video model's folder, and its transformer and VAE by the names of their classes in diffusers."""
    kinds = diffusers_class(transformer), diffusers_class(vae)
    parts, where = open_parts(model, PARTS, or_else="name a folder that holds the model."), torch.device(device)
    return parts, parts.load("transformer", kinds[0], dtype, where), parts.load("vae", kinds[1], dtype, where)


def diffusers_class(name: str) -> Any:
    """A class of diffusers; says how to get the library where it is not installed."""
    try:
        import diffusers
    except ImportError as error:
        raise FileProblem("video models need the package diffusers: pip install 'bunraku[priors]'.") from error
    return getattr(diffusers, name)
