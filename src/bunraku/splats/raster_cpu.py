"""The rasteriser for processors: float32, all cores, forward and backward, the same bits at every run. `raster_torch` is what it must equal.

```
 place: splats ─► ellipses ─► deal_out: entries of tiles, front to back ─► draw: pixels
 splats ◄─ pull_back: sums over a splat's pairs ◄─ undraw: one row for each pair of splat and tile ◄─ pixels' gradients
```
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from bunraku.errors import BadValue
from bunraku.splats.camera import Camera
from bunraku.splats.compiled import by_cost, evenly, on_cores, said_when_slow
from bunraku.splats.cpu_blend import draw, undraw
from bunraku.splats.cpu_projection import CHUNK, FIELDS, TILE, VARIABLES, place, pull_back
from bunraku.splats.cpu_tiles import count_tiles, deal_out
from bunraku.splats.harmonics import color_toward
from bunraku.splats.splats import Splats, random_splats

Sums = tuple[Float[Tensor, "B H W 3"], Float[Tensor, "B H W"], Float[Tensor, "B H W"]]
_MOST_PAIRS = 1 << 30  # of splats and tiles in one call; their lists take 8 GiB then
_PAIRS_AT_ONCE = 1 << 22  # in the gradient, where each takes 40 bytes: longer clips go in groups of pictures


def rasterise_splats(splats: Splats, camera: Camera, near: float, blur: float) -> Sums:
    """Colour and depth [m] times the splats' weights, and the sum of the weights (alpha)."""
    _warm_up()
    return _rasterise(splats, camera, near, blur)


def _rasterise(splats: Splats, camera: Camera, near: float, blur: float) -> Sums:
    batch = torch.broadcast_shapes(splats.batch, camera.T_world_camera.shape[:-2])
    color = color_toward(splats.sh, splats.means, camera.p_world, splats.degree)
    K = camera.K.detach()
    view = _View(
        lens=K[[0, 1, 0, 1], [0, 1, 2, 2]].numpy(),
        width=camera.width,
        height=camera.height,
        near=np.float32(near),
        blur=np.float32(blur),
        pictures=batch.numel(),
    )
    values = (splats.means, splats.factors, splats.opacities, color, camera.T_camera_world)
    rows = [_rows(value, own, batch) for value, own in zip(values, (2, 3, 1, 2, 2), strict=True)]
    return _Draw.apply(*rows, view)  # pyright: ignore[reportReturnType]


@dataclass(frozen=True, kw_only=True, eq=False)
class _View:
    lens: np.ndarray  # fx, fy, cx, cy [px]
    width: int  # [px]
    height: int  # [px]
    near: np.float32  # [m]
    blur: np.float32  # [px²]
    pictures: int

    @property
    def across(self) -> int:
        return -(-self.width // TILE)

    @property
    def tiles(self) -> int:
        return self.across * -(-self.height // TILE)


def _rows(value: Tensor, own: int, batch: torch.Size) -> Tensor:
    """One row for all pictures where that is enough, else one for each."""
    lead = value.shape[: value.ndim - own]
    if lead.numel() == 1:
        return value.reshape(1, *value.shape[len(lead) :])
    return value.expand(*batch, *value.shape[len(lead) :]).reshape(batch.numel(), *value.shape[len(lead) :])


class _Draw(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, means: Tensor, factors: Tensor, opacities: Tensor, colors: Tensor, T_camera_world: Tensor, view: _View) -> tuple[Tensor, ...]:
        arrays = [value.detach().contiguous().numpy() for value in (means, factors, opacities, colors, T_camera_world)]
        count, shape = means.shape[1], (view.pictures, view.height, view.width)
        ellipses = np.empty((view.pictures * count, FIELDS), np.float32)
        boxes = np.empty((len(ellipses), 4), np.int32)
        pairs = np.empty(len(ellipses), np.int64)
        size = (view.width, view.height)
        on_cores(place, evenly(len(ellipses), 1024), *arrays, view.lens, *size, view.near, view.blur, ellipses, boxes, pairs)
        pair_start, start, splat_of, pair_of = _sort(ellipses, boxes, pairs, view)
        sums = [torch.zeros(*shape, *own, dtype=torch.float32) for own in ((3,), (), ())]
        light, newest = np.empty(shape, np.float32), np.empty(shape, np.int32)
        on_cores(draw, by_cost(start), ellipses, splat_of, start, view.across, view.tiles, *size, *(value.numpy() for value in sums), light, newest)
        ctx.save_for_backward(means, factors, opacities, colors, T_camera_world)
        ctx.view, ctx.drawn = view, (ellipses, pair_start, start, splat_of, pair_of, light, newest)
        return tuple(sums)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *g_sums: Tensor) -> tuple[Tensor | None, ...]:
        view, (ellipses, pair_start, start, splat_of, pair_of, light, newest) = ctx.view, ctx.drawn
        means, factors, opacities, colors, T = (value.contiguous() for value in ctx.saved_tensors)
        count, size, tiles = means.shape[1], (view.width, view.height), view.tiles
        g = [torch.zeros_like(value) for value in (means, factors, opacities, colors)]
        chunks = -(-count // CHUNK)
        g_T = torch.zeros(chunks, *T.shape, dtype=torch.float32)
        g_pixels = [value.contiguous().numpy() for value in g_sums]
        for first, last in _groups(pair_start[np.arange(view.pictures + 1) * count]):
            pair0 = pair_start[first * count]
            g_pairs = np.empty((pair_start[last * count] - pair0, VARIABLES), np.float32)
            bounds = [first * tiles + bound for bound in by_cost(start[first * tiles : last * tiles + 1])]
            drawn = (ellipses, splat_of, pair_of, start, view.across, tiles, *size, light, newest)
            on_cores(undraw, bounds, *drawn, *g_pixels, pair0, g_pairs)
            seen = (means.numpy(), factors.numpy(), T.numpy(), view.lens, *size, view.blur)
            on_cores(pull_back, evenly(chunks, 1), *seen, g_pairs, pair_start, first, last, *(value.numpy() for value in g), g_T.numpy())
        return *g, g_T.sum(0), None


def _sort(ellipses: np.ndarray, boxes: np.ndarray, pairs: np.ndarray, view: _View) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Where the pairs of each splat and the entries of each tile begin, and for each entry its splat and its pair."""
    pair_start = np.concatenate([[0], np.cumsum(pairs)])
    total = int(pair_start[-1])
    if total > _MOST_PAIRS:
        raise BadValue(f"the splats cover {total:.3g} tiles of {TILE} px; {_MOST_PAIRS:.3g} can be drawn at once. Render fewer frames, or smaller splats.")
    counts = np.zeros(view.pictures * view.tiles, np.int64)
    pictures = evenly(view.pictures, 1)
    on_cores(count_tiles, pictures, boxes, pairs, view.across, view.tiles, counts)
    start = np.concatenate([[0], np.cumsum(counts)])
    splat_of, pair_of = np.empty(total, np.int32), np.empty(total, np.int32)
    on_cores(deal_out, pictures, ellipses.view(np.uint32), boxes, pairs, pair_start, start, view.across, view.tiles, splat_of, pair_of)
    return pair_start, start, splat_of, pair_of


def _groups(pair_start: np.ndarray) -> list[tuple[int, int]]:
    """Ranges of pictures, each of one picture or of few enough pairs. `pair_start` is that of each picture's first splat, and of none's."""
    groups, first, pictures = [], 0, len(pair_start) - 1
    for last in range(1, pictures + 1):
        if last == pictures or pair_start[last + 1] - pair_start[first] > _PAIRS_AT_ONCE:
            groups.append((first, last))
            first = last
    return groups


@lru_cache(maxsize=1)
def _warm_up() -> None:
    """Compiles the kernels or loads them from disk, before anyone's pictures wait for it without knowing why."""
    sentence = "bunraku: compiling the rasteriser for this processor; this happens once and takes some seconds."
    with said_when_slow(sentence), torch.inference_mode(False), torch.enable_grad():
        camera = Camera.look_at((0.0, 0.0, 3.0), (0.0, 0.0, 0.0), TILE, TILE).to(dtype=torch.float32)
        splats = random_splats(3, 0).map(lambda value: value.float().requires_grad_())
        sum(value.sum() for value in _rasterise(splats, camera, 0.01, 0.3)).backward()  # pyright: ignore[reportAttributeAccessIssue]
