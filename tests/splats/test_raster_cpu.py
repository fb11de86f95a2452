"""The kernels are the specification, only faster: in value and gradient, in every scene, clip or frame by frame, and the same bits every time."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bunraku.splats import Camera, compiled, random_splats, raster_cpu, render
from tests.splats.scenes import SCENES, WIDTH, assert_same, before, one, outcome


@pytest.mark.parametrize("scene", SCENES)
def test_the_same_as_the_specification(scene: str) -> None:
    splats, camera = SCENES[scene]()
    assert_same(outcome(splats, camera, "cpu"), outcome(splats, camera, "torch"))


@pytest.mark.parametrize("scene", SCENES)
def test_the_same_as_the_specification_in_double_precision(scene: str) -> None:
    splats, camera = SCENES[scene]()
    assert_same(outcome(splats, camera, "cpu"), outcome(splats, camera, "torch", dtype=torch.float64))


def moving(frames: int) -> tuple:
    """A crowd that spreads out and turns, and a camera that goes round it."""
    splats = random_splats(120, 0, degree=1)
    grow = torch.linspace(1, 1.3, frames)
    turn = torch.linspace(0, 2, frames)
    eye = torch.stack([3.2 * torch.sin(turn), 0 * turn, 3.2 * torch.cos(turn)], dim=-1)
    splats = replace(splats, means=splats.means * grow[:, None, None], factors=splats.factors * grow[:, None, None, None])
    return splats, Camera.look_at(eye, (0.0, 0.0, 0.0), WIDTH, 20)


@pytest.mark.parametrize("moves", ["splats", "cameras", "both"])
def test_a_clip_in_one_call_is_its_frames_one_by_one(moves: str) -> None:
    splats, camera = moving(3)
    splats = splats[0] if moves == "cameras" else splats
    camera = camera[0] if moves == "splats" else camera
    clip = render(splats, camera, "cpu")
    for frame in range(3):
        picture = render(splats if moves == "cameras" else splats[frame], camera if moves == "splats" else camera[frame], "cpu")
        for name in ("color", "alpha", "depth"):
            assert torch.equal(getattr(clip, name)[frame], getattr(picture, name))
    assert_same(outcome(splats, camera, "cpu"), outcome(splats, camera, "torch"))


def test_every_frame_from_every_camera() -> None:
    splats, camera = moving(3)
    splats = splats.map(lambda value: value[:, None] if value.shape[0] == 3 and value.ndim > 2 else value)
    both = outcome(splats, camera[:2], "cpu")
    assert both.rendering.color.shape == (3, 2, 20, WIDTH, 3)
    assert_same(both, outcome(splats, camera[:2], "torch"))


def test_opacities_may_change_from_frame_to_frame() -> None:
    splats = random_splats(60, 0)
    splats = replace(splats, opacity_logits=splats.opacity_logits + torch.tensor([[0.0], [2.0]]))
    assert_same(outcome(splats, before(), "cpu"), outcome(splats, before(), "torch"))


def test_nothing_in_every_frame() -> None:
    splats, camera = random_splats(0, 0), moving(3)[1]
    assert_same(outcome(splats, camera, "cpu"), outcome(splats, camera, "torch"))


def test_long_clips_go_back_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    splats, camera = moving(5)
    whole = outcome(splats, camera, "cpu")
    monkeypatch.setattr(raster_cpu, "_PAIRS_AT_ONCE", 300)
    groups = outcome(splats, camera, "cpu")
    for name, gradient in whole.gradients.items():
        torch.testing.assert_close(groups.gradients[name], gradient, rtol=1e-5, atol=1e-4)


def test_a_scene_that_would_fill_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from bunraku.errors import BadValue

    monkeypatch.setattr(raster_cpu, "_MOST_PAIRS", 10)
    with pytest.raises(BadValue, match="Render fewer frames"):
        render(random_splats(50, 0), before(), "cpu")


def test_the_same_bits_with_one_core_and_with_several() -> None:
    splats, camera = moving(4)
    threads = torch.get_num_threads()
    outcomes = [outcome(splats, camera, "cpu")]
    try:
        torch.set_num_threads(3)
        outcomes += [outcome(splats, camera, "cpu") for _ in range(3)]
    finally:
        torch.set_num_threads(threads)
    for other in outcomes[1:]:
        assert torch.equal(other.rendering.color, outcomes[0].rendering.color)
        assert torch.equal(other.rendering.depth, outcomes[0].rendering.depth)
        for name, gradient in outcomes[0].gradients.items():
            assert torch.equal(other.gradients[name], gradient), name


def test_several_callers_at_once() -> None:
    from concurrent.futures import ThreadPoolExecutor

    splats, camera = moving(4)
    expected = render(splats, camera, "cpu").color
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with ThreadPoolExecutor(4) as callers:
            pictures = list(callers.map(lambda _: render(splats, camera, "cpu").color, range(8)))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(picture, expected) for picture in pictures)


def test_inside_inference_and_without_gradients() -> None:
    raster_cpu._warm_up.cache_clear()
    with torch.inference_mode():
        quiet = render(one(), before(), "cpu")
    with torch.no_grad():
        assert torch.equal(render(one(), before(), "cpu").color, quiet.color)


def test_pieces_of_work_cover_everything_once() -> None:
    for count in (0, 1, 7, 5000):
        bounds = compiled.evenly(count, 100)
        assert bounds[0] == 0
        assert bounds[-1] == count
        assert bounds == sorted(bounds)
    start = torch.tensor([5, 5, 5, 90, 91, 91, 300]).numpy()
    bounds = compiled.by_cost(start)
    assert bounds[0] == 0
    assert bounds[-1] == 6
    assert bounds == sorted(bounds)


def test_slow_compiling_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import time

    monkeypatch.setattr(compiled, "_PATIENCE", 0.01)
    with compiled.said_when_slow("patience"):
        time.sleep(0.2)
    assert "patience" in capsys.readouterr().err
    monkeypatch.setattr(compiled, "_PATIENCE", 10)
    with compiled.said_when_slow("patience"):
        pass
    assert not capsys.readouterr().err
