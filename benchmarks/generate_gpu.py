"""Generation on a CUDA device beside the released formulation: `python benchmarks/generate_gpu.py [REPORT.md]`.

The large model (282 M parameters), clips of 10 s under separated guidance with text and a waypoint: three branches. Absolute times, the
median of several runs; the noise is drawn and the result copied back within them.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from released_form import LARGE, mean_joint_deviation, plain, random_denoiser, requests, sample_plainly
from timing import REPORT, table, write_section

from bunraku.generator.denoiser import Denoiser
from bunraku.generator.placing import Precision, place_denoiser
from bunraku.generator.sample import Sampling, sample

DDIM = Sampling(solver="ddim", steps=100)
MANY = 64


def main(report: Path) -> None:
    rows = [*memory_rows(), *released_rows(), *deviation_rows(), *our_rows(compiled=False), *our_rows(compiled=True)]
    head = f"`python benchmarks/generate_gpu.py` on one {torch.cuda.get_device_name()}, torch {torch.__version__}. Seconds, the median of several runs."
    text = f"{head}\n\n{table(('what', 'clips', 'result'), rows)}"
    print(text)
    write_section(report, "Generate, on a GPU", text)


def on_gpu(precision: Precision, *, compiled: bool = False) -> Denoiser:
    return place_denoiser(random_denoiser(LARGE), device="cuda", precision=precision, compiled=compiled)


def memory_rows() -> list[tuple[str, str, str]]:
    """First of all, while nothing else lies on the card."""
    denoiser = on_gpu("float16")
    sample(denoiser, requests(1, denoiser.layout), DDIM)
    return [said("Bunraku, float16: peak memory", "1 × 10 s", f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")]


def released_rows() -> list[tuple[str, str, str]]:
    denoiser, rows = plain(random_denoiser(LARGE)).cuda(), []
    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        for count in (1, MANY):
            # a run of 64 takes over a minute: a twentieth of it will do
            sampling = DDIM if count == 1 else Sampling(solver="ddim", steps=DDIM.steps // 20)
            seconds = median_seconds(lambda count=count, s=sampling: sample_plainly(denoiser, requests(count, denoiser.layout), s), 2)
            seconds *= DDIM.steps / sampling.steps
            rows.append(said(f"released formulation, {'TF32' if tf32 else 'float32'}, DDIM 100", f"{count} × 10 s", f"{seconds:.2f} s"))
    torch.backends.cuda.matmul.allow_tf32 = False
    return rows


def deviation_rows() -> list[tuple[str, str, str]]:
    wanted = requests(4, random_denoiser(LARGE).layout)
    exact = on_gpu("float32")
    reference = sample(exact, wanted, DDIM)
    rows = []
    for precision in ("float16", "bfloat16"):
        coarse = sample(on_gpu(precision), wanted, DDIM)
        away = max(mean_joint_deviation(a, b, exact.layout) for a, b in zip(reference, coarse, strict=True))
        rows.append(said(f"Bunraku, {precision} against float32, DDIM 100: mean distance of joints", f"{len(wanted)} × 10 s", f"{100 * away:.2f} cm"))
    return rows


def our_rows(*, compiled: bool) -> list[tuple[str, str, str]]:
    denoiser = on_gpu("float16", compiled=compiled)
    label, rows = f"Bunraku, float16{', compiled' if compiled else ''}", []
    for count in (1, MANY):
        for sampling, name in ((DDIM, "DDIM 100"), (Sampling(), f"DPM-Solver++ {Sampling().steps}")):
            seconds = median_seconds(lambda s=sampling, count=count: sample(denoiser, requests(count, denoiser.layout), s), 9 if count == 1 else 3)
            rows.append(said(f"{label}, {name}", f"{count} × 10 s", f"{seconds:.3f} s"))
    seconds = median_seconds(lambda: sample(denoiser, requests(1, denoiser.layout, constrained=False), DDIM), 9)
    rows.append(said(f"{label}, DDIM 100, text alone (two branches)", "1 × 10 s", f"{seconds:.3f} s"))
    return rows


def said(*cells: str) -> tuple[str, str, str]:
    print(" | ".join(cells), flush=True)
    return cells  # type: ignore[return-value]


def median_seconds(run: Callable[[], object], repeats: int) -> float:
    run()  # compiles, records graphs, starts libraries
    time.sleep(3)  # processes that compiled in the background end
    run()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else REPORT)
