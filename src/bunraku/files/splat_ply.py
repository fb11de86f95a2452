"""Splats as the PLY files of 3D Gaussian splatting, which every viewer opens.

A row is `x y z nx ny nz f_dc_0..2 f_rest_0.. opacity scale_0..2 rot_0..3`: normals that nobody reads, harmonics with all of red before
all of green and blue, the opacity's logit, logarithms of three sizes and a quaternion w x y z. −Y is up, as viewers expect it.
"""

from __future__ import annotations

import os

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue, FormatProblem
from bunraku.files.axes import Frame, vectors_from, vectors_to
from bunraku.files.disk import existing_file, read_bytes, write_bytes
from bunraku.files.ply_table import VertexTable, read_vertices
from bunraku.math.rotations import matrix_to_quat, quat_to_matrix
from bunraku.splats.harmonics import basis
from bunraku.splats.splats import COEFFICIENTS, Splats

_PLACE, _NORMAL = ("x", "y", "z"), ("nx", "ny", "nz")
_BASE, _SIZE, _TURN = tuple(f"f_dc_{i}" for i in range(3)), tuple(f"scale_{i}" for i in range(3)), tuple(f"rot_{i}" for i in range(4))
_NEEDED = (*_PLACE, *_BASE, "opacity", *_SIZE, *_TURN)
_LEAST_SIZE = 1e-9  # [m] the logarithm of nothing is no number
_MOST_LOGIT = 30.0  # an opacity as good as 0 or 1
_FRAME = Frame.Y_DOWN


def save_splats(splats: Splats, path: str | os.PathLike[str]) -> None:
    """Writes splats of one frame, of any degree."""
    if splats.batch:
        raise BadValue(f"'{path}' holds splats that stand still, these have {' × '.join(map(str, splats.batch))} frames; save one, such as splats[0].")
    splats = splats.map(lambda value: value.detach().cpu().float())
    size, quat = _sizes_and_turns(_FRAME.matrix(splats.factors).T @ splats.factors)
    sh = splats.sh * _signs(splats.degree)[:, None]
    rest = sh[:, 1:].transpose(1, 2).reshape(len(splats), 3 * (sh.shape[1] - 1))
    logit = splats.opacity_logits.clamp(-_MOST_LOGIT, _MOST_LOGIT)
    means = vectors_to(_FRAME, splats.means)
    table = torch.cat([means, torch.zeros_like(means), sh[:, 0], rest, logit[:, None], size.clamp_min(_LEAST_SIZE).log(), quat], dim=1)
    if not torch.isfinite(table).all():
        raise BadValue(f"the splats for '{path}' are not all finite numbers; look for what diverged before saving them.")
    names = (*_PLACE, *_NORMAL, *_BASE, *_rest(splats.degree), "opacity", *_SIZE, *_TURN)
    header = ["ply", "format binary_little_endian 1.0", "comment written by Bunraku, -Y is up", f"element vertex {len(splats)}"]
    header += [*(f"property float {name}" for name in names), "end_header", ""]
    write_bytes(path, "\n".join(header).encode() + table.numpy().astype("<f4").tobytes())


def load_splats(path: str | os.PathLike[str]) -> Splats:
    """Reads splats of degree 0 to 3 from any order of properties, binary or text. What else a row holds is ignored."""
    path = existing_file(path)
    table = read_vertices(read_bytes(path), path)
    degree = _degree(table)
    values = torch.from_numpy(table.columns((*_NEEDED, *_rest(degree))))
    bad = (~values.isfinite()).any(dim=1)
    if bool(bad.any()):
        raise FormatProblem(f"'{path}' has numbers that are not finite, first in splat {int(bad.int().argmax())} of {len(values)}; remove such splats.")
    means, base, logit, logs, quat, rest = values.split((3, 3, 1, 3, 4, 3 * (COEFFICIENTS[degree] - 1)), dim=1)
    sh = torch.cat([base[:, None], rest.reshape(len(values), 3, COEFFICIENTS[degree] - 1).transpose(1, 2)], dim=1)
    if float(logs.max() if len(logs) else 0.0) > 20:
        raise FormatProblem(f"'{path}' has a splat of e^{float(logs.max()):.3g} m; its sizes should be logarithms of metres.")
    # a quaternion of zeros is no turn; trainers leave such ones in splats that they have given up
    quat = torch.where(quat.norm(dim=1, keepdim=True) > 0, quat, torch.tensor([1.0, 0.0, 0.0, 0.0]))
    R_theirs = quat_to_matrix(torch.nn.functional.normalize(quat, dim=1))
    return Splats(
        means=vectors_from(_FRAME, means),
        factors=_FRAME.matrix(means) @ R_theirs * logs.exp()[:, None, :],
        opacity_logits=logit[:, 0],
        sh=sh * _signs(degree)[:, None],
    )


def _sizes_and_turns(factors: Float[Tensor, "N 3 3"]) -> tuple[Float[Tensor, "N 3"], Float[Tensor, "N 4"]]:
    """Three sizes [m] and the turn of the axes they are measured along: `factor factorᵀ = R diag(size²) Rᵀ`."""
    axes, size, _ = torch.linalg.svd(factors.double())
    axes = axes * torch.linalg.det(axes)[:, None, None].sign()  # all three axes reversed: the same ellipsoid, and no mirror
    return size.float(), matrix_to_quat(axes).float()


def _signs(degree: int) -> Float[Tensor, " K"]:
    """The frames differ by half a turn, which only changes the signs of some harmonics."""
    direction = torch.nn.functional.normalize(torch.tensor([0.3, 0.5, 0.7], dtype=torch.float64), dim=0)
    return (basis(vectors_to(_FRAME, direction), degree) / basis(direction, degree)).round().float()


def _rest(degree: int) -> tuple[str, ...]:
    return tuple(f"f_rest_{i}" for i in range(3 * (COEFFICIENTS[degree] - 1)))


def _degree(table: VertexTable) -> int:
    names = set(table.row.names or ())
    missing = [name for name in _NEEDED if name not in names]
    if any(name.startswith("packed_") for name in names):
        raise FormatProblem(f"'{table.path}' is a compressed PLY; save it uncompressed from the program that made it.")
    if not names & {*_BASE, *_SIZE, *_TURN}:
        raise FormatProblem(f"'{table.path}' is a mesh or a cloud of points, not splats: its vertices have no f_dc, scale and rot.")
    if missing:
        raise FormatProblem(f"'{table.path}' has no {', '.join(missing)}; splats need {' '.join(_NEEDED)}.")
    rest = sum(name.startswith("f_rest_") for name in names)
    degrees = [degree for degree in range(4) if len(_rest(degree)) == rest and names.issuperset(_rest(degree))]
    if not degrees:
        raise FormatProblem(f"'{table.path}' has {rest} numbers f_rest_…; 0, 9, 24 or 45 are right, for degrees 0 to 3, numbered from 0.")
    return degrees[0]
