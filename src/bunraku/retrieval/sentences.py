"""Which sentences say the same: near in meaning, and not the opposite of each other.

A sentence's pooled vector is nearly blind to what matters most here ("kicks with the left leg" and "… right leg" have a cosine of
0.98), so pairs of words that exclude each other are compared by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bunraku.datasets.sides import sides_of

SAME = 0.95  # cosine of pooled vectors: above it two sentences say the same in other words ("walks in a circle", "walks around in a circle")
ALIKE = 0.8  # above it a motion may well show both

_SIDES = ((("left", "leftward", "leftmost", "lefty"), ("right", "rightward", "rightmost", "righty")), (("clockwise",), ("counterclockwise",)))
_OPPOSITES = (
    (r"forwards?|ahead", r"backwards?|back"),
    (r"slow(?:ly|er|s)?", r"quick(?:ly|er)?|fast(?:er)?|rapid(?:ly)?"),
    (r"up(?:wards?)?|stands?|raises?|rises?", r"down(?:wards?)?|sits?|lowers?"),
)
_PATTERNS = [tuple(re.compile(rf"(?<![\w-])(?:{words})(?!\w)", re.IGNORECASE) for words in pair) for pair in _OPPOSITES]
_FIRSTS = sum(1 << 2 * number for number in range(len(_SIDES) + len(_OPPOSITES)))  # the bits of the first word of every pair


def opposites(text: str) -> int:
    """Which words of pairs that exclude each other a sentence has, as two bits a pair; none where it has both."""
    sides = sides_of(text)
    found = [tuple(any(word in sides for word in words) for words in pair) for pair in _SIDES]
    found += [tuple(bool(words.search(text)) for words in pair) for pair in _PATTERNS]
    return sum(1 << (2 * number + has[1]) for number, has in enumerate(found) if has[0] != has[1])


def one_sided(codes: Int[Tensor, " N"]) -> Bool[Tensor, " N"]:
    """Which sentences speak of one side alone, so that they are not true of the mirror image."""
    return (codes & ((1 << 2 * len(_SIDES)) - 1)) != 0


def opposite_codes(texts: Sequence[str]) -> Int[Tensor, " N"]:
    return torch.tensor([opposites(text) for text in texts], dtype=torch.long)


def alike(pooled: Float[Tensor, "N W"], codes: Int[Tensor, " N"], cosine: float) -> Bool[Tensor, "N N"]:
    """Which sentences have a cosine above this and do not exclude each other; every sentence is like itself."""
    directions = F.normalize(pooled, dim=-1)
    near = directions @ directions.T > cosine
    return (near & ~_exclude(codes)) | torch.eye(len(codes), dtype=torch.bool, device=codes.device)


def _exclude(codes: Int[Tensor, " N"]) -> Bool[Tensor, "N N"]:
    swapped = ((codes & _FIRSTS) << 1) | ((codes >> 1) & _FIRSTS)
    return (codes[:, None] & swapped[None]) != 0
