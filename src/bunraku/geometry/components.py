"""The separate pieces of a mesh: shells that share no point."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components


def shells(faces: Int[np.ndarray, "T 3"], points: int) -> tuple[int, Int[np.ndarray, " P"]]:
    """How many shells there are, and the shell of each point; a point without a face is a shell of its own."""
    ends = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]]])
    graph = coo_matrix((np.ones(len(ends), bool), (ends[:, 0], ends[:, 1])), shape=(points, points))
    count, labels = connected_components(graph, directed=False)
    return int(count), labels.astype(np.int64)
