"""How fast characters are made and drawn, against the alternatives, on this machine: `python benchmarks/characters.py [table ...]`.

Prints each table and writes it to docs/benchmarks.md as a section of its own. Wall time, best of a few runs, ours and theirs by turns so
that a busy machine slows both. Before anything is timed, both sides are checked to give the same answer.
To add a table, write a function that returns its Markdown and name it in `TABLES`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command sets it: on a busy machine torch's threads would else wait by spinning, ten times slower

import torch
from characters_skinning import quality, speed
from timing import REPORT, best_of, machine, table, write_section
from torch import Tensor

from bunraku.splats import Camera, Rendering, Splats, random_splats, render
from bunraku.splats.cpu_deformation import carried_fast
from bunraku.splats.deformation import carried

Carry = Callable[[Tensor, Tensor, Tensor, Tensor | None, Tensor], tuple[Tensor, Tensor]]

COUNTS = (1_000, 10_000, 100_000)
SIZES = ((64, 64), (256, 256), (720, 480))
AFFORDABLE = 1.0  # [s] for a run of the alternative; slower ones run once


def rasteriser() -> str:
    rows = [cells for count in COUNTS for size in SIZES for cells in [rasteriser_row(count, size)]]
    head = ("splats", "pixels", "forward", "forward + backward", "torch twin / ours, forward", "forward + backward")
    return (
        f'`render(backend="cpu")` against `backend="torch"`, its specification (16 px tiles), float32, {torch.get_num_threads()} threads; '
        f"a ball of random splats, gradients of means, factors, opacities, colours and pose.\n\n{table(head, rows)}"
    )


def rasteriser_row(count: int, size: tuple[int, int]) -> list[str]:
    splats, camera = random_splats(count, 0), Camera.look_at((0.0, 0.0, 3.2), (0.0, 0.0, 0.0), *size)
    timed = []
    for back in (False, True):
        ours, theirs = (drawing(splats, camera, backend, back) for backend in ("cpu", "torch"))
        warm, expected = best_of(1, ours, theirs)
        error = (warm.result.color - expected.result.color).abs()
        assert error.mean() < 1e-6  # at a pixel where alpha is 1/255 to the last digit one may draw and the other not
        assert error.max() < 5e-3
        runs = 3 if expected.seconds < AFFORDABLE else 0
        fast, twin = best_of(12, ours, theirs, runs_alternative=runs) if runs else (best_of(12, ours, ours)[0], expected)
        timed.append((min(fast.seconds, warm.seconds), min(twin.seconds, expected.seconds)))
        print(f"{count} splats, {size[0]} × {size[1]}, {'both' if back else 'forward'}: {timed[-1][0]:.4f} s, twin {timed[-1][1]:.2f} s", flush=True)
    return [f"{count:,}", f"{size[0]} × {size[1]}", *(f"{ours * 1e3:.1f} ms" for ours, _ in timed), *(f"{theirs / ours:.0f} ×" for ours, theirs in timed)]


def clip() -> str:
    """49 frames as a video model sees them. On CUDA this is gsplat, on other machines the kernels for processors."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    splats = random_splats(20_000, 0)
    grow = torch.linspace(0.9, 1.1, 49)[:, None, None]
    splats = replace(splats, means=splats.means * grow, factors=splats.factors * grow[..., None]).to(device)
    camera = Camera.look_at((0.0, 0.0, 3.2), (0.0, 0.0, 0.0), 720, 480).to(device)
    backend = render(splats, camera).backend
    whole, single = drawing(splats, camera, backend, back=True), drawing(splats, camera, backend, back=True, one_by_one=True)
    together, apart = best_of(3, whole, single)
    rows = [["in one call", f"{together.seconds * 1e3:.0f} ms"], ["frame by frame", f"{apart.seconds * 1e3:.0f} ms"]]
    return f"49 frames, 20,000 splats, 720 × 480, forward and backward, `{backend}`.\n\n{table(('', 'wall time'), rows)}"


def drawing(splats: Splats, camera: Camera, backend: Literal["cpu", "torch", "gsplat"], back: bool, one_by_one: bool = False) -> Callable[[], Rendering]:
    """A picture, or a clip, and its gradients."""

    def run() -> Rendering:
        leaves = splats.map(lambda value: value.detach().requires_grad_(back))
        eye = replace(camera, T_world_camera=camera.T_world_camera.detach().requires_grad_(back))
        pictures = [render(leaves[frame] if one_by_one else leaves, eye, backend) for frame in range(splats.batch[0] if one_by_one else 1)]
        if back:
            sum(picture.color.square().sum() + picture.alpha.sum() + picture.depth.sum() for picture in pictures).backward()  # pyright: ignore[reportAttributeAccessIssue]
        wait(splats.means)
        return pictures[0]

    return run


def deformation() -> str:
    """A clip as a distilled motion needs it: gradients to the joints of every frame."""
    joints, frames, count = 30, 49, 20_000
    generator = torch.Generator().manual_seed(0)
    weights = torch.zeros(count, joints).scatter(1, torch.randint(joints, (count, 4), generator=generator), 0.25)
    weights = weights / weights.sum(1, keepdim=True)
    arms = 0.01 * torch.randn(count, joints, 3, generator=generator) * (weights > 0)[..., None]
    splats, moved = random_splats(count, 0), torch.randn(frames, joints, 3, 4, generator=generator)
    rows = []
    for back in (False, True):
        ours, theirs = (carrying(carry, splats, weights, arms, moved, back) for carry in (carried_fast, carried))
        fast, twin = best_of(8, ours, theirs)
        torch.testing.assert_close(fast.result, twin.result, atol=1e-4, rtol=1e-3)
        rows.append(["forward + backward" if back else "forward", f"{fast.seconds * 1e3:.0f} ms", f"{twin.seconds / fast.seconds:.1f} ×"])
    told = f"{count:,} splats, {frames} frames, {joints} joints, 4 for each splat, {torch.get_num_threads()} threads; gradients of the joints' transforms."
    return f"{told}\n\n{table(('', 'kernels', 'torch twin / ours'), rows)}"


def carrying(carry: Carry, splats: Splats, weights: Tensor, arms: Tensor, moved: Tensor, back: bool) -> Callable[[], tuple[Tensor, ...]]:
    """What becomes of the splats, or the gradient of the transforms."""

    def run() -> tuple[Tensor, ...]:
        free = moved.detach().requires_grad_(back)
        means, factors = carry(splats.means, splats.factors, weights, arms, free)
        return torch.autograd.grad(means.square().sum() + factors.square().sum(), free) if back else (means, factors)

    return run


def wait(like: Tensor) -> None:
    if like.device.type == "cuda":
        torch.cuda.synchronize()


TABLES: dict[str, Callable[[], str]] = {"Rasteriser": rasteriser, "Clip": clip, "Deformation": deformation, "Skin weights": speed, "Skin quality": quality}


def main() -> None:
    parser = argparse.ArgumentParser(description="Times of making and drawing characters.")
    parser.add_argument("tables", nargs="*", default=list(TABLES), metavar="table", help=f"which: {', '.join(TABLES)} (default: all)")
    for name in parser.parse_args().tables:
        report = f"`python benchmarks/characters.py {name}` on {machine()}. Wall time, best of several runs by turns.\n\n{TABLES[name]()}"
        print(report)
        write_section(REPORT, f"Characters: {name}", report)


if __name__ == "__main__":
    main()
