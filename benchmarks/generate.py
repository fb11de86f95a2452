"""Generation on this machine's CPU beside the released formulation: `python benchmarks/generate.py`.

The large model (282 M parameters), one clip of 10 s under separated guidance with text and a waypoint: a batch of three. A step of both, by
turns; and a whole run of both, measured for ours and a hundred times the step for the alternative. Ratios only: this machine is shared.
"""

from __future__ import annotations

import copy
import time

import torch
from released_form import LARGE, guided, mean_joint_deviation, plain, random_denoiser, requests
from timing import REPORT, Row, best_of, machine, ratios, write_section

from bunraku.generator.placing import place_denoiser
from bunraku.generator.sample import Sampling, sample

THREADS = 2
RELEASED_STEPS = 100


@torch.no_grad()
def main() -> None:
    torch.set_num_threads(THREADS)
    exact = random_denoiser(LARGE)
    ours = place_denoiser(copy.deepcopy(exact), device="cpu", precision="bfloat16")
    wanted = requests(1, exact.layout)
    released_step, our_step = guided(plain(exact), wanted), guided(ours, wanted)
    x, level = torch.randn(1, wanted[0].frames, exact.layout.width), torch.tensor([500])
    mine, theirs = best_of(5, lambda: our_step(x, level), lambda: released_step(x, level))
    step = Row(
        task="One step, 282 M parameters, 10 s, three branches, bfloat16",
        alternative="`nn.TransformerEncoder`, float32",
        seconds=mine.seconds,
        seconds_alternative=theirs.seconds,
    )
    print(step.line(), flush=True)

    start = time.perf_counter()
    sample(ours, wanted, Sampling())
    run = Row(
        task=f"A whole run at the default {Sampling().steps} steps",
        alternative=f"{RELEASED_STEPS} DDIM steps of the above",
        seconds=time.perf_counter() - start,
        seconds_alternative=RELEASED_STEPS * theirs.seconds,
    )
    print(run.line(), flush=True)

    every = [sample(denoiser, wanted, Sampling(solver="ddim", steps=RELEASED_STEPS))[0] for denoiser in (ours, exact)]
    away = mean_joint_deviation(*every, exact.layout)
    head = f"`python benchmarks/generate.py` on {machine()} ({THREADS} threads). Ratios of wall time, best of several runs by turns. Random weights; over a run"
    text = f"{head} of {RELEASED_STEPS} DDIM steps bfloat16 moves joints by {100 * away:.2f} cm on average against float32.\n\n{ratios([step, run])}"
    print(text)
    write_section(REPORT, "Generate, on a CPU", text)


if __name__ == "__main__":
    main()
