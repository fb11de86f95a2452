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
    for i in range(first, last):
        b = i // count
        n = i - b * count
        pairs[i] = 0
        T = T_camera_world[b if T_camera_world.shape[0] > 1 else 0]
        x, y, z = _in_camera(T, means[b if means.shape[0] > 1 else 0, n])
        opacity = opacities[b if opacities.shape[0] > 1 else 0, n]
        if z < near or opacity < _LEAST_ALPHA:
            continue
        x, y = x / z, y / z
        M = _linearised(T, factors[b if factors.shape[0] > 1 else 0, n], x, y, z, lens, width, height)
        xx, xy, yy, determinant = _moments(M, blur)
        reach = _TWO * np.log(opacity / _LEAST_ALPHA)
        reach_x, reach_y = np.sqrt(reach * xx), np.sqrt(reach * yy)
        px, py = lens[0] * x + lens[2], lens[1] * y + lens[3]
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
    g, own = np.empty(VARIABLES, np.float32), np.empty((3, 4), np.float32)
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
                p, F = means[b if means.shape[0] > 1 else 0, n], factors[b if factors.shape[0] > 1 else 0, n]
                T = T_camera_world[b if T_camera_world.shape[0] > 1 else 0]
                _pull_through(T, p, F, lens, width, height, blur, g, own)
                mean, factor = g_means[b if g_means.shape[0] > 1 else 0, n], g_factors[b if g_factors.shape[0] > 1 else 0, n]
                color, pose = g_colors[b if g_colors.shape[0] > 1 else 0, n], g_T[chunk, b if g_T.shape[1] > 1 else 0]
                g_opacities[b if g_opacities.shape[0] > 1 else 0, n] += g[5]
                for k in range(3):
                    color[k] += g[6 + k]
                    for r in range(3):
                        mean[k] += T[r, k] * own[r, 3]
                        for c in range(3):
                            factor[k, c] += T[r, k] * own[r, c]
                        pose[r, k] += own[r, 3] * p[k] + own[r, 0] * F[k, 0] + own[r, 1] * F[k, 1] + own[r, 2] * F[k, 2]
                    pose[k, 3] += own[k, 3]


@kernel
def _pull_through(T, p, F, lens, width, height, blur, g, own):
    """From an ellipse's gradient g to that of R F (columns 0 to 2 of `own`) and of the centre in the camera's frame (column 3)."""
    x, y, z = _in_camera(T, p)
    x, y = x / z, y / z
    M = _linearised(T, F, x, y, z, lens, width, height)
    _, xy, yy, determinant = _moments(M, blur)
    # root u = √(yy / D), v = −xy / √(yy D), w = 1 / √yy, back to xx, xy, yy and D
    mixed = _ONE / np.sqrt(yy * determinant)
    gu, gv, gw = g[2] * np.sqrt(yy / determinant), -g[3] * xy * mixed, g[4] / np.sqrt(yy)
    g_determinant = -_HALF * (gu + gv) / determinant
    g_xx, g_xy, g_yy = blur * g_determinant, -g[3] * mixed, _HALF * (gu - gv - gw) / yy + blur * g_determinant
    a0, a1, a2, d0, d1, d2 = M
    m = _TWO * g_determinant
    m0, m1, m2 = m * (a1 * d2 - a2 * d1), m * (a2 * d0 - a0 * d2), m * (a0 * d1 - a1 * d0)
    ga = _TWO * g_xx * a0 + g_xy * d0 + d1 * m2 - d2 * m1, _TWO * g_xx * a1 + g_xy * d1 + d2 * m0 - d0 * m2, _TWO * g_xx * a2 + g_xy * d2 + d0 * m1 - d1 * m0
    gd = _TWO * g_yy * d0 + g_xy * a0 + m1 * a2 - m2 * a1, _TWO * g_yy * d1 + g_xy * a1 + m2 * a0 - m0 * a2, _TWO * g_yy * d2 + g_xy * a2 + m0 * a1 - m1 * a0
    # M₀ = fx / z (W₀ − tx W₂) and M₁ = fy / z (W₁ − ty W₂) with W = R F
    jx, jy = lens[0] / z, lens[1] / z
    tx, ty = _toward(x, lens[0], lens[2], width), _toward(y, lens[1], lens[3], height)
    g_tx = g_ty = _f(0)
    gz = g[9]
    for k in range(3):
        w2 = T[2, 0] * F[0, k] + T[2, 1] * F[1, k] + T[2, 2] * F[2, k]
        g_tx -= jx * ga[k] * w2
        g_ty -= jy * gd[k] * w2
        gz -= (ga[k] * M[k] + gd[k] * M[3 + k]) / z
        own[0, k], own[1, k], own[2, k] = jx * ga[k], jy * gd[k], -tx * jx * ga[k] - ty * jy * gd[k]
    gx, gy = g[0] * lens[0] + (g_tx if tx == x else _f(0)), g[1] * lens[1] + (g_ty if ty == y else _f(0))
    own[0, 3], own[1, 3], own[2, 3] = gx / z, gy / z, gz - (gx * x + gy * y) / z


@kernel
def _in_camera(T, p):
    return (
        T[0, 0] * p[0] + T[0, 1] * p[1] + T[0, 2] * p[2] + T[0, 3],
        T[1, 0] * p[0] + T[1, 1] * p[1] + T[1, 2] * p[2] + T[1, 3],
        T[2, 0] * p[0] + T[2, 1] * p[1] + T[2, 2] * p[2] + T[2, 3],
    )


@kernel
def _toward(direction, focal, centre, side):
    """Where along one axis the Jacobian is taken: at the splat, or a little outside the picture."""
    beyond = _BEYOND * _f(side)
    return min(max(direction, -(centre + beyond) / focal), (_f(side) - centre + beyond) / focal)


@kernel
def _linearised(T, F, x, y, z, lens, width, height):
    """The two rows of M = J R F."""
    tx, ty = _toward(x, lens[0], lens[2], width), _toward(y, lens[1], lens[3], height)
    jx, jy = lens[0] / z, lens[1] / z
    a0, a1, a2 = T[0, 0] - tx * T[2, 0], T[0, 1] - tx * T[2, 1], T[0, 2] - tx * T[2, 2]
    d0, d1, d2 = T[1, 0] - ty * T[2, 0], T[1, 1] - ty * T[2, 1], T[1, 2] - ty * T[2, 2]
    return (
        jx * (a0 * F[0, 0] + a1 * F[1, 0] + a2 * F[2, 0]),
        jx * (a0 * F[0, 1] + a1 * F[1, 1] + a2 * F[2, 1]),
        jx * (a0 * F[0, 2] + a1 * F[1, 2] + a2 * F[2, 2]),
        jy * (d0 * F[0, 0] + d1 * F[1, 0] + d2 * F[2, 0]),
        jy * (d0 * F[0, 1] + d1 * F[1, 1] + d2 * F[2, 1]),
        jy * (d0 * F[0, 2] + d1 * F[1, 2] + d2 * F[2, 2]),
    )


@kernel
def _moments(M, blur):
    """The ellipse's covariance xx, xy, yy and its determinant, a sum of squares."""
    a0, a1, a2, d0, d1, d2 = M
    xx, xy, yy = a0 * a0 + a1 * a1 + a2 * a2, a0 * d0 + a1 * d1 + a2 * d2, d0 * d0 + d1 * d1 + d2 * d2
    m0, m1, m2 = a1 * d2 - a2 * d1, a2 * d0 - a0 * d2, a0 * d1 - a1 * d0
    determinant = m0 * m0 + m1 * m1 + m2 * m2 + blur * (xx + yy) + blur * blur
    return xx + blur, xy, yy + blur, determinant
