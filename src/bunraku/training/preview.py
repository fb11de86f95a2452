"""What a network in training draws for a few sentences, as one picture."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bunraku.files.disk import write_atomically
from bunraku.generator.checkpoint import Model
from bunraku.generator.features import decode
from bunraku.generator.sample import Request, Sampling, sample
from bunraku.training.texts import TextTable

SHOWN, FRAMES, SEED = 4, 90, 0
STEPS = Sampling(steps=10)


def draw_preview(model: Model, table: TextTable, texts: Sequence[str], path: Path) -> None:
    """A few of the sentences it learns from, one row of pictures each; nothing where Pillow is missing."""
    try:
        from PIL import Image, ImageDraw

        from bunraku.picture.sheet import contact_sheet
    except ImportError:
        warnings.warn("Pillow is not installed: no previews are drawn.", stacklevel=2)
        return
    chosen = np.linspace(0, len(texts) - 1, min(SHOWN, len(texts))).astype(int) if texts else np.array([-1])
    rows = []
    for number in chosen:
        request = Request(frames=min(FRAMES, round(model.max_seconds * model.layout.fps)), text=table.rows(np.array([number]))[0].cpu(), seed=SEED)
        (features,) = sample(model.denoiser, [request], STEPS)
        sheet = contact_sheet(decode(model.layout, features).motion, frames=4)
        title = Image.new("RGB", (sheet.width, 24), "white")
        ImageDraw.Draw(title).text((6, 5), str(texts[number]) if number >= 0 else "", fill="black")
        rows += [title, sheet]
    whole = Image.new("RGB", (max(row.width for row in rows), sum(row.height for row in rows)), "white")
    top = 0
    for row in rows:
        whole.paste(row, (0, top))
        top += row.height
    write_atomically(path, lambda temporary: whole.save(temporary))
