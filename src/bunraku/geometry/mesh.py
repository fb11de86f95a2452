"""A triangle mesh and what its surface looks like: as much as a renderer and a file writer need, and nothing about bones."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bunraku.errors import BadValue


@dataclass(frozen=True, kw_only=True)
class Material:
    """The base colour of a surface. Metalness, roughness and whatever else a file says stay in the file's own document."""

    name: str = "material"
    base_color: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)  # linear RGBA
    image: bytes | None = None  # PNG or JPEG as in the file, multiplied with base_color; read at Mesh.uvs
    double_sided: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Mesh:
    """V vertices and T triangles in the world, the character standing in its rest pose. Faces turn counter-clockwise seen from outside."""

    vertices: Float[Tensor, "V 3"]  # [m]
    faces: Int[Tensor, "T 3"]
    normals: Float[Tensor, "V 3"] | None = None  # unit
    uvs: Float[Tensor, "V 2"] | None = None  # origin at the upper left of the image, as in glTF
    colours: Float[Tensor, "V 3"] | None = None  # linear RGB, multiplied with the material's colour
    face_materials: Int[Tensor, " T"] | None = None  # into materials; None = all faces wear materials[0], or nothing is known
    materials: tuple[Material, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.vertices)
        lowest, highest = (int(self.faces.min()), int(self.faces.max())) if self.faces.numel() else (0, -1)
        if lowest < 0 or highest >= count:
            raise BadValue(f"a face names vertex {lowest if lowest < 0 else highest}, but the mesh has {count} vertices.")
        for name in ("normals", "uvs", "colours"):
            value = getattr(self, name)
            if value is not None and len(value) != count:
                raise BadValue(f"the mesh has {count} vertices but {len(value)} {name}; one for each is needed.")
        if not torch.isfinite(self.vertices).all():
            raise BadValue("the mesh has vertices that are not finite numbers.")
        if self.face_materials is not None and len(self.face_materials) != len(self.faces):
            raise BadValue(f"the mesh has {len(self.faces)} faces but {len(self.face_materials)} material numbers; one for each is needed.")

    def __repr__(self) -> str:
        return f"Mesh({len(self.vertices)} vertices, {len(self.faces)} triangles, {len(self.materials)} materials)"
