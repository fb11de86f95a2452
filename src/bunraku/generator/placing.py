"""Where a denoiser runs and how exactly: device, number format of its layers, compiled or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import torch

from bunraku.diffusion.schedule import BASE_STEPS
from bunraku.errors import BadValue
from bunraku.generator.backbone import EncoderLayer
from bunraku.generator.denoiser import Denoiser

Precision = Literal["auto", "float32", "bfloat16", "float16"]


def place_denoiser(denoiser: Denoiser, *, device: str = "auto", precision: Precision = "auto", compiled: bool = False) -> Denoiser:
    """Moves a denoiser that is not trained any more, in place. What goes into the layers and comes out of them stays float32.

    "auto" takes float16 on a GPU (three bits finer than bfloat16 and as fast) and bfloat16 on CPUs with units for it. In
    bfloat16 the stream between the products keeps float32 too: rounding it thirty-two times a step doubled the error.

    `compiled` fuses the small operations of a layer; it costs half a minute at the first run of every new length of clip.
    """
    where = _device(device)
    dtype = _fastest(where) if precision == "auto" else getattr(torch, precision)
    for layer in _layers(denoiser):
        for part in layer.modules():
            if isinstance(part, torch.nn.Linear | torch.nn.RMSNorm) or dtype != torch.bfloat16:  # RMSNorm: of queries and keys, products themselves
                part.to(dtype=dtype)  # before the move: half the memory
    denoiser.to(where)
    for net in denoiser.children():
        net.remember_levels(BASE_STEPS)  # type: ignore[operator]
    if compiled:
        for layer in _layers(denoiser):
            layer.compile(dynamic=False)
    return denoiser.eval().requires_grad_(False)


def _layers(denoiser: Denoiser) -> Iterator[EncoderLayer]:
    for net in denoiser.children():
        yield from net.layers  # type: ignore[misc]


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise BadValue(f"device '{name}' was asked for, but PyTorch sees no CUDA device here. Use --device cpu, or install PyTorch's CUDA build.")
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise BadValue(f"'{name}' is no device; use cpu, cuda, cuda:1 or auto.") from error


def _fastest(device: torch.device) -> torch.dtype:
    """The quickest format for products that is good enough there; where it would be emulated, float32 is quicker."""
    if device.type == "cuda":
        return torch.float16
    has_units = device.type == "cpu" and (torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    return torch.bfloat16 if has_units else torch.float32
