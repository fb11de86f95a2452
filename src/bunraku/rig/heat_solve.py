"""The linear algebra of heat: one sparse factorisation of `L + M H`, then one cheap solve per bone."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.sparse import csc_matrix, diags, triu

from bunraku.rig.heat_sources import Sources


def solve_heat(L: csc_matrix, area: Float[np.ndarray, " P"], sources: Sources) -> Float[np.ndarray, "P B"]:
    """Weights before clipping. Rows sum to 1 as exactly as the solve is exact, for constants are in the kernel of L."""
    from qdldl import Solver

    system = csc_matrix(L + diags(area * sources.total))
    solver = Solver(csc_matrix(triu(system)), upper=True)
    weights = _solve(solver, area, sources.heat.toarray())
    if sources.lent is None:
        return weights
    # pieces are not connected, so skin that lends does not feel the borrower: its weights are final after the first solve
    return _solve(solver, area, sources.heat.toarray() + sources.lent @ weights)


def _solve(solver: object, area: Float[np.ndarray, " P"], heat: Float[np.ndarray, "P B"]) -> Float[np.ndarray, "P B"]:
    given = np.ascontiguousarray((area[:, None] * heat).T)
    return np.stack([solver.solve(row) if row.any() else row for row in given], axis=1)  # type: ignore[attr-defined]
