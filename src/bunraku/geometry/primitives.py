"""Simple closed solids as triangle meshes: capsules, ellipsoids, lofted tubes and rounded boxes, and joining several into one.

Everything but the box is rings of points around an axis, closed by a pole at each end. Faces turn counter-clockwise seen from
outside; normals point outwards. Lengths in metres.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.geometry.mesh import Material, Mesh

Point = Float[Tensor, "3"]


def vertex_normals(vertices: Float[Tensor, "V 3"], faces: Int[Tensor, "T 3"]) -> Float[Tensor, "V 3"]:
    """Unit normals, each the mean of the faces around the vertex weighted by their area; +Y where a vertex has no face."""
    a, b, c = vertices[faces].unbind(1)
    area = torch.linalg.cross(b - a, c - a)
    total = torch.zeros_like(vertices)
    for corner in range(3):
        total.index_add_(0, faces[:, corner], area)
    length = total.norm(dim=-1, keepdim=True)
    up = torch.tensor([0.0, 1.0, 0.0]).to(vertices)
    return torch.where(length > 0, total / length.clamp_min(torch.finfo(vertices.dtype).tiny), up)


def capsule(start: Point, end: Point, radius_start: float, radius_end: float, *, segments: int = 16, rings: int = 4, spans: int = 1) -> Mesh:
    """Two balls and the cone that touches both, the cone in `spans` pieces that are shorter towards its ends, where skin bends.

    Where one ball holds the other, that ball alone is what one sees.
    """
    length = float((end - start).norm())
    axis = (end - start) / length if length > 0 else torch.tensor([0.0, 1.0, 0.0]).to(start)
    # the cone touches both balls where their normal leans by this sine towards the end
    lean = torch.asin(torch.tensor((radius_start - radius_end) / max(length, 1e-9)).clamp(-1, 1)).item()
    below = torch.linspace(-pi / 2, lean, rings + 1, dtype=torch.float64)[1:]
    above = torch.linspace(lean, pi / 2, rings + 1, dtype=torch.float64)[:-1]
    low, high = radius_start * below.sin(), length + radius_end * above.sin()
    wide, narrow = radius_start * below.cos(), radius_end * above.cos()
    share = (1 - torch.cos(torch.linspace(0, pi, spans + 1, dtype=torch.float64)[1:-1])) / 2
    heights = torch.cat([low, low[-1] + share * (high[0] - low[-1]), high])
    radii = torch.cat([wide, wide[-1] + share * (narrow[0] - wide[-1]), narrow])
    side, front = _frame(axis)
    centres = start + heights[:, None].to(start) * axis
    return _tube(centres, radii.to(start), radii.to(start), (side, front), (start - radius_start * axis, end + radius_end * axis), segments)


def ellipsoid(centre: Point, semi_axes: Point, R_world_body: Float[Tensor, "3 3"] | None = None, *, segments: int = 20, rings: int = 11) -> Mesh:
    """The columns of `R_world_body` are the directions of the three semi-axes."""
    directions = (torch.eye(3) if R_world_body is None else R_world_body).to(centre)
    latitude = torch.linspace(-pi / 2, pi / 2, rings + 2, dtype=centre.dtype)[1:-1]
    up = directions[:, 1] * semi_axes[1]
    centres = centre + latitude.sin()[:, None] * up
    widths, depths = latitude.cos() * semi_axes[0], latitude.cos() * semi_axes[2]
    return _tube(centres, widths, depths, (directions[:, 0], directions[:, 2]), (centre - up, centre + up), segments)


def loft(
    centres: Float[Tensor, "N 3"],
    half_widths: Float[Tensor, " N"],
    half_depths: Float[Tensor, " N"],
    width_axis: Point,
    *,
    segments: int = 24,
) -> Mesh:
    """A tube of elliptic sections along a line of centres, closed at both ends: the first and last centre are its poles.

    `width_axis` is the direction of the half widths; half depths lie across it and across the line from first to last centre.
    """
    axis = torch.nn.functional.normalize(centres[-1] - centres[0], dim=0)
    side = torch.nn.functional.normalize(width_axis - (width_axis @ axis) * axis, dim=0)
    inner = slice(1, -1)
    return _tube(centres[inner], half_widths[inner], half_depths[inner], (side, torch.linalg.cross(side, axis)), (centres[0], centres[-1]), segments)


def box(centre: Point, size: Point, R_world_body: Float[Tensor, "3 3"] | None = None, *, rounding: float = 0.0, grid: int = 6) -> Mesh:
    """A box of full edge lengths `size` along the columns of `R_world_body`, its edges rounded with the given radius [m].

    A rounded box is the smaller box inside it, grown by a ball: each point of a cube's grid moves to the nearest point of the inner
    box and from there one radius outwards. The six faces keep vertices of their own, so sharp edges stay sharp.
    """
    half = size / 2
    radius = min(rounding, float(half.min()))
    # grid lines crowd at the borders, where the rounding happens
    line = torch.sin(torch.linspace(-1, 1, grid + 1, dtype=centre.dtype) * pi / 2)
    u, v = (values.flatten() for values in torch.meshgrid(line, line, indexing="ij"))
    corners = torch.arange((grid + 1) ** 2).reshape(grid + 1, grid + 1)
    a, b, c, d = corners[:-1, :-1].flatten(), corners[1:, :-1].flatten(), corners[1:, 1:].flatten(), corners[:-1, 1:].flatten()
    face = torch.cat([torch.stack([a, b, c], dim=-1), torch.stack([a, c, d], dim=-1)])
    points, faces = [], []
    for number, (axis, sign) in enumerate((axis, sign) for axis in range(3) for sign in (1.0, -1.0)):
        cube = torch.stack([torch.full_like(u, sign), u * sign, v], dim=-1).roll(axis, dims=-1)
        points.append(cube * half)
        faces.append(face + number * len(u))
    surface = torch.cat(points)
    core = surface.clamp(-(half - radius), half - radius)
    grown = core + radius * torch.nn.functional.normalize(surface - core, dim=-1)
    R = (torch.eye(3) if R_world_body is None else R_world_body).to(centre)
    return _mesh((grown if radius > 0 else surface) @ R.T + centre, torch.cat(faces))


def merge(meshes: Sequence[Mesh]) -> Mesh:
    """All vertices and faces in one mesh, in the order given, nothing welded; equal materials become one.

    Normals are computed where a mesh has none; texture coordinates and vertex colours are kept if every mesh has them.
    """
    if not meshes:
        raise BadValue("there is nothing to merge; give at least one mesh.")
    starts = [0]
    for mesh in meshes:
        starts.append(starts[-1] + len(mesh.vertices))
    materials = tuple(dict.fromkeys(material for mesh in meshes for material in mesh.materials or (Material(),)))
    rows = [torch.tensor([materials.index(material) for material in mesh.materials or (Material(),)]) for mesh in meshes]
    worn = [row[torch.zeros(len(m.faces), dtype=torch.long) if m.face_materials is None else m.face_materials] for m, row in zip(meshes, rows, strict=True)]
    return Mesh(
        vertices=torch.cat([mesh.vertices for mesh in meshes]),
        faces=torch.cat([mesh.faces + start for mesh, start in zip(meshes, starts, strict=False)]),
        normals=torch.cat([vertex_normals(mesh.vertices, mesh.faces) if mesh.normals is None else mesh.normals for mesh in meshes]),
        uvs=_all_or_none([mesh.uvs for mesh in meshes]),
        colours=_all_or_none([mesh.colours for mesh in meshes]),
        face_materials=torch.cat(worn),
        materials=materials,
    )


def _all_or_none(rows: list[Tensor | None]) -> Tensor | None:
    present = [row for row in rows if row is not None]
    return torch.cat(present) if len(present) == len(rows) else None


def _frame(axis: Point) -> tuple[Point, Point]:
    """Two directions that make (side, axis, front) right-handed; the side lies as near to +X as it can."""
    helper = torch.eye(3).to(axis)[0 if abs(float(axis[0])) < 0.9 else 2]
    side = torch.nn.functional.normalize(helper - (helper @ axis) * axis, dim=0)
    return side, torch.linalg.cross(side, axis)


def _tube(
    centres: Float[Tensor, "N 3"],
    half_widths: Float[Tensor, " N"],
    half_depths: Float[Tensor, " N"],
    sides: tuple[Point, Point],
    poles: tuple[Point, Point],
    segments: int,
) -> Mesh:
    """Rings from the first pole up to the last; (side, up, front) is right-handed."""
    side, front = sides
    angle = torch.arange(segments, dtype=centres.dtype) * (2 * pi / segments)
    ring = half_widths[:, None, None] * angle.cos()[:, None] * side + half_depths[:, None, None] * angle.sin()[:, None] * front
    vertices = torch.cat([poles[0][None], (centres[:, None] + ring).reshape(-1, 3), poles[1][None]])
    here = torch.arange(segments)
    after = (here + 1) % segments
    count, last = len(centres), 1 + len(centres) * segments
    low = 1 + torch.arange(count - 1)[:, None] * segments
    a, b, c, d = (low + here).flatten(), (low + after).flatten(), (low + segments + after).flatten(), (low + segments + here).flatten()
    top = last - segments
    faces = [
        torch.stack([torch.zeros_like(here), 1 + here, 1 + after], dim=-1),
        torch.stack([a, d, c], dim=-1),
        torch.stack([a, c, b], dim=-1),
        torch.stack([top + here, torch.full_like(here, last), top + after], dim=-1),
    ]
    return _mesh(vertices, torch.cat(faces))


def _mesh(vertices: Float[Tensor, "V 3"], faces: Int[Tensor, "T 3"]) -> Mesh:
    return Mesh(vertices=vertices, faces=faces, normals=vertex_normals(vertices, faces))
