"""Splats on disk: there and back, as others see them, and files that are not what they say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bunraku.errors import BadValue, FileProblem, FormatProblem
from bunraku.files.splat_ply import load_splats, save_splats
from bunraku.splats import Camera, random_splats, render


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_there_and_back(tmp_path: Path, degree: int) -> None:
    splats, path = random_splats(40, 0, degree=degree), tmp_path / "crowd.ply"
    save_splats(splats, path)
    again = load_splats(path)
    torch.testing.assert_close(again.means, splats.means)
    torch.testing.assert_close(again.covariances, splats.covariances, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(again.opacity_logits, splats.opacity_logits)
    torch.testing.assert_close(again.sh, splats.sh)
    assert (torch.linalg.det(again.factors) > 0).all()
    camera = Camera.look_at((1.0, 0.5, 3.0), (0.0, 0.0, 0.0), 40, 30)
    torch.testing.assert_close(render(again, camera).color, render(splats, camera).color, rtol=1e-3, atol=1e-3)


def test_the_fields_are_those_that_viewers_read(tmp_path: Path) -> None:
    save_splats(random_splats(7, 0, degree=1), tmp_path / "a.ply")
    header, _, body = (tmp_path / "a.ply").read_bytes().partition(b"end_header\n")
    names = re.findall(r"property float (\w+)", header.decode())
    assert names[:9] == ["x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2"]
    assert names[9:18] == [f"f_rest_{i}" for i in range(9)]
    assert names[18:] == ["opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"]
    assert header.startswith(b"ply\nformat binary_little_endian 1.0\n")
    assert len(body) == 7 * 4 * len(names)


def test_up_is_minus_y_and_forward_stays() -> None:
    from bunraku.files.axes import Frame, vectors_to

    torch.testing.assert_close(vectors_to(Frame.Y_DOWN, torch.eye(3)), torch.diag(torch.tensor([-1.0, -1.0, 1.0])))


def test_others_read_the_same_places(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    splats = random_splats(20, 0)
    save_splats(splats, tmp_path / "a.ply")
    cloud = trimesh.load(tmp_path / "a.ply")
    np.testing.assert_allclose(np.asarray(cloud.vertices) * (-1, -1, 1), splats.means.numpy(), atol=1e-6)


def test_harmonics_keep_all_of_red_first(tmp_path: Path) -> None:
    splats = random_splats(1, 0, degree=1)
    save_splats(splats, tmp_path / "a.ply")
    row = np.frombuffer((tmp_path / "a.ply").read_bytes().partition(b"end_header\n")[2], "<f4")
    # of −y, z, −x the turned axes change the first and the last
    np.testing.assert_allclose(row[9:12], splats.sh[0, 1:, 0].numpy() * (-1, 1, -1), rtol=1e-6)
    np.testing.assert_allclose(row[15:18], splats.sh[0, 1:, 2].numpy() * (-1, 1, -1), rtol=1e-6)


@pytest.mark.parametrize("form", ["binary_big_endian", "ascii", "ascii with DOS lines", "shuffled doubles"])
def test_other_spellings_of_the_same_file(tmp_path: Path, form: str) -> None:
    save_splats(random_splats(6, 0), tmp_path / "a.ply")
    header, _, body = (tmp_path / "a.ply").read_bytes().partition(b"end_header\n")
    values = np.frombuffer(body, "<f4").reshape(6, -1)
    if form == "binary_big_endian":
        data = header.replace(b"little", b"big") + b"end_header\n" + values.astype(">f4").tobytes()
    elif form == "shuffled doubles":
        lines = header.split(b"\n")
        at = next(i for i, line in enumerate(lines) if line.startswith(b"property"))
        turned = [line.replace(b"float", b"double") for line in lines[at:-1]][::-1]
        data = b"\n".join([*lines[:at], *turned, b"property uchar extra", b"element face 1", b"property list uchar int vertex_indices", b"end_header", b""])
        rows = np.zeros(6, np.dtype([("values", "<f8", values.shape[1]), ("extra", "u1")]))
        rows["values"] = values[:, ::-1]
        data += rows.tobytes() + b"\x03" + bytes(12)
    else:
        text = "\n".join(" ".join(f"{value:.9g}" for value in row) for row in values)
        data = header.replace(b"binary_little_endian", b"ascii") + b"end_header\n" + text.encode()
        data = data.replace(b"\n", b"\r\n") if "DOS" in form else data
    (tmp_path / "b.ply").write_bytes(data)
    expected, found = load_splats(tmp_path / "a.ply"), load_splats(tmp_path / "b.ply")
    for name in ("means", "factors", "opacity_logits", "sh"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name))


def test_degenerate_splats_survive(tmp_path: Path) -> None:
    splats = random_splats(4, 0)
    factors = splats.factors.clone()
    factors[0], factors[1, :, 2] = 0, 0
    splats = replace(splats, factors=factors, opacity_logits=torch.tensor([-torch.inf, torch.inf, 0.0, 1.0]))
    save_splats(splats, tmp_path / "a.ply")
    again = load_splats(tmp_path / "a.ply")
    torch.testing.assert_close(again.covariances, splats.covariances, rtol=1e-4, atol=1e-8)
    torch.testing.assert_close(again.opacities, splats.opacities)
    save_splats(random_splats(0, 0), tmp_path / "none.ply")
    assert len(load_splats(tmp_path / "none.ply")) == 0


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    splats = random_splats(3, 0)
    with pytest.raises(BadValue, match=r"splats\[0\]"):
        save_splats(replace(splats, means=splats.means.expand(2, -1, -1)), tmp_path / "a.ply")
    with pytest.raises(BadValue, match="diverged"):
        save_splats(replace(splats, means=splats.means * torch.nan), tmp_path / "a.ply")
    with pytest.raises(FileProblem, match="does not exist"):
        save_splats(splats, tmp_path / "nowhere" / "a.ply")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (b"ply\n", b"obj\n", "not a PLY file"),
        (b"end_header", b"end_of_it!", "not a PLY file"),
        (b"binary_little_endian", b"binary_middle_endian", "format 'binary_middle_endian'"),
        (b"element vertex 9", b"element vertex 99999999999999999", "ends after 9; get a complete copy"),
        (b"element vertex 9", b"element vertex -9", "how many vertices"),
        (b"element vertex 9", b"element vertex", "how many vertices"),
        (b"element vertex 9", b"element face 9", "does not begin with vertices"),
        (b"element vertex 9\n", b"", "does not begin with vertices"),
        (b"property float opacity\n", b"", "has no opacity"),
        (b"property float scale_1\nproperty float scale_2\n", b"", "has no scale_1, scale_2"),
        (b"property float f_rest_3\n", b"", "8 numbers f_rest"),
        (b"f_rest_3", b"f_rest_33", "9 numbers f_rest"),
        (b"property float opacity", b"property list uchar int opacity", "lists"),
        (b"property float opacity", b"property half opacity", "unknown kinds"),
        (b"property float opacity", b"property float x", "occurs twice"),
        (b"property float nx", b"property float packed_position", "compressed"),
    ],
)
def test_damaged_headers_are_named(tmp_path: Path, old: bytes, new: bytes, sentence: str) -> None:
    save_splats(random_splats(9, 0, degree=1), tmp_path / "a.ply")
    data = (tmp_path / "a.ply").read_bytes()
    assert old in data
    (tmp_path / "b.ply").write_bytes(data.replace(old, new, 1))
    with pytest.raises(FormatProblem, match=sentence):
        load_splats(tmp_path / "b.ply")


def test_damaged_bodies_are_named(tmp_path: Path) -> None:
    save_splats(random_splats(9, 0), tmp_path / "a.ply")
    data = (tmp_path / "a.ply").read_bytes()
    (tmp_path / "b.ply").write_bytes(data[:-1])
    with pytest.raises(FormatProblem, match="9 vertices, but ends after 8"):
        load_splats(tmp_path / "b.ply")
    (tmp_path / "b.ply").write_bytes(data[:-4] + np.float32(np.nan).tobytes())
    with pytest.raises(FormatProblem, match="first in splat 8 of 9"):
        load_splats(tmp_path / "b.ply")
    (tmp_path / "b.ply").write_bytes(data[:-20] + np.float32(80).tobytes() + data[-16:])
    with pytest.raises(FormatProblem, match="logarithms"):
        load_splats(tmp_path / "b.ply")
    header = data.partition(b"end_header\n")[0].replace(b"binary_little_endian", b"ascii") + b"end_header\n"
    (tmp_path / "b.ply").write_bytes(header + b"0 " * 30)
    with pytest.raises(FormatProblem, match="too few"):
        load_splats(tmp_path / "b.ply")
    (tmp_path / "b.ply").write_bytes(header + b"0.000 " * 60)
    with pytest.raises(FormatProblem, match="ends after 3 of 9"):
        load_splats(tmp_path / "b.ply")
    (tmp_path / "b.ply").write_bytes(header + b"seven " * 200)
    with pytest.raises(FormatProblem, match="no number"):
        load_splats(tmp_path / "b.ply")
    with pytest.raises(FileProblem, match="there is no file"):
        load_splats(tmp_path / "c.ply")


def test_a_mesh_is_not_splats(tmp_path: Path) -> None:
    text = "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\nend_header\n0 0 0\n"
    (tmp_path / "mesh.ply").write_text(text)
    with pytest.raises(FormatProblem, match="a mesh or a cloud of points"):
        load_splats(tmp_path / "mesh.ply")
