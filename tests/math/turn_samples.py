"""Turns to test laws on: everywhere, and thick where formulas break, near the identity and near half a turn."""

from __future__ import annotations

import math

import torch
from hypothesis import strategies as st

TINY = st.floats(-12, -3).map(lambda power: 10.0**power)
ANGLES = st.one_of(
    st.just(0.0),
    TINY,
    st.floats(1e-3, math.pi - 1e-3),
    st.floats(-9, -3).map(lambda power: math.pi - 10.0**power),
    st.just(math.pi),
)
UNIT_NUMBERS = st.floats(-1, 1, allow_subnormal=False)


@st.composite
def unit_vectors(draw: st.DrawFn) -> torch.Tensor:
    """A direction; often exactly along an axis, where cross products and arc tangents meet their zeros."""
    if draw(st.booleans()):
        vector = torch.zeros(3, dtype=torch.float64)
        vector[draw(st.integers(0, 2))] = draw(st.sampled_from([-1.0, 1.0]))
        return vector
    vector = torch.tensor([draw(UNIT_NUMBERS) for _ in range(3)], dtype=torch.float64)
    length = vector.norm()
    return vector / length if length > 1e-3 else torch.tensor([0.6, 0.0, -0.8], dtype=torch.float64)


@st.composite
def rotvecs(draw: st.DrawFn) -> torch.Tensor:
    """Rotation vectors with angles in [0, π] [rad], float64."""
    return draw(unit_vectors()) * draw(ANGLES)
