"""Films: pictures of what happens, where it happens, on a ground that belongs to it; and wishes that cannot be granted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bunraku.errors import BadValue
from bunraku.film.actors import perform
from bunraku.film.film import film
from bunraku.film.stage import sky_of, square_for, stage_for
from bunraku.film.tiles import film_sheet
from bunraku.splats.camera import Camera
from tests.film.film_bodies import cube, moved, walker

SIZE = (72, 48)


def inside(image: np.ndarray, sky: tuple[float, float, float]) -> float:
    return float(np.abs(image[:4].astype(float) / 255 - sky).max())


def test_frames_are_the_motion_s_and_can_be_chosen() -> None:
    made = film(perform(walker()), size=SIZE)
    frames = list(made.frames())
    assert len(made) == len(frames) == 10
    assert all(frame.shape == (48, 72, 3) and frame.dtype == np.uint8 for frame in frames)
    assert [np.array_equal(a, frames[i]) for a, i in zip(made.frames([7, 2]), (7, 2), strict=True)] == [True, True]
    assert not np.array_equal(frames[2], frames[7])


def test_a_following_camera_keeps_the_body_in_the_middle() -> None:
    places = [[0.3 * i, 0.5, -0.2 * i] for i in range(12)]
    made = film(perform(moved(places), cube()), size=SIZE, camera="follow")
    empty = film(perform(moved([[0.0, -50.0, 0.0]] * 1), cube()), size=SIZE)
    assert len(empty) == 1
    for row in (0, 5, 11):
        pixel, _ = made.camera[row].project(torch.tensor([places[row]]))
        assert float((pixel[0] - torch.tensor(SIZE) / 2).norm()) < 3


def test_the_mesh_hides_the_ground_and_the_ground_what_is_below_it() -> None:
    performance = perform(moved([[0.0, 0.5, 0.0]]), cube())
    made = film(performance, size=SIZE, camera="front")
    image = next(made.frames())
    assert np.ptp(image[24, 30:42].astype(int), axis=0).max() < 60  # one face of the cube, evenly lit
    eye = Camera.look_at((0.0, 1.0, 6.0), (0.0, 0.3, 0.0), *SIZE)
    whole = next(film(performance, camera=eye).frames()).astype(int)
    sunk = replace(performance, motion=replace(performance.motion, root_position=torch.tensor([[0.0, -0.6, 0.0]])))
    gone = next(film(sunk, camera=eye).frames()).astype(int)
    bare = np.abs(whole - gone).max(-1) > 12
    assert 40 < bare.sum() < 1500
    row, column = np.nonzero(bare)
    assert row.min() >= 12
    assert 20 <= column.min() <= column.max() <= 60


def test_the_ground_takes_a_shadow() -> None:
    eye = Camera.look_at((0.0, 3.0, 8.0), (0.0, 0.5, 0.0), *SIZE)
    near, far = (next(film(perform(moved([[0.0, height, 0.0]]), cube()), camera=eye).frames()) for height in (0.5, 9.0))
    darker = (far.astype(int) - near.astype(int)).min(-1)
    assert (darker[26:] > 25).sum() > 30


def test_a_camera_of_your_own_one_or_one_per_frame() -> None:
    performance = perform(walker(0.5))
    one = Camera.look_at((1.0, 1.5, 4.0), (0.0, 1.0, 0.0), 40, 30)
    assert len(list(film(performance, camera=one).frames())) == 5
    many = Camera.look_at(torch.tensor([1.0, 1.5, 4.0]) + torch.rand(5, 3), (0.0, 1.0, 0.0), 40, 30)
    assert [frame.shape for frame in film(performance, camera=many).frames()] == [(30, 40, 3)] * 5
    with pytest.raises(BadValue, match="were given for 5 frames; give one"):
        film(performance, camera=many[:3])


def test_a_camera_that_is_nowhere() -> None:
    nowhere = Camera(T_world_camera=torch.full((4, 4), torch.nan), K=torch.eye(3), width=40, height=30)
    with pytest.raises(BadValue, match="not finite"):
        film(perform(walker(0.2)), camera=nowhere)


@pytest.mark.parametrize("inside_of", [0.0, 0.2])
def test_a_camera_inside_the_body_or_the_ground_sees_something(inside_of: float) -> None:
    performance = perform(walker(0.2))
    eye = Camera.look_at((0.0, 1.0 - 4 * inside_of, 0.0), (0.0, 1.1, 0.4), 40, 30)
    for frame in film(performance, camera=eye).frames():
        assert frame.shape == (30, 40, 3)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 500.0])
def test_bodies_of_every_size_look_alike(scale: float) -> None:
    performance = perform(moved([[0.0, 0.5 * scale, 0.0]]), cube(scale))
    assert performance.raised == pytest.approx(0, abs=1e-3 * scale)
    image = next(film(performance, size=SIZE).frames()).astype(int)
    standard = next(film(perform(moved([[0.0, 0.5, 0.0]]), cube()), size=SIZE).frames()).astype(int)
    assert np.abs(image[20:28, 30:42] - standard[20:28, 30:42]).max() < 12  # the cube; squares are round numbers of metres


def test_backgrounds() -> None:
    assert sky_of("white") == (1, 1, 1)
    assert sky_of("#336699") == (0.2, 0.4, 0.6)
    assert sky_of((0.1, 0.2, 0.3)) == (0.1, 0.2, 0.3)
    for background in ("white", "black", "#808080", "navy"):
        scene = stage_for(1.7, 5.0, background)
        assert scene.ground is not None
        light, dark = (np.array(colour) for colour in scene.ground.colours)
        assert np.abs(light - dark).max() > 0.03, background
        image = next(film(perform(moved([[0.0, 0.5, 0.0]]), cube()), size=SIZE, camera="front", background=background).frames())
        assert inside(image, sky_of(background)) < 0.05
    for wrong in ("colour", "#12", "", (1.0, 2.0, 0.0)):
        with pytest.raises(BadValue, match="no colour"):
            sky_of(wrong)


def test_squares_are_round_numbers() -> None:
    assert [square_for(reach) for reach in (1.75, 0.17, 35.0, 1.2, 3.0)] == pytest.approx([0.5, 0.05, 10.0, 0.2, 1.0])


def test_sheets_show_as_many_frames_as_there_are() -> None:
    made = film(perform(walker(0.5)), size=(40, 40))
    assert film_sheet(made, 4).size == (4 * 43 - 3, 40)
    assert film_sheet(made, 8).size == (3 * 43 - 3, 2 * 43 - 3)  # five frames
    told: list[float] = []
    film_sheet(made, 2, told.append)
    assert told == [0.5, 1.0]
    with pytest.raises(BadValue, match="1 to 64"):
        film_sheet(made, 0)


@pytest.mark.parametrize("size", [(0, 480), (720, 8), (100_000, 480), (-3, 40)])
def test_sizes_that_no_picture_has(size: tuple[int, int]) -> None:
    with pytest.raises(BadValue, match="16 to 4096"):
        film(perform(moved([[0.0, 0.5, 0.0]]), cube()), size=size)
