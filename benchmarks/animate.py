"""One lesson of distillation with video models of full size and random weights: `python benchmarks/animate.py [--tiny] [REPORT.md]`.

A clip is encoded with gradient, the transformer guesses twice (with the text and without), and the gradient goes back to the pixels: by
chunks, as `bunraku animate` does it, and by plain autograd in the same run. Absolute times and peak memory, on one CUDA device; `--tiny`
runs small models anywhere, to see that the script works. Rendering and deforming are timed by `benchmarks/characters.py Clip`.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from timing import REPORT, table, write_section

from bunraku.distill.lessons import teach
from bunraku.priors.cogvideox import CogVideoX
from bunraku.priors.ltx import Ltx
from bunraku.priors.noise_paths import Diffusion
from bunraku.priors.parts import diffusers_class
from bunraku.priors.prior import VideoPrior
from bunraku.priors.wan import Wan
from bunraku.priors.words import Words

REPEATS = 3
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model at one size of clip."""

    name: str
    make: Callable[[], VideoPrior]
    tokens: int  # of text
    width: int  # of their features


def main(report: Path | None, tiny: bool) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cpu" and not tiny:
        raise SystemExit("full sizes need a CUDA device; --tiny runs small ones on a processor")
    rows = [row for case in (tiny_cases() if tiny else full_cases(device)) for row in measure(case, device)]
    where = torch.cuda.get_device_name() if device.type == "cuda" else "a processor, tiny models"
    head = f"`python benchmarks/animate.py` on {where}, torch {torch.__version__}, random weights. The median of {REPEATS} lessons."
    text = f"{head}\n\n{table(('model', 'clip', 'gradient through the encoder', 'seconds', 'peak GiB'), rows)}"
    print(text)
    if report is not None:
        write_section(report, "Animate: one lesson", text)


def measure(case: Case, device: torch.device) -> list[tuple[str, ...]]:
    prior: Any = case.make()
    spec, rows = prior.spec, []
    features = torch.randn(2, case.tokens, case.width).to(next(prior.transformer.parameters()))
    words = Words(features=features, mask=torch.ones(2, case.tokens, dtype=torch.bool, device=device))
    for thrifty in (True, False):
        prior.low_memory = thrifty
        try:
            seconds, peak = lesson(prior, words, device)
            said = f"{seconds:.3f}", f"{peak:.1f}"
        except torch.OutOfMemoryError:
            said = "out of memory", "–"
        rows.append((case.name, f"{spec.width} × {spec.height} × {spec.frames}", "by chunks" if thrifty else "plain autograd", *said))
        print(" | ".join(rows[-1]), flush=True)
        if isinstance(prior, Ltx):
            break  # its encoder takes the whole clip at once
    return rows


def lesson(prior: VideoPrior, words: Words, device: torch.device) -> tuple[float, float]:
    """Seconds of a lesson and its peak memory [GiB]."""
    spec, times = prior.spec, []
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    for run in range(REPEATS + 1):
        video = torch.rand(spec.frames, spec.height, spec.width, 3, device=device, requires_grad=True)
        start = _now(device)
        found = teach(prior, video, words, time=0.7, guidance=100.0, weighting="sds", generator=torch.Generator().manual_seed(run))
        found.loss.backward()
        times.append(_now(device) - start)
    peak = torch.cuda.max_memory_allocated() / GIB if device.type == "cuda" else float("nan")
    return statistics.median(times[1:]), peak


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


# --- models -----------------------------------------------------------------------------------------------------------


def full_cases(device: torch.device) -> list[Case]:
    """The sizes of the released models; configurations are diffusers' defaults where those are theirs."""

    def made(kind: str, **config: Any) -> Any:
        with torch.device(device):
            torch.set_default_dtype(torch.bfloat16)
            try:
                return diffusers_class(kind)(**config).eval().requires_grad_(False)
            finally:
                torch.set_default_dtype(torch.float32)

    sigmas = torch.linspace(0.03, 1.0, 1000, dtype=torch.float64)
    cog = {"num_attention_heads": 48, "num_layers": 42, "use_rotary_positional_embeddings": True, "sample_width": 90, "sample_height": 60, "sample_frames": 49}
    wan = {"num_attention_heads": 12, "attention_head_dim": 128, "num_layers": 30, "ffn_dim": 8960, "text_dim": 4096}

    def cogvideox(frames: int, size: tuple[int, int]) -> VideoPrior:
        parts = {"transformer": made("CogVideoXTransformer3DModel", **cog), "vae": made("AutoencoderKLCogVideoX", scaling_factor=0.7)}
        return CogVideoX(**parts, path=Diffusion(sigmas=sigmas), parts=None, name="CogVideoX-5B", frames=frames, size=size)

    def wan21(frames: int, size: tuple[int, int]) -> VideoPrior:
        return Wan(transformer=made("WanTransformer3DModel", **wan), vae=made("AutoencoderKLWan"), parts=None, name="Wan 1.3B", frames=frames, size=size)

    def ltx(frames: int, size: tuple[int, int]) -> VideoPrior:
        vae = made("AutoencoderKLLTXVideo")
        vae.enable_gradient_checkpointing()
        return Ltx(transformer=made("LTXVideoTransformer3DModel"), vae=vae, parts=None, name="LTX 2B", frames=frames, size=size)

    return [
        Case(name="CogVideoX-5B", make=lambda: cogvideox(49, (720, 480)), tokens=226, width=4096),
        Case(name="CogVideoX-5B", make=lambda: cogvideox(25, (256, 256)), tokens=226, width=4096),
        Case(name="Wan 1.3B", make=lambda: wan21(33, (832, 480)), tokens=512, width=4096),
        Case(name="LTX 2B", make=lambda: ltx(49, (704, 480)), tokens=128, width=4096),
    ]


def tiny_cases() -> list[Case]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from tests.priors.tiny_models import cogvideox_parts, ltx_parts, wan_parts

    sigmas = Diffusion(sigmas=torch.linspace(0.03, 1.0, 1000, dtype=torch.float64))
    return [
        Case(name="CogVideoX", make=lambda: CogVideoX(**cogvideox_parts(), path=sigmas, parts=None, name="c", frames=17, size=(32, 16)), tokens=16, width=32),
        Case(name="Wan", make=lambda: Wan(**wan_parts(), parts=None, name="w", frames=9, size=(32, 16)), tokens=16, width=32),
        Case(name="LTX", make=lambda: Ltx(**ltx_parts(), parts=None, name="l", frames=9, size=(64, 32)), tokens=16, width=32),
    ]


if __name__ == "__main__":
    asked = [word for word in sys.argv[1:] if word != "--tiny"]
    main(Path(asked[0]) if asked else None if "--tiny" in sys.argv else REPORT, "--tiny" in sys.argv)
