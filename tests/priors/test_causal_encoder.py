"""The gradient through an encoder that works in chunks: the thrifty way against plain autograd."""

from __future__ import annotations

import torch
from torch import Tensor

from bunraku.priors.causal_encoder import Cache, encode_chunks


class Remembering(torch.nn.Module):
    """Two causal layers; the second sees the last two outputs of the first, across chunks."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = (torch.nn.Conv3d(3, 3, (3, 1, 1), dtype=torch.float64) for _ in range(2))

    def forward(self, frames: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        kept = []
        for layer, before in zip((self.first, self.second), cache or (None, None), strict=True):
            padded = torch.cat([frames[:, :, :1].expand(-1, -1, 2, -1, -1) if before is None else before, frames], dim=2)
            kept.append(padded[:, :, -2:])
            frames = torch.tanh(layer(padded))
        return frames, tuple(kept)


CHUNKS = [range(1), range(1, 4), range(4, 9)]


def gradient(frames: Tensor, pull: Tensor, *, low_memory: bool, cut: bool = False) -> tuple[Tensor, Tensor]:
    net, frames = Remembering(), frames.clone().requires_grad_()

    def forgetful(x: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        return net(x, tuple(part.detach() for part in cache))

    latent = encode_chunks(frames, CHUNKS, forgetful if cut else net, low_memory=low_memory)
    return latent, torch.autograd.grad((latent * pull).sum(), frames)[0]


def test_the_thrifty_gradient_is_the_plain_one() -> None:
    frames, pull = torch.randn(2, 1, 3, 9, 2, 2, dtype=torch.float64)
    (a, da), (b, db) = (gradient(frames, pull, low_memory=low) for low in (True, False))
    assert torch.equal(a, b)
    assert torch.allclose(da, db, atol=1e-12)


def test_cutting_the_caches_off_would_be_wrong() -> None:
    """The reason for all this; it also shows that the test above can fail."""
    frames, pull = torch.randn(2, 1, 3, 9, 2, 2, dtype=torch.float64)
    whole, cut = (gradient(frames, pull, low_memory=False, cut=cut)[1] for cut in (False, True))
    assert torch.allclose(whole[:, :, 4:], cut[:, :, 4:])  # the last chunk has nothing behind it
    assert not torch.allclose(whole[:, :, :4], cut[:, :, :4], atol=1e-3)


def test_frames_that_nothing_depends_on_get_no_gradient() -> None:
    frames, pull = torch.randn(2, 1, 3, 9, 2, 2, dtype=torch.float64)
    pull[:, :, 1:] = 0
    found = gradient(frames, pull, low_memory=True)[1]
    assert bool(found[:, :, 0].any())
    assert not bool(found[:, :, 1:].any())
