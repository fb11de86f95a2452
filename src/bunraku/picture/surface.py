"""What is drawn: a skinned mesh with its colours, or the bones of a skeleton as slender octahedra."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt8

from bunraku.geometry.colour import to_linear
from bunraku.geometry.mesh import Mesh
from bunraku.geometry.raster import Hits
from bunraku.geometry.texture import decode_image
from bunraku.rig.proportions import Body

SIDE_COLOURS = {"left": (0.78, 0.22, 0.09), "right": (0.06, 0.27, 0.55), "trunk": (0.36, 0.35, 0.33)}  # linear RGB

_OCTAHEDRON = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 1], [5, 2, 1], [5, 3, 2], [5, 4, 3], [5, 1, 4]])


@dataclass(frozen=True, kw_only=True, eq=False)
class Surface:
    """Faces and colours that stay the same while the vertices move."""

    faces: Int[np.ndarray, "T 3"]
    face_colours: Float[np.ndarray, "T 3"]  # linear RGB
    welds: Int[np.ndarray, " V"]  # vertices with the same number share one normal
    vertex_colours: Float[np.ndarray, "V 3"] | None = None
    uvs: Float[np.ndarray, "V 2"] | None = None
    face_images: Int[np.ndarray, " T"] | None = None  # into images, −1 for none
    images: tuple[UInt8[np.ndarray, "_ _ 3"], ...] = ()

    def normals(self, vertices: Float[np.ndarray, "V 3"]) -> Float[np.ndarray, "V 3"]:
        """Unit normals of the moved surface, smooth where the rest shape was."""
        area = self.face_normals(vertices)
        groups = self.welds[self.faces].T.ravel()
        total = np.stack([np.bincount(groups, np.tile(area[:, axis], 3), len(vertices)) for axis in range(3)], axis=-1)[self.welds]
        return total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-20)

    def face_normals(self, vertices: Float[np.ndarray, "V 3"]) -> Float[np.ndarray, "T 3"]:
        """At right angles to every face, twice as long as its area is large."""
        a, b, c = np.moveaxis(vertices[self.faces], 1, 0)
        return np.cross(b - a, c - a)

    def albedo(self, hits: Hits) -> Float[np.ndarray, "P 3"]:
        """The linear colour of every point seen."""
        colour = self.face_colours[hits.face]
        if self.vertex_colours is not None:
            colour = colour * hits.interpolate(self.vertex_colours, self.faces)
        if self.uvs is None or self.face_images is None:
            return colour
        uv = hits.interpolate(self.uvs, self.faces)
        number = self.face_images[hits.face]
        for i, image in enumerate(self.images):
            here = number == i
            height, width = image.shape[:2]
            column, row = ((uv[here] % 1.0) * (width, height)).astype(int).T
            colour[here] *= to_linear(image[row.clip(0, height - 1), column.clip(0, width - 1)] / 255.0)
        return colour


def surface_of(mesh: Mesh) -> Surface:
    number = np.zeros(len(mesh.faces), dtype=np.int64) if mesh.face_materials is None else mesh.face_materials.numpy()
    base = np.array([material.base_color[:3] for material in mesh.materials] or [(0.6, 0.6, 0.6)])
    given = {i: material for i, material in enumerate(mesh.materials) if material.image is not None and mesh.uvs is not None}
    images = {i: pixels for i, material in given.items() if (pixels := decode_image(material.image or b"", material.name)) is not None}
    image_of = np.full(len(base), -1)
    image_of[list(images)] = np.arange(len(images))
    return Surface(
        faces=mesh.faces.numpy(),
        face_colours=base[number],
        welds=_welds(mesh),
        vertex_colours=None if mesh.colours is None else mesh.colours.double().numpy(),
        uvs=None if mesh.uvs is None else mesh.uvs.double().numpy(),
        face_images=image_of[number],
        images=tuple(images.values()),
    )


def _welds(mesh: Mesh) -> Int[np.ndarray, " V"]:
    """Files split vertices along seams; those at one place with one normal (or no normals at all) are shaded as one."""
    places = mesh.vertices.numpy()
    keys = places if mesh.normals is None else np.concatenate([places, mesh.normals.numpy()], axis=1)
    return np.unique(np.round(keys, 3 if mesh.normals is not None else 5), axis=0, return_inverse=True)[1].ravel()


def stick_surface(body: Body) -> Surface:
    """Eight faces per bone; every face keeps its own three vertices, so that it is shaded flat."""
    colours = np.array([SIDE_COLOURS[body.sides[joint]] for joint in body.bones or (0,)])
    count = 24 * len(colours)
    return Surface(faces=np.arange(count).reshape(-1, 3), face_colours=np.repeat(colours, 8, axis=0), welds=np.arange(count))


def stick_vertices(body: Body, p_world_joint: Float[np.ndarray, "F J 3"]) -> Float[np.ndarray, "F V 3"]:
    """The octahedra's corners: thickest near the joint a bone begins at. A body without bones is one small octahedron."""
    bones = list(body.bones)
    end = p_world_joint[:, bones] if bones else p_world_joint[:, :1] + np.array([0.0, 0.1, 0.0])
    start = p_world_joint[:, [body.skeleton.parents[joint] for joint in bones] or [0]]
    along = end - start
    length = np.linalg.norm(along, axis=-1, keepdims=True)
    helper = np.where(np.abs(along[..., :1]) < 0.8 * length, (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    side = np.cross(along, helper)
    side /= np.maximum(np.linalg.norm(side, axis=-1, keepdims=True), 1e-12)
    front = np.cross(side, along) / np.maximum(length, 1e-12)
    reach = np.ptp(np.concatenate([start, end], axis=1), axis=1).max()
    thick = np.clip(0.1 * length, 0.004 * reach, 0.02 * reach)
    middle = start + 0.18 * along
    corners = np.stack([start, middle + thick * side, middle + thick * front, middle - thick * side, middle - thick * front, end], axis=-2)
    return corners[..., _OCTAHEDRON, :].reshape(len(p_world_joint), -1, 3)
