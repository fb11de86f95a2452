"""`projection.py` as kernels: every splat of every picture to its ellipse, and the ellipses' gradients back to splats and cameras.

Arrays of means, factors, opacities, colours and poses have one row for all pictures or one for each.
"""

from __future__ import annotations

import numpy as np

from bunraku.splats import projection
from bunraku.splats.compiled import kernel

# what is kept of an ellipse: centre x y, root u v w, opacity, red green blue, depth, reach x y; the first ten have gradients
FIELDS = 12
VARIABLES = 10
DEPTH = 9
TILE = 16  # [px]
CHUNK = 1024  # splats whose part in a camera's gradient is summed together; fixed, so that sums do not depend on the number of cores

_f = np.float32
_LEAST_ALPHA = _f(projection.LEAST_ALPHA)
_BEYOND = _f(projection.BEYOND_EDGE / 2)
_ONE, _HALF, _TWO = _f(1), _f(0.5), _f(2)


@kernel
def place(means, factors, opacities, colors, T_camera_world, lens, width, height, near, blur, ellipses, boxes, pairs, first, last):
    """Fills `ellipses`, the tiles each may touch (`boxes`: left, right, top, bottom, half-open) and their number."""
    count = means.shape[1]
    across, down = (width + TILE - 1) // TILE, (height + TILE - 1) // TILE
    fx, fy, cx, cy = lens[0], lens[1], lens[2], lens[3]
    low_x, high_x = -(cx / fx + _BEYOND * _f(width) / fx), (_f(width) - cx) / fx + _BEYOND * _f(width) / fx
    low_y, high_y = -(cy / fy + _BEYOND * _f(height) / fy), (_f(height) - cy) / fy + _BEYOND * _f(height) / fy
    for i in range(first, last):
        b = i // count
        n = i - b * count
        pairs[i] = 0
        p = means[b if means.shape[0] > 1 else 0, n]
        T = T_camera_world[b if T_camera_world.shape[0] > 1 else 0]
        opacity = opacities[b if opacities.shape[0] > 1 else 0, n]
        z = T[2, 0] * p[0] + T[2, 1] * p[1] + T[2, 2] * p[2] + T[2, 3]
        if z < near or opacity < _LEAST_ALPHA:
            continue
        x = (T[0, 0] * p[0] + T[0, 1] * p[1] + T[0, 2] * p[2] + T[0, 3]) / z
        y = (T[1, 0] * p[0] + T[1, 1] * p[1] + T[1, 2] * p[2] + T[1, 3]) / z
        F = factors[b if factors.shape[0] > 1 else 0, n]
        tx, ty = min(max(x, low_x), high_x), min(max(y, low_y), high_y)
        jx, jy = fx / z, fy / z
        # the rows of M = J R F, column by column
        r0, r1, r2 = T[0, 0] - tx * T[2, 0], T[0, 1] - tx * T[2, 1], T[0, 2] - tx * T[2, 2]
        a0 = jx * (r0 * F[0, 0] + r1 * F[1, 0] + r2 * F[2, 0])
        a1 = jx * (r0 * F[0, 1] + r1 * F[1, 1] + r2 * F[2, 1])
        a2 = jx * (r0 * F[0, 2] + r1 * F[1, 2] + r2 * F[2, 2])
        r0, r1, r2 = T[1, 0] - ty * T[2, 0], T[1, 1] - ty * T[2, 1], T[1, 2] - ty * T[2, 2]
        d0 = jy * (r0 * F[0, 0] + r1 * F[1, 0] + r2 * F[2, 0])
        d1 = jy * (r0 * F[0, 1] + r1 * F[1, 1] + r2 * F[2, 1])
        d2 = jy * (r0 * F[0, 2] + r1 * F[1, 2] + r2 * F[2, 2])
        xx, xy, yy = a0 * a0 + a1 * a1 + a2 * a2, a0 * d0 + a1 * d1 + a2 * d2, d0 * d0 + d1 * d1 + d2 * d2
        m0, m1, m2 = a1 * d2 - a2 * d1, a2 * d0 - a0 * d2, a0 * d1 - a1 * d0
        determinant = m0 * m0 + m1 * m1 + m2 * m2 + blur * (xx + yy) + blur * blur
        xx, yy = xx + blur, yy + blur
        reach = _TWO * np.log(opacity / _LEAST_ALPHA)
        reach_x, reach_y = np.sqrt(reach * xx), np.sqrt(reach * yy)
        px, py = fx * x + cx, fy * y + cy
        if px + reach_x <= 0 or px - reach_x >= width or py + reach_y <= 0 or py - reach_y >= height:
            continue
        left, right = max(int(np.floor((px - reach_x) / TILE)), 0), min(int(np.floor((px + reach_x) / TILE)) + 1, across)
        top, bottom = max(int(np.floor((py - reach_y) / TILE)), 0), min(int(np.floor((py + reach_y) / TILE)) + 1, down)
        boxes[i, 0], boxes[i, 1], boxes[i, 2], boxes[i, 3] = left, right, top, bottom
        pairs[i] = (right - left) * (bottom - top)
        color = colors[b if colors.shape[0] > 1 else 0, n]
        e = ellipses[i]
        e[0], e[1] = px, py
        e[2], e[3], e[4] = np.sqrt(yy / determinant), -xy / np.sqrt(yy * determinant), _ONE / np.sqrt(yy)
        e[5], e[6], e[7], e[8], e[9] = opacity, color[0], color[1], color[2], z
        e[10], e[11] = reach_x, reach_y


@kernel
def pull_back(
    means, factors, T_camera_world, lens, width, height, blur,
    g_pairs, pair_start, first_picture, last_picture,
    g_means, g_factors, g_opacities, g_colors, g_T, first, last,
):  # fmt: skip
    """Adds what the pairs of a splat and a tile want changed to the gradients of splats and, chunk by chunk, of poses."""
    count = means.shape[1]
    fx, fy, cx, cy = lens[0], lens[1], lens[2], lens[3]
    low_x, high_x = -(cx / fx + _BEYOND * _f(width) / fx), (_f(width) - cx) / fx + _BEYOND * _f(width) / fx
    low_y, high_y = -(cy / fy + _BEYOND * _f(height) / fy), (_f(height) - cy) / fy + _BEYOND * _f(height) / fy
    g = np.empty(VARIABLES, np.float32)
    pair0 = pair_start[first_picture * count]
    for chunk in range(first, last):
        for n in range(chunk * CHUNK, min((chunk + 1) * CHUNK, count)):
            for b in range(first_picture, last_picture):
                i = b * count + n
                if pair_start[i] == pair_start[i + 1]:
                    continue
                g[:] = _f(0)
                for pair in range(pair_start[i] - pair0, pair_start[i + 1] - pair0):
                    for k in range(VARIABLES):
                        g[k] += g_pairs[pair, k]
                p = means[b if means.shape[0] > 1 else 0, n]
                T = T_camera_world[b if T_camera_world.shape[0] > 1 else 0]
                F = factors[b if factors.shape[0] > 1 else 0, n]
                # what `place` worked out
                z = T[2, 0] * p[0] + T[2, 1] * p[1] + T[2, 2] * p[2] + T[2, 3]
                x = (T[0, 0] * p[0] + T[0, 1] * p[1] + T[0, 2] * p[2] + T[0, 3]) / z
                y = (T[1, 0] * p[0] + T[1, 1] * p[1] + T[1, 2] * p[2] + T[1, 3]) / z
                tx, ty = min(max(x, low_x), high_x), min(max(y, low_y), high_y)
                jx, jy = fx / z, fy / z
                w00 = T[0, 0] * F[0, 0] + T[0, 1] * F[1, 0] + T[0, 2] * F[2, 0]
                w01 = T[0, 0] * F[0, 1] + T[0, 1] * F[1, 1] + T[0, 2] * F[2, 1]
                w02 = T[0, 0] * F[0, 2] + T[0, 1] * F[1, 2] + T[0, 2] * F[2, 2]
                w10 = T[1, 0] * F[0, 0] + T[1, 1] * F[1, 0] + T[1, 2] * F[2, 0]
                w11 = T[1, 0] * F[0, 1] + T[1, 1] * F[1, 1] + T[1, 2] * F[2, 1]
                w12 = T[1, 0] * F[0, 2] + T[1, 1] * F[1, 2] + T[1, 2] * F[2, 2]
                w20 = T[2, 0] * F[0, 0] + T[2, 1] * F[1, 0] + T[2, 2] * F[2, 0]
                w21 = T[2, 0] * F[0, 1] + T[2, 1] * F[1, 1] + T[2, 2] * F[2, 1]
                w22 = T[2, 0] * F[0, 2] + T[2, 1] * F[1, 2] + T[2, 2] * F[2, 2]
                a0, a1, a2 = jx * (w00 - tx * w20), jx * (w01 - tx * w21), jx * (w02 - tx * w22)
                d0, d1, d2 = jy * (w10 - ty * w20), jy * (w11 - ty * w21), jy * (w12 - ty * w22)
                xx, xy, yy = a0 * a0 + a1 * a1 + a2 * a2, a0 * d0 + a1 * d1 + a2 * d2, d0 * d0 + d1 * d1 + d2 * d2
                m0, m1, m2 = a1 * d2 - a2 * d1, a2 * d0 - a0 * d2, a0 * d1 - a1 * d0
                determinant = m0 * m0 + m1 * m1 + m2 * m2 + blur * (xx + yy) + blur * blur
                yy = yy + blur
                # root u = √(yy / D), v = −xy / √(yy D), w = 1 / √yy, back to xy, yy and D
                mixed = _ONE / np.sqrt(yy * determinant)
                gu, gv, gw = g[2] * np.sqrt(yy / determinant), -g[3] * xy * mixed, g[4] / np.sqrt(yy)
                g_determinant = -_HALF * (gu + gv) / determinant
                g_xy = -g[3] * mixed
                g_yy = _HALF * (gu - gv - gw) / yy + blur * g_determinant
                g_xx = blur * g_determinant
                m0, m1, m2 = _TWO * g_determinant * m0, _TWO * g_determinant * m1, _TWO * g_determinant * m2
                ga0 = _TWO * g_xx * a0 + g_xy * d0 + (d1 * m2 - d2 * m1)
                ga1 = _TWO * g_xx * a1 + g_xy * d1 + (d2 * m0 - d0 * m2)
                ga2 = _TWO * g_xx * a2 + g_xy * d2 + (d0 * m1 - d1 * m0)
                gd0 = _TWO * g_yy * d0 + g_xy * a0 + (m1 * a2 - m2 * a1)
                gd1 = _TWO * g_yy * d1 + g_xy * a1 + (m2 * a0 - m0 * a2)
                gd2 = _TWO * g_yy * d2 + g_xy * a2 + (m0 * a1 - m1 * a0)
                # M₀ = fx / z (W₀ − tx W₂) and M₁ likewise, to W = R F and the place in the camera
                g_tx = -jx * (ga0 * w20 + ga1 * w21 + ga2 * w22)
                g_ty = -jy * (gd0 * w20 + gd1 * w21 + gd2 * w22)
                gz = g[9] - (ga0 * a0 + ga1 * a1 + ga2 * a2 + gd0 * d0 + gd1 * d1 + gd2 * d2) / z
                gx, gy = g[0] * fx, g[1] * fy
                if low_x <= x <= high_x:
                    gx += g_tx
                if low_y <= y <= high_y:
                    gy += g_ty
                gz -= (gx * x + gy * y) / z
                gx, gy = gx / z, gy / z
                ga0, ga1, ga2 = jx * ga0, jx * ga1, jx * ga2
                gd0, gd1, gd2 = jy * gd0, jy * gd1, jy * gd2
                gw0, gw1, gw2 = -tx * ga0 - ty * gd0, -tx * ga1 - ty * gd1, -tx * ga2 - ty * gd2
                own = g_means[b if g_means.shape[0] > 1 else 0, n]
                for k in range(3):
                    own[k] += T[0, k] * gx + T[1, k] * gy + T[2, k] * gz
                own = g_factors[b if g_factors.shape[0] > 1 else 0, n]
                for k in range(3):
                    own[k, 0] += T[0, k] * ga0 + T[1, k] * gd0 + T[2, k] * gw0
                    own[k, 1] += T[0, k] * ga1 + T[1, k] * gd1 + T[2, k] * gw1
                    own[k, 2] += T[0, k] * ga2 + T[1, k] * gd2 + T[2, k] * gw2
                g_opacities[b if g_opacities.shape[0] > 1 else 0, n] += g[5]
                own = g_colors[b if g_colors.shape[0] > 1 else 0, n]
                for k in range(3):
                    own[k] += g[6 + k]
                pose = g_T[chunk, b if g_T.shape[1] > 1 else 0]
                for k in range(3):
                    pose[0, k] += gx * p[k] + ga0 * F[k, 0] + ga1 * F[k, 1] + ga2 * F[k, 2]
                    pose[1, k] += gy * p[k] + gd0 * F[k, 0] + gd1 * F[k, 1] + gd2 * F[k, 2]
                    pose[2, k] += gz * p[k] + gw0 * F[k, 0] + gw1 * F[k, 1] + gw2 * F[k, 2]
                pose[0, 3] += gx
                pose[1, 3] += gy
                pose[2, 3] += gz
