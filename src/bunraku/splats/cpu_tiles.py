"""Which splats touch which tile of which picture, front to back: sorted once by depth, then dealt out to the tiles in that order."""

from __future__ import annotations

import numpy as np

from bunraku.splats.compiled import kernel
from bunraku.splats.cpu_projection import DEPTH

_BITS = 11  # of the depth in one pass of the sort; three passes see all 32
_BUCKETS = 1 << _BITS


@kernel
def count_tiles(boxes, pairs, across, tiles, counts, first, last):
    """`counts[picture * tiles + tile]`: how many splats touch each tile."""
    splats = len(pairs) * tiles // len(counts)
    for picture in range(first, last):
        for i in range(picture * splats, (picture + 1) * splats):
            if pairs[i]:
                for row in range(boxes[i, 2], boxes[i, 3]):
                    for column in range(boxes[i, 0], boxes[i, 1]):
                        counts[picture * tiles + row * across + column] += 1


@kernel
def deal_out(bits, boxes, pairs, pair_start, start, across, tiles, splat_of, pair_of, first, last):
    """Entries of tile t are `start[t]` to `start[t + 1]`, the nearest first: which splat, and which of the splat's own pairs it is.

    `bits` are the ellipses' float32 numbers read as integers: of positive ones the order is the same.
    """
    splats = (len(pair_start) - 1) * tiles // (len(start) - 1)
    cursor = np.empty(tiles, np.int64)
    for picture in range(first, last):
        order = np.empty(splats, np.int64)
        seen = 0
        for i in range(picture * splats, (picture + 1) * splats):
            if pairs[i]:
                order[seen] = i
                seen += 1
        order = _by_depth(bits, order[:seen])
        cursor[:] = start[picture * tiles : (picture + 1) * tiles]
        for i in order:
            pair = pair_start[i]
            for row in range(boxes[i, 2], boxes[i, 3]):
                for column in range(boxes[i, 0], boxes[i, 1]):
                    entry = cursor[row * across + column]
                    cursor[row * across + column] = entry + 1
                    splat_of[entry] = i
                    pair_of[entry] = pair
                    pair += 1


@kernel
def _by_depth(bits, order):
    """A radix sort: equal depths keep their order."""
    other = np.empty_like(order)
    for shift in (0, _BITS, 2 * _BITS):
        place = np.zeros(_BUCKETS + 1, np.int64)
        for i in order:
            place[((np.int64(bits[i, DEPTH]) >> shift) & (_BUCKETS - 1)) + 1] += 1
        for bucket in range(_BUCKETS):
            place[bucket + 1] += place[bucket]
        for i in order:
            bucket = (np.int64(bits[i, DEPTH]) >> shift) & (_BUCKETS - 1)
            other[place[bucket]] = i
            place[bucket] += 1
        order, other = other, order
    return order
