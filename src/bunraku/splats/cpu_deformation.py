"""`deformation.carried` as kernels: float32, all cores, forward and backward, only the joints that a splat listens to.

Frames are shared out forward and for the joints' gradients, splats for their own gradients, so no two cores write to one place and the
same bits come out at every run.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from bunraku.splats.compiled import evenly, kernel, on_cores

_FEWEST_SPLATS = 1024  # that are worth a piece of work of their own


@kernel
@no_type_check
def _blend(start, joint, weight, moved, f, n, G):
    """The transform of splat n in frame f."""
    G[:] = 0
    for k in range(start[n], start[n + 1]):
        for e in range(12):
            G[e] += weight[k] * moved[f, joint[k], e]


@kernel
@no_type_check
def _carry(start, joint, weight, arm, moved, rest, out, first, last):
    """`rest` (N 3 4) holds factor and mean as four columns, `moved` (F J 12) the joints' transforms, `out` (F N 3 4) what they make of it."""
    G = np.empty(12, dtype=np.float32)
    for f in range(first, last):
        for n in range(len(rest)):
            _blend(start, joint, weight, moved, f, n, G)
            for a in range(3):
                for c in range(4):
                    out[f, n, a, c] = G[4 * a] * rest[n, 0, c] + G[4 * a + 1] * rest[n, 1, c] + G[4 * a + 2] * rest[n, 2, c]
                out[f, n, a, 3] += G[4 * a + 3]
            for k in range(start[n], start[n + 1]):
                for a in range(3):
                    for b in range(3):
                        out[f, n, a, 3] += moved[f, joint[k], 4 * a + b] * arm[k, b]


@kernel
@no_type_check
def _to_joints(start, joint, weight, arm, rest, pull, pull_moved, first, last):
    """Gradients of the joints' transforms, `pull_moved` (F J 12, zero before), from those of `out`."""
    D = np.empty(12, dtype=np.float32)
    for f in range(first, last):
        for n in range(len(rest)):
            for a in range(3):
                for b in range(3):
                    D[4 * a + b] = pull[f, n, a, 0] * rest[n, b, 0] + pull[f, n, a, 1] * rest[n, b, 1]
                    D[4 * a + b] += pull[f, n, a, 2] * rest[n, b, 2] + pull[f, n, a, 3] * rest[n, b, 3]
                D[4 * a + 3] = pull[f, n, a, 3]
            for k in range(start[n], start[n + 1]):
                for e in range(12):
                    pull_moved[f, joint[k], e] += weight[k] * D[e]
                for a in range(3):
                    for b in range(3):
                        pull_moved[f, joint[k], 4 * a + b] += pull[f, n, a, 3] * arm[k, b]


@kernel
@no_type_check
def _to_splats(start, joint, weight, arm, moved, pull, pull_rest, first, last):
    """Gradients of factors and means at rest, `pull_rest` (N 3 4, zero before), from those of `out`."""
    G = np.empty(12, dtype=np.float32)
    for f in range(len(moved)):
        for n in range(first, last):
            _blend(start, joint, weight, moved, f, n, G)
            for b in range(3):
                for c in range(4):
                    pull_rest[n, b, c] += G[b] * pull[f, n, 0, c] + G[4 + b] * pull[f, n, 1, c] + G[8 + b] * pull[f, n, 2, c]


class _Carry(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rest: Tensor, moved: Tensor, *sparse: Tensor) -> Tensor:
        out = torch.empty(len(moved), len(rest), 3, 4)
        ctx.save_for_backward(rest, moved, *sparse)
        on_cores(_carry, evenly(len(moved), 1), *(value.numpy() for value in sparse), moved.numpy(), rest.numpy(), out.numpy())
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rest, moved, *sparse = (value.numpy() for value in ctx.saved_tensors)
        pull = gradients[0].contiguous().numpy()
        pull_rest, pull_moved = (torch.zeros(value.shape) if needed else None for value, needed in zip((rest, moved), ctx.needs_input_grad, strict=False))
        if pull_rest is not None:
            on_cores(_to_splats, evenly(len(rest), _FEWEST_SPLATS), *sparse, moved, pull, pull_rest.numpy())
        if pull_moved is not None:
            on_cores(_to_joints, evenly(len(moved), 1), *sparse, rest, pull, pull_moved.numpy())
        return pull_rest, pull_moved, None, None, None, None


def carried_fast(
    means: Float[Tensor, "N 3"],
    factors: Float[Tensor, "N 3 3"],
    weights: Float[Tensor, "N J"],
    arms: Float[Tensor, "N J 3"] | None,
    moved: Float[Tensor, "F J 3 4"],
) -> tuple[Float[Tensor, "F N 3"], Float[Tensor, "F N 3 3"]]:
    """See `deformation.carried`. Weights and arms are taken as they are: no gradient reaches them."""
    rows, joint = weights.detach().nonzero(as_tuple=True)  # where a joint has no weight it has no arm
    start = torch.searchsorted(rows, torch.arange(len(means) + 1))
    arm = torch.zeros(len(rows), 3) if arms is None else arms.detach()[rows, joint]
    rest = torch.cat([factors, means[:, :, None]], dim=-1)
    out: Tensor = _Carry.apply(rest, moved.flatten(-2).contiguous(), start, joint, weights.detach()[rows, joint], arm)  # pyright: ignore[reportAssignmentType]
    return out[..., 3], out[..., :3]
