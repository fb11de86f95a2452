"""Bases in time: constants stay constant, splines are smooth, and never finer than frames."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bunraku.distill.time_basis import basis_matrix
from bunraku.errors import BadValue


@given(frames=st.integers(2, 80), fps=st.floats(4, 60), knots=st.floats(0.5, 20), kind=st.sampled_from(["frames", "spline"]))
def test_a_constant_is_a_constant(frames: int, fps: float, knots: float, kind: str) -> None:
    basis = basis_matrix(kind, frames, fps, knots)
    assert basis.shape[0] == frames >= basis.shape[1]
    assert torch.allclose(basis.sum(1), torch.ones(frames), atol=1e-5)


def test_a_spline_has_fewer_unknowns_and_is_smooth() -> None:
    basis = basis_matrix("spline", 49, 8.0, 2.0)
    assert basis.shape[1] < 20
    bump = basis[:, basis.shape[1] // 2].double()
    assert float((bump[:-2] - 2 * bump[1:-1] + bump[2:]).abs().max()) < 0.2 * float(bump.max())


def test_every_coefficient_counts() -> None:
    basis = basis_matrix("spline", 49, 8.0, 2.0).double()
    assert torch.linalg.matrix_rank(basis) == basis.shape[1]


@pytest.mark.parametrize(("kind", "knots", "said"), [("fourier", 4.0, "choose frames or spline"), ("spline", 0.0, "needs knots")])
def test_bad_choices_get_their_sentence(kind: str, knots: float, said: str) -> None:
    with pytest.raises(BadValue, match=said):
        basis_matrix(kind, 10, 8.0, knots)
