"""The camera: OpenCV's axes, pixels there and back, and the poses of `look_at`."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bunraku.errors import BadValue
from bunraku.splats import Camera

number = st.floats(-5, 5, allow_nan=False)
place = st.tuples(number, number, number)


@given(eye=place, target=place)
def test_the_target_is_in_the_middle_and_up_is_up(eye: tuple, target: tuple) -> None:
    p_eye, p_target = torch.tensor(eye, dtype=torch.float64), torch.tensor(target, dtype=torch.float64)
    distance = (p_eye - p_target).norm()
    if distance < 1e-3:
        return
    camera = Camera.look_at(p_eye, p_target, 40, 30)
    R = camera.T_world_camera[:3, :3]
    torch.testing.assert_close(R @ R.T, torch.eye(3, dtype=torch.float64))
    assert torch.linalg.det(R) == pytest.approx(1)
    pixel, depth = camera.project(p_target[None])
    torch.testing.assert_close(pixel[0], torch.tensor([20.0, 15.0], dtype=torch.float64))
    assert depth[0] == pytest.approx(float(distance))
    assert R[1, 1] <= 1e-6  # the picture's downward axis never points up


def test_right_is_right_and_above_is_above() -> None:
    camera = Camera.look_at((0.0, 0.0, 5.0), (0.0, 0.0, 0.0), 100, 80)
    (right, above), depth = camera.project(torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))[0], camera.project(torch.zeros(1, 3))[1]
    assert right[0] > 50
    assert right[1] == pytest.approx(40)
    assert above[1] < 40
    assert depth.tolist() == pytest.approx([5.0])


def test_the_field_of_view_is_that_of_the_shorter_side() -> None:
    camera = Camera.look_at((0.0, 0.0, 5.0), (0.0, 0.0, 0.0), 100, 80, field_of_view=1.0)
    pixel, _ = camera.project(torch.tensor([[0.0, 5 * math.tan(0.5), 0.0]]))
    assert pixel[0, 1] == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("above", [3.0, -3.0])
def test_straight_down_and_straight_up(above: float) -> None:
    camera = Camera.look_at((0.0, above, 0.0), (0.0, 0.0, 0.0), 10, 10)
    R = camera.T_world_camera[:3, :3]
    torch.testing.assert_close(R @ R.T, torch.eye(3))
    assert torch.isfinite(R).all()
    assert (-R[2, 1] * above) < 0  # −Z is the upper side when looking down, +Z when looking up


@given(x=st.floats(0, 40), y=st.floats(0, 30), depth=st.floats(0.1, 10))
def test_rays_lead_to_what_pixels_show(x: float, y: float, depth: float) -> None:
    camera = Camera.look_at((1.0, 2.0, 3.0), (0.0, 0.5, 0.0), 40, 30).to(dtype=torch.float64)
    column, row = min(int(x), 39), min(int(y), 29)
    p_world = camera.p_world + depth * camera.rays()[row, column]
    pixel, found = camera.project(p_world[None])
    assert pixel[0].tolist() == pytest.approx([column + 0.5, row + 0.5], abs=1e-4)
    assert found[0] == pytest.approx(depth, abs=1e-5)


def test_many_eyes_make_a_batch() -> None:
    eyes = torch.tensor([[0.0, 0.0, 3.0], [3.0, 0.0, 0.0]])
    cameras = Camera.look_at(eyes, (0.0, 0.0, 0.0), 20, 10)
    assert cameras.T_world_camera.shape == (2, 4, 4)
    assert cameras.rays().shape == (2, 10, 20, 3)
    assert cameras.project(torch.zeros(5, 3))[0].shape == (2, 5, 2)
    torch.testing.assert_close(cameras[1].T_world_camera, Camera.look_at((3.0, 0.0, 0.0), (0.0, 0.0, 0.0), 20, 10).T_world_camera)
    assert "2 views" in repr(cameras)


def test_another_size_shows_the_same() -> None:
    camera = Camera.look_at((0.0, 0.0, 3.0), (0.0, 0.0, 0.0), 40, 30)
    larger = camera.resized(80, 60)
    p = torch.tensor([[0.3, 0.2, 0.1]])
    torch.testing.assert_close(larger.project(p)[0], 2 * camera.project(p)[0])


@pytest.mark.usefixtures("unchecked_shapes")
def test_impossible_cameras_are_refused() -> None:
    for size in ((0, 10), (10, -1), (10, 1 << 20)):
        with pytest.raises(BadValue, match="cannot be taken"):
            Camera.look_at((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), *size)
    with pytest.raises(BadValue, match="stands where it looks"):
        Camera.look_at((0.0, 0.0, 1.0), (0.0, 0.0, 1.0), 10, 10)
    with pytest.raises(BadValue, match="field of view"):
        Camera.look_at((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), 10, 10, field_of_view=4.0)
    with pytest.raises(BadValue, match="three numbers"):
        Camera.look_at((0.0, 1.0), (0.0, 0.0), 10, 10)
    with pytest.raises(BadValue, match="look_at"):
        Camera(T_world_camera=torch.eye(3), K=torch.eye(3), width=3, height=3)
