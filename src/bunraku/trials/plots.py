"""Two kinds of plots as SVG, written by hand: bars side by side, and curves over a few steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#4c78a8", "#f58518", "#b279a2", "#e45756", "#72b7b2", "#eeca3b")
KNOWN = {"ground truth": "#54a24b", "captured": "#54a24b", "random clip": "#9aa0a6", "model": "#4c78a8", "cleaned up": "#f58518"}  # the same in every plot
_INK, _GRID = "#333333", "#dddddd"
_LABEL, _PLOT, _ROW = 250, 420, 16  # [px] widths of labels and plot, height of a bar

Series = Mapping[str, float | None]


def bars(title: str, unit: str, rows: Mapping[str, Series], most: float | None = None) -> str:
    """Horizontal bars: a block for each row, in it a bar for each series; what is None is left out."""
    names = list(dict.fromkeys(name for series in rows.values() for name in series))
    values = [value for series in rows.values() for value in series.values() if value is not None]
    top = _round_up(max(values, default=1.0)) if most is None else most
    block = _ROW * max(len(names), 1) + 10
    height = 70 + block * len(rows)
    parts = [_text(10, 20, title, size=15, weight="bold"), *_legend(names, 40)]
    for tick in range(5):
        x = _LABEL + _PLOT * tick / 4
        parts.append(f'<line x1="{x:.1f}" y1="52" x2="{x:.1f}" y2="{height - 18}" stroke="{_GRID}"/>')
        parts.append(_text(x, height - 4, f"{top * tick / 4:g} {unit}" if tick == 4 else f"{top * tick / 4:g}", anchor="middle", size=11))
    for number, (label, series) in enumerate(rows.items()):
        y = 56 + block * number
        parts.append(_text(_LABEL - 8, y + block / 2 - 1, label, anchor="end"))
        for place, name in enumerate(names):
            value = series.get(name)
            if value is None:
                continue
            width = _PLOT * min(max(value / top, 0.0), 1.0)
            at, colour = y + _ROW * place, _colour(name, place)
            parts.append(f'<rect x="{_LABEL}" y="{at:.1f}" width="{width:.1f}" height="{_ROW - 3}" fill="{colour}"/>')
            parts.append(_text(_LABEL + width + 4, at + _ROW - 5, f"{value:.3g}", size=10))
    return _svg(_LABEL + _PLOT + 70, height, parts)


def curves(title: str, unit: str, steps: Sequence[str], rows: Mapping[str, Sequence[float | None]], most: float) -> str:
    """One line for each row over the same few steps."""
    width, height = 520, 320
    left, right, above, below = 50.0, 500.0, 60.0, 285.0
    parts = [_text(10, 20, title, size=15, weight="bold"), *_legend(list(rows), 40)]
    for tick in range(5):
        y = below - (below - above) * tick / 4
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="{_GRID}"/>')
        parts.append(_text(left - 6, y + 4, f"{most * tick / 4:g}{unit if tick == 4 else ''}", anchor="end", size=11))
    across = [left + (right - left) * i / max(len(steps) - 1, 1) for i in range(len(steps))]
    parts += [_text(x, below + 18, step, anchor="middle", size=11) for x, step in zip(across, steps, strict=True)]
    for number, (name, values) in enumerate(rows.items()):
        points = [(x, below - (below - above) * min(value / most, 1.0)) for x, value in zip(across, values, strict=True) if value is not None]
        colour = _colour(name, number)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points]
    return _svg(width, height, parts)


def _legend(names: Sequence[str], y: float) -> list[str]:
    parts, x = [], 10.0
    for number, name in enumerate(names):
        parts.append(f'<rect x="{x:.0f}" y="{y - 9:.0f}" width="11" height="11" fill="{_colour(name, number)}"/>')
        parts.append(_text(x + 16, y + 1, name))
        x += 34 + 6.6 * len(name)
    return parts


def _colour(name: str, number: int) -> str:
    return KNOWN.get(name, COLOURS[number % len(COLOURS)])


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12, weight: str = "normal") -> str:
    style = f'text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" fill="{_INK}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    inside = "\n".join(parts)
    return f'{head} font-family="Helvetica, Arial, sans-serif">\n<rect width="100%" height="100%" fill="white"/>\n{inside}\n</svg>\n'


def _round_up(value: float) -> float:
    """The next number of the form 1, 2, 4 or 8 times a power of ten, whose quarters are short."""
    if value <= 0:
        return 1.0
    power = 10.0 ** _exponent(value)
    return next(power * step for step in (1, 2, 4, 8, 10) if power * step >= value * 0.999999)


def _exponent(value: float) -> int:
    from math import floor, log10

    return floor(log10(value))
