"""Where a body acts: a checkerboard in squares that suit its size, and a sky from which the colours of the ground follow."""

from __future__ import annotations

import math

from jaxtyping import Float
from PIL import ImageColor
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.splats.ground import Checkerboard, Colour
from bunraku.splats.scene import Scene
from bunraku.splats.shadow import Shadow

_SKY = (0.93, 0.94, 0.96)
_LIGHT = 0.4  # skies brighter than this get a darker ground, others a lighter one
_REACHES_BELOW = 1.5  # [square roots of] how far the ground is seen, in distances of the camera from the body
_SHADOW_FADES = 3.5  # over a body's size shadows lose e to this power


def sky_of(background: str | Colour | None) -> Colour:
    """A colour by its name, as #rrggbb or as three numbers from 0 to 1."""
    if background is None:
        return _SKY
    if isinstance(background, str):
        try:
            red, green, blue = ImageColor.getrgb(background)[:3]
        except ValueError:
            raise BadValue(f"'{background}' is no colour; give a name such as white or skyblue, or #rrggbb.") from None
        return red / 255, green / 255, blue / 255
    if len(background) != 3 or not all(0 <= value <= 1 for value in background):
        raise BadValue(f"{background} is no colour; three numbers from 0 to 1 are needed, or a name such as 'white'.")
    return background


def stage_for(reach: float, distance: float, background: str | Colour | None = None) -> Scene:
    """The scene for a body of size `reach` [m] seen from `distance` [m]; its ground is y = 0."""
    sky = sky_of(background)
    bright = 0.2126 * sky[0] + 0.7152 * sky[1] + 0.0722 * sky[2] > _LIGHT
    ground = Checkerboard(
        square=square_for(reach), colours=(_shaded(sky, 0.93 if bright else 1.10), _shaded(sky, 0.80 if bright else 1.30)), fade=2.2 * distance
    )
    return Scene(ground=ground, sky=sky, shadow=Shadow(decay=_SHADOW_FADES / reach), edge=0.0025 * reach)


def square_for(reach: float) -> float:
    """1, 2 or 5 times a power of ten, about a third of the body: half a metre for a human."""
    power = 10.0 ** math.floor(math.log10(reach / 3))
    return power * max(step for step in (1, 2, 5) if step * power <= reach / 3 * (1 + 1e-9))


def reach_of(points: Float[Tensor, "F P 3"]) -> float:
    """The longest side of the body's box in any frame [m]; 1 for a body that is a point."""
    extent = float((points.amax(1) - points.amin(1)).max())
    return extent if extent > 0 else 1.0


def _shaded(colour: Colour, factor: float) -> Colour:
    """Darker by a factor below 1; lighter, at least by a little, by one above."""
    lift = 0.25 * (factor - 1) if factor > 1 else 0.0
    red, green, blue = (min(value * factor + lift, 1.0) for value in colour)
    return red, green, blue
