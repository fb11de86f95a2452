"""Retrievers on disk: a folder with model.json and model.safetensors, in the manner of the generator's."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor

from bunraku.errors import FileProblem, FormatProblem
from bunraku.files.disk import write_bytes, write_text
from bunraku.generator.checkpoint import OURS, WEIGHTS, read_json, read_tensors
from bunraku.generator.features import FeatureLayout
from bunraku.generator.stats import Spread
from bunraku.kinematics.library import skeleton
from bunraku.retrieval.model import Retriever, RetrieverConfig
from bunraku.retrieval.view import view_width

FORMAT = 1
KIND = "retriever"
SHIPPED = Path(__file__).resolve().parent / "shipped"  # the one that comes with the package, if any


def save_retriever(retriever: Retriever, folder: Path, dtype: torch.dtype = torch.float32) -> None:
    """Writes a folder; weights in `dtype`, the spread of the views in float32."""
    from safetensors.torch import save

    layout = retriever.layout
    about = {
        "format": FORMAT,
        "kind": KIND,
        "name": retriever.name,
        "skeleton": layout.skeleton.name,
        "fps": layout.fps,
        "text_encoder": retriever.text_encoder,
        "retriever": asdict(retriever.config),
    }
    weights = {name: value.detach().to(dtype).contiguous().cpu() for name, value in retriever.state_dict().items()}
    spread = {f"view.{kind}": getattr(retriever.spread, kind).float().contiguous().cpu() for kind in ("mean", "std")}
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / WEIGHTS, save({**weights, **spread}))
    write_text(folder / OURS, json.dumps(about, indent=1) + "\n")


def load_retriever(folder: str | os.PathLike[str] | None = None) -> Retriever:
    """The retriever in a folder (None: the one that comes with the package), in float32 on the CPU, ready to embed."""
    folder = SHIPPED if folder is None else Path(folder)
    path = folder / OURS
    if not path.is_file():
        which = "no retriever comes with this version of bunraku" if folder == SHIPPED else f"'{folder}' holds no {OURS}"
        raise FileProblem(f"{which}; a retriever is a folder with {OURS} and {WEIGHTS}. Train one with: bunraku train tmr small --data DIR -o RUN.")
    about = read_json(path)
    if about.get("kind") != KIND:
        raise FormatProblem(f"'{path}' describes {'a generator' if 'denoiser' in about else 'something else'}; a retriever (kind '{KIND}') is needed.")
    if about.get("format") != FORMAT:
        raise FormatProblem(f"'{path}' is of format {about.get('format')}; this version of bunraku reads {FORMAT}. Update bunraku.")
    try:
        layout = FeatureLayout(skeleton=skeleton(about["skeleton"]), fps=float(about["fps"]))
        config = RetrieverConfig(**about["retriever"])
        name, text_encoder = str(about["name"]), str(about["text_encoder"])
    except (KeyError, TypeError, ValueError) as error:
        raise FormatProblem(f"'{path}' does not describe a retriever: {type(error).__name__} {error}.") from error
    tensors = read_tensors(folder / WEIGHTS)
    spread = _spread(tensors, layout, folder / WEIGHTS)
    return _filled(Retriever(config, layout, spread, text_encoder=text_encoder, name=name), tensors, folder / WEIGHTS)


def _spread(tensors: dict[str, Tensor], layout: FeatureLayout, path: Path) -> Spread:
    rows = {}
    for kind in ("mean", "std"):
        row = tensors.pop(f"view.{kind}", None)
        if row is None or row.shape != (view_width(layout),):
            given = "nothing" if row is None else f"shape {list(row.shape)}"
            raise FormatProblem(f"'{path}': 'view.{kind}' has {given}; {view_width(layout)} numbers are needed for '{layout.skeleton.name}'.")
        rows[kind] = row.float()
    return Spread(**rows)


def _filled(retriever: Retriever, tensors: Mapping[str, Tensor], path: Path) -> Retriever:
    """The retriever with these weights, once names and shapes are seen to fit."""
    wanted = retriever.state_dict()
    for name, value in wanted.items():
        if name not in tensors or tensors[name].shape != value.shape:
            given = "lacks" if name not in tensors else f"has other numbers ({list(tensors[name].shape)}, not {list(value.shape)}) for"
            raise FormatProblem(f"'{path}' {given} the weights '{name}'; it belongs to another retriever than its {OURS} says.")
    unknown = next((name for name in tensors if name not in wanted), None)
    if unknown is not None:
        raise FormatProblem(f"'{path}' has weights '{unknown}' that this retriever has no place for.")
    retriever.load_state_dict({name: value.float() for name, value in tensors.items()})
    return retriever.eval().requires_grad_(False)
