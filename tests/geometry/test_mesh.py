"""A mesh refuses parts that do not fit together."""

from __future__ import annotations

import pytest
import torch

from bunraku.errors import BadValue
from bunraku.geometry.mesh import Mesh

TRIANGLE = {"vertices": torch.eye(3), "faces": torch.tensor([[0, 1, 2]])}


def test_a_mesh_says_what_it_is() -> None:
    assert repr(Mesh(**TRIANGLE)) == "Mesh(3 vertices, 1 triangles, 0 materials)"
    assert len(Mesh(vertices=torch.zeros(0, 3), faces=torch.zeros(0, 3, dtype=torch.long)).faces) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"faces": torch.tensor([[0, 1, 3]])}, "names vertex 3, but the mesh has 3"),
        ({"faces": torch.tensor([[0, -1, 2]])}, "names vertex -1"),
        ({"normals": torch.zeros(2, 3)}, "2 normals"),
        ({"uvs": torch.zeros(4, 2)}, "4 uvs"),
        ({"colours": torch.zeros(1, 3)}, "1 colours"),
        ({"face_materials": torch.zeros(2, dtype=torch.long)}, "2 material numbers"),
        ({"vertices": torch.eye(3) / 0}, "not finite"),
    ],
)
def test_parts_that_do_not_fit_are_refused(unchecked_shapes: None, change: dict[str, torch.Tensor], message: str) -> None:
    with pytest.raises(BadValue, match=message):
        Mesh(**{**TRIANGLE, **change})
