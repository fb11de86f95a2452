"""The exact gradient through a causal video encoder, with the memory of one chunk of frames.

Such encoders go through a video in chunks and hand each chunk what its convolutions remember of the ones before (the cache):

    chunk 0 ─► latent 0, cache 1      chunk 1 + cache 1 ─► latent 1, cache 2      …

Forward, nothing but the caches is kept. Backward, chunks are encoded once more from the last to the first, each with its cache; the
gradient that reaches a cache is handed on to the chunk that made it. Cutting the caches off instead would be wrong for every chunk but the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

Frames = Float[Tensor, "B C F H W"]
Moments = Float[Tensor, "B K T Y X"]
Cache = tuple[Tensor, ...]  # empty before the first chunk


# one chunk of frames, and the cache of those before, to its latents and the next cache
ChunkEncoder = Callable[[Frames, Cache], tuple[Moments, Cache]]


def encode_chunks(frames: Frames, chunks: Sequence[range], step: ChunkEncoder, *, low_memory: bool = True) -> Moments:
    """The latents of all chunks, one after the other. `low_memory=False` lets autograd keep everything: the twin."""
    if low_memory:
        return _Chunked.apply(frames, tuple(chunks), step)  # type: ignore[no-any-return]
    cache: Cache = ()
    latents = []
    for chunk in chunks:
        latent, cache = step(frames[:, :, chunk.start : chunk.stop], cache)
        latents.append(latent)
    return torch.cat(latents, dim=2)


class _Chunked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, frames: Tensor, chunks: tuple[range, ...], step: ChunkEncoder) -> Tensor:
        ctx.chunks, ctx.step, ctx.caches = chunks, step, []
        ctx.save_for_backward(frames)
        cache: Cache = ()
        latents = []
        for chunk in chunks:
            ctx.caches.append(cache)
            latent, cache = step(frames[:, :, chunk.start : chunk.stop], cache)
            latents.append(latent)
        ctx.sizes = [latent.shape[2] for latent in latents]
        return torch.cat(latents, dim=2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (frames,) = ctx.saved_tensors
        by_latent = gradients[0].split(ctx.sizes, dim=2)
        to_frames = torch.zeros_like(frames)
        from_later: Sequence[Tensor | None] = ()  # gradients of the cache that the chunk in work hands on
        for chunk, cache, to_latent in reversed(list(zip(ctx.chunks, ctx.caches, by_latent, strict=True))):
            with torch.enable_grad():
                x = frames[:, :, chunk.start : chunk.stop].detach().requires_grad_()
                before = tuple(part.detach().requires_grad_() for part in cache)
                latent, after = ctx.step(x, before)
            heads, pulls = [latent], [to_latent]
            for part, pull in zip(after, from_later, strict=False):  # after the last chunk nobody reads the cache
                if pull is not None and part.requires_grad:
                    heads.append(part)
                    pulls.append(pull)
            found = torch.autograd.grad(heads, [x, *before], pulls, allow_unused=True)
            to_frames[:, :, chunk.start : chunk.stop] = 0 if found[0] is None else found[0]
            from_later = found[1:]
        return to_frames, None, None
