"""Triangles to the pixels of a view."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from bunraku.geometry.raster import Hits
from bunraku.geometry.zbuffer import rasterise_fast
from bunraku.picture.view import View


def rasterise(vertices: Float[np.ndarray, "V 3"], faces: Int[np.ndarray, "T 3"], view: View) -> Hits:
    """Both sides of every face are drawn."""
    return rasterise_fast(view.project(vertices), faces, view.width, view.height, parallel=view.parallel)
