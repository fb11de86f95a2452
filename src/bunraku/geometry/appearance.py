"""What colour a mesh has at any point: material factor × vertex colour × texture, the texture averaged over as much surface as is seen."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from bunraku.geometry.mesh import Mesh
from bunraku.geometry.sampling import face_areas
from bunraku.geometry.texture import Texture, texels_per_area, texture_from

_UNKNOWN = (0.6, 0.6, 0.6)  # linear; meshes whose file says nothing about colour


@dataclass(frozen=True, kw_only=True, eq=False)
class Appearance:
    """Colours that stay the same while the vertices move."""

    faces: Int[np.ndarray, "T 3"]
    face_colours: Float[np.ndarray, "T 3"]  # linear RGB
    vertex_colours: Float[np.ndarray, "V 3"] | None
    uvs: Float[np.ndarray, "V 2"] | None
    face_textures: Int[np.ndarray, " T"]  # into textures, −1 for none
    textures: tuple[Texture, ...]
    texel_density: Float[np.ndarray, " T"]  # [1/m²] of the rest shape

    def colour(self, face: Int[np.ndarray, " P"], weight: Float[np.ndarray, "P 3"], area: Float[np.ndarray, " P"]) -> Float[np.ndarray, "P 3"]:
        """Linear RGB of points on faces, each standing for so much surface [m²]."""
        colour = self.face_colours[face]
        corners = self.faces[face]
        if self.vertex_colours is not None:
            colour = colour * np.einsum("pk,pkc->pc", weight, self.vertex_colours[corners])
        if self.uvs is None:
            return colour
        number = self.face_textures[face]
        for i, texture in enumerate(self.textures):
            here = np.flatnonzero(number == i)
            uv = np.einsum("pk,pkc->pc", weight[here], self.uvs[corners[here]])
            colour[here] *= texture.lookup(uv, area[here] * self.texel_density[face[here]])
        return colour


def appearance_of(mesh: Mesh) -> Appearance:
    faces = mesh.faces.numpy()
    number = np.zeros(len(faces), dtype=np.int64) if mesh.face_materials is None else mesh.face_materials.numpy()
    worn = set(np.unique(number).tolist())
    base = np.array([material.base_color[:3] for material in mesh.materials] or [_UNKNOWN])
    textures: dict[int, Texture] = {}
    for i, material in enumerate(mesh.materials):
        if material.image is None or i not in worn:
            continue
        if mesh.uvs is None:
            warnings.warn(f"material '{material.name}' has a texture, but the mesh has no uvs; its base colour is shown instead.", stacklevel=2)
        elif (texture := texture_from(material.image, material.name)) is not None:
            textures[i] = texture
    texture_of = np.full(len(base), -1)
    texture_of[list(textures)] = np.arange(len(textures))
    uvs = None if mesh.uvs is None else mesh.uvs.double().numpy()
    density = np.zeros(len(faces))
    if uvs is not None:
        area = face_areas(mesh.vertices.double().numpy(), faces)
        for i, texture in textures.items():
            density[number == i] = texels_per_area(texture.texels, uvs, area, faces)[number == i]
    return Appearance(
        faces=faces,
        face_colours=base[number],
        vertex_colours=None if mesh.colours is None else mesh.colours.double().numpy(),
        uvs=uvs if textures else None,
        face_textures=texture_of[number],
        textures=tuple(textures.values()),
        texel_density=density,
    )
