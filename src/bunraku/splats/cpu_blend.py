"""Tiles to pixels, front to back, and back to front for the gradients: the two loops that all the time goes into.

A tile's pixels lie in one small buffer, layer after layer, and a splat is one loop over the rows it touches, without a branch:
LLVM makes vector instructions of 8 or 16 pixels of it. No two tiles write to the same place, in the gradient neither, where every
pair of a splat and a tile has a row of its own; so there are no locks, and results do not depend on who works on what.
"""

from __future__ import annotations

import numpy as np

from bunraku.splats import projection
from bunraku.splats.compiled import kernel
from bunraku.splats.cpu_projection import TILE

_f, _u = np.float32, np.uint64
_PIXELS = TILE * TILE
_L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8, _L9 = (_u(layer * _PIXELS) for layer in range(1, 10))
_ZERO, _ONE, _HALF, _NONE = _f(0), _f(1), _f(0.5), _f(-1)
_LEAST_ALPHA, _MOST_ALPHA, _LEAST_LIGHT = _f(projection.LEAST_ALPHA), _f(projection.MOST_ALPHA), _f(projection.LEAST_LIGHT)
_LOOK_EVERY = 8  # entries, whether a tile has any pixel left that is not finished

_TO_EXPONENT = _f(np.sqrt(0.5 / np.log(2)))  # exp(−½ d²) is 2^−(d · this)²
_FARTHEST = _f(20)  # 2^−20 is less than any alpha that is drawn
_P1, _P2, _P3, _P4, _P5, _P6 = (_f(np.log(2) ** k / d) for k, d in enumerate((1, 2, 6, 24, 120, 720), start=1))  # 2^x on [−½, ½]
_BIAS, _MANTISSA = np.int32(127), np.int32(23)


@kernel
def _power_of_half(square):
    """2^−square, for 0 ≤ square: to a few units of the last place down to 2^−20, and no less than that."""
    x = -min(square, _FARTHEST)
    whole = np.int32(x - _HALF)
    x -= _f(whole)
    power = _ONE + x * (_P1 + x * (_P2 + x * (_P3 + x * (_P4 + x * (_P5 + x * _P6)))))
    return power * np.int32((whole + _BIAS) << _MANTISSA).view(np.float32)


@kernel
def draw(ellipses, splat_of, start, across, tiles, width, height, color, depth_sum, alpha_sum, light, newest, first, last):
    """Colour and depth times weights, the sum of weights, the light left, and the last entry drawn, for `undraw`."""
    # layers: light, red, green, blue, depth, unfinished, last entry, x, y
    pixel = np.empty(9 * _PIXELS, np.float32)
    for i in range(_PIXELS):
        pixel[7 * _PIXELS + i], pixel[8 * _PIXELS + i] = _f(i % TILE), _f(i // TILE)
    for tile in range(first, last):
        if start[tile] == start[tile + 1]:
            continue
        picture, top, left, rows, columns = _place_of(tile, across, tiles, width, height)
        pixel[: 5 * _PIXELS] = _ZERO
        pixel[:_PIXELS] = _ONE
        pixel[6 * _PIXELS : 7 * _PIXELS] = _NONE
        for i in range(_PIXELS):
            pixel[5 * _PIXELS + i] = _ONE if i // TILE < rows and i % TILE < columns else _ZERO
        for entry in range(start[tile], start[tile + 1]):
            if (entry - start[tile]) % _LOOK_EVERY == _LOOK_EVERY - 1 and _sum_of_layer(pixel, _L5) == _ZERO:
                break
            _draw_splat(pixel, ellipses[splat_of[entry]], top, left, rows, _f(entry - start[tile]))
        for y in range(rows):
            for x in range(columns):
                i = y * TILE + x
                for k in range(3):
                    color[picture, top + y, left + x, k] = pixel[(1 + k) * _PIXELS + i]
                depth_sum[picture, top + y, left + x] = pixel[4 * _PIXELS + i]
                alpha_sum[picture, top + y, left + x] = _ONE - pixel[i]
                light[picture, top + y, left + x] = pixel[i]
                newest[picture, top + y, left + x] = np.int32(pixel[6 * _PIXELS + i])


@kernel
def _draw_splat(pixel, e, top, left, rows, number):
    """One splat in front of what lies behind it: the loop that pictures are made of."""
    mx, my = e[0] - _f(left) - _HALF, e[1] - _f(top) - _HALF
    u, v, w = _TO_EXPONENT * e[2], _TO_EXPONENT * e[3], _TO_EXPONENT * e[4]
    opacity, red, green, blue, depth = e[5], e[6], e[7], e[8], e[9]
    low, high = max(int(np.ceil(my - e[11])), 0), min(int(np.floor(my + e[11])) + 1, rows)
    for i in range(_u(low * TILE), _u(max(high, low) * TILE)):
        x, y = pixel[i + _L7] - mx, pixel[i + _L8] - my
        du, dw = u * x + v * y, w * y
        alpha = min(opacity * _power_of_half(du * du + dw * dw), _MOST_ALPHA)
        alpha = alpha if alpha >= _LEAST_ALPHA else _ZERO
        before = pixel[i]
        unfinished = pixel[i + _L5] if before * (_ONE - alpha) > _LEAST_LIGHT else _ZERO
        weight = alpha * unfinished * before
        pixel[i] = before * (_ONE - alpha * unfinished)
        pixel[i + _L1] += weight * red
        pixel[i + _L2] += weight * green
        pixel[i + _L3] += weight * blue
        pixel[i + _L4] += weight * depth
        pixel[i + _L5] = unfinished
        pixel[i + _L6] = number if weight > _ZERO else pixel[i + _L6]


@kernel
def undraw(ellipses, splat_of, pair_of, start, across, tiles, width, height, light, newest, g_color, g_depth_sum, g_alpha_sum, pair0, g_pairs, first, last):
    """What each pair of a splat and a tile wants changed: `g_pairs[pair - pair0]`, in the order of `cpu_projection`'s variables."""
    # layers: light, Σ weight q behind, gradient of red, green, blue, depth and alpha, last entry, x, y
    pixel = np.empty(10 * _PIXELS, np.float32)
    for i in range(_PIXELS):
        pixel[8 * _PIXELS + i], pixel[9 * _PIXELS + i] = _f(i % TILE), _f(i // TILE)
    for tile in range(first, last):
        if start[tile] == start[tile + 1]:
            continue
        picture, top, left, rows, columns = _place_of(tile, across, tiles, width, height)
        pixel[: 7 * _PIXELS] = _ZERO
        pixel[7 * _PIXELS : 8 * _PIXELS] = _NONE
        end = -1
        for y in range(rows):
            for x in range(columns):
                i = y * TILE + x
                pixel[i] = light[picture, top + y, left + x]
                for k in range(3):
                    pixel[(2 + k) * _PIXELS + i] = g_color[picture, top + y, left + x, k]
                pixel[5 * _PIXELS + i] = g_depth_sum[picture, top + y, left + x]
                pixel[6 * _PIXELS + i] = g_alpha_sum[picture, top + y, left + x]
                pixel[7 * _PIXELS + i] = _f(newest[picture, top + y, left + x])
                end = max(end, newest[picture, top + y, left + x])
        for entry in range(start[tile] + end + 1, start[tile + 1]):
            g_pairs[pair_of[entry] - pair0] = _ZERO
        for entry in range(start[tile] + end, start[tile] - 1, -1):
            _undraw_splat(pixel, ellipses[splat_of[entry]], top, left, rows, _f(entry - start[tile]), g_pairs[pair_of[entry] - pair0])


@kernel
def _undraw_splat(pixel, e, top, left, rows, number, own):
    """One splat taken from in front of what lies behind it; its gradient goes to `own`.

    With q = g · (colour, depth, 1) of a splat, d loss / d alpha_i = light_before_i q_i − Σ_{j behind i} weight_j q_j / (1 − alpha_i).
    """
    mx, my = e[0] - _f(left) - _HALF, e[1] - _f(top) - _HALF
    u, v, w = _TO_EXPONENT * e[2], _TO_EXPONENT * e[3], _TO_EXPONENT * e[4]
    opacity, red, green, blue, depth = e[5], e[6], e[7], e[8], e[9]
    low, high = max(int(np.ceil(my - e[11])), 0), min(int(np.floor(my + e[11])) + 1, rows)
    g_red = g_green = g_blue = g_depth = _ZERO
    s = s_u = s_ux = s_uy = s_y = s_yy = _ZERO
    for i in range(_u(low * TILE), _u(max(high, low) * TILE)):
        x, y = pixel[i + _L8] - mx, pixel[i + _L9] - my
        du, dw = u * x + v * y, w * y
        raw = opacity * _power_of_half(du * du + dw * dw)
        alpha = min(raw, _MOST_ALPHA)
        alpha = alpha if (alpha >= _LEAST_ALPHA) and (number <= pixel[i + _L7]) else _ZERO
        inverse = _ONE / (_ONE - alpha)
        before = pixel[i] * inverse
        weight = alpha * before
        behind = pixel[i + _L1]
        q = pixel[i + _L2] * red + pixel[i + _L3] * green + pixel[i + _L4] * blue + pixel[i + _L5] * depth + pixel[i + _L6]
        # d loss / d(½ d²); a splat held at the greatest alpha does not change
        g = raw * (behind * inverse - before * q) if (alpha > _ZERO) and (raw <= _MOST_ALPHA) else _ZERO
        pixel[i] = before
        pixel[i + _L1] = behind + weight * q
        g_red += weight * pixel[i + _L2]
        g_green += weight * pixel[i + _L3]
        g_blue += weight * pixel[i + _L4]
        g_depth += weight * pixel[i + _L5]
        g_u = g * du
        s += g
        s_u += g_u
        s_ux += g_u * x
        s_uy += g_u * y
        s_y += g * y
        s_yy += g * y * y
    # du carries the factor that makes exponents of two, and must be free of it again
    s_u, s_ux, s_uy = s_u / _TO_EXPONENT, s_ux / _TO_EXPONENT, s_uy / _TO_EXPONENT
    own[0] = -e[2] * s_u
    own[1] = -e[3] * s_u - e[4] * e[4] * s_y
    own[2], own[3], own[4] = s_ux, s_uy, e[4] * s_yy
    own[5] = -s / opacity
    own[6], own[7], own[8], own[9] = g_red, g_green, g_blue, g_depth


@kernel
def _place_of(tile, across, tiles, width, height):
    """A tile's picture, its first row and column of pixels there, and how many it has."""
    picture = tile // tiles
    row = (tile - picture * tiles) // across
    top, left = row * TILE, (tile - picture * tiles - row * across) * TILE
    return picture, top, left, min(TILE, height - top), min(TILE, width - left)


@kernel
def _sum_of_layer(pixel, layer):
    total = _ZERO
    for i in range(layer, layer + _u(_PIXELS)):
        total += pixel[i]
    return total
