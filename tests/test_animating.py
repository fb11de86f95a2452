"""The door to distillation: a prior of one's own, a video, checkpoints, and what is wrong with what was given."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import bunraku
from bunraku import api
from bunraku.animating import save_animation, stage_picture
from bunraku.distill.settings import DistillSettings, SearchSettings
from bunraku.errors import BunrakuError
from bunraku.recipes.animate import RECIPES, from_video
from tests.distill.oracles import Oracle
from tests.distill.worm import worm
from tests.splats.puppet import puppet

TINY = DistillSettings(iterations=2, splats=60, basis="frames")


@pytest.fixture
def character(tmp_path: Path) -> Path:
    api.save_character(puppet(), tmp_path / "puppet.glb")
    return tmp_path / "puppet.glb"


def gif(path: Path, frames: int = 9, fps: int = 8) -> Path:
    pictures = [Image.fromarray(np.full((32, 32, 3), 90 + 10 * i, dtype=np.uint8)) for i in range(frames)]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=1000 // fps, loop=0)
    return path


def test_a_prior_of_ones_own_plugs_in(character: Path, tmp_path: Path) -> None:
    class Mine(Oracle):
        pass

    take = bunraku.animate(character, "it waves", prior=Mine(torch.rand(4, 16, 16, 3)), recipe=TINY)
    assert len(take.motion) == 4
    assert take.motion.provenance.prompt == "it waves"
    assert take.provenance.teacher == "oracle"
    save_animation(take, character, tmp_path / "waving.glb", clip="wave")
    again = api.load_character(tmp_path / "waving.glb")
    assert again.clips[-1] == "wave"
    found = api.load_motion(tmp_path / "waving.glb", clip="wave")
    assert torch.allclose(api.forward_kinematics(found).p_world_joint, api.forward_kinematics(take.motion).p_world_joint, atol=1e-4)
    kept = json.loads((tmp_path / "waving.animate.json").read_text())
    assert kept["settings"]["iterations"] == 2
    assert kept["text"] == "it waves"


def test_a_run_goes_on_from_its_folder(character: Path, tmp_path: Path) -> None:
    prior = Oracle(torch.rand(4, 16, 16, 3))
    first = bunraku.animate(character, "it waves", prior=prior, recipe=TINY, run=tmp_path / "run")
    again = bunraku.animate(character, "it waves", prior=prior, recipe=TINY, run=tmp_path / "run", resume=True)
    assert torch.equal(first.motion.quats, again.motion.quats)
    with pytest.raises(BunrakuError, match="holds a run already"):
        bunraku.animate(character, "it waves", prior=prior, recipe=TINY, run=tmp_path / "run")
    with pytest.raises(BunrakuError, match="text: it jumps, was it waves"):
        bunraku.animate(character, "it jumps", prior=prior, recipe=TINY, run=tmp_path / "run", resume=True)


def test_the_first_frame_is_the_character_on_its_stage(character: Path, tmp_path: Path) -> None:
    stage_picture(character, tmp_path / "first.png", size=(48, 32))
    with Image.open(tmp_path / "first.png") as picture:
        assert picture.size == (48, 32)
        pixels = np.asarray(picture).astype(int)
    assert ((pixels[..., 0] - pixels[..., 2]) > 100).any()  # its red half
    assert ((pixels[..., 2] - pixels[..., 0]) > 100).any()  # its blue half


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "name one of them"),
        ({"prior": "sora"}, "there is no prior 'sora'; choose cogvideox-2b"),
        ({"prior": Oracle(torch.rand(4, 16, 16, 3)), "text": "  "}, "the text is empty"),
        ({"video": "missing.mp4"}, "missing.mp4"),
        ({"prior": Oracle(torch.rand(4, 16, 16, 3)), "recipe": "slow"}, "choose fast or paper"),
        ({"prior": "ltx", "fps": 8.0}, "leave --fps out"),
    ],
)
def test_what_cannot_be_gets_its_sentence(character: Path, asked: dict[str, object], said: str) -> None:
    with pytest.raises(BunrakuError, match=said):
        bunraku.animate(character, **{"text": "it waves", **asked})  # type: ignore[arg-type]


def test_a_video_too_short_is_said(character: Path, tmp_path: Path) -> None:
    with pytest.raises(BunrakuError, match="Ask for fewer seconds"):
        bunraku.animate(character, video=gif(tmp_path / "film.gif"), seconds=5.0, size=(16, 16), recipe=TINY)


def test_a_mesh_without_a_rig_is_sent_to_rig(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box().export(tmp_path / "box.glb")
    with pytest.raises(BunrakuError, match="bunraku rig"):
        bunraku.animate(tmp_path / "box.glb", "it waves", prior=Oracle(torch.rand(4, 16, 16, 3)))


def test_recipes_are_complete_and_the_papers_is_the_papers() -> None:
    paper = RECIPES["paper"]()
    assert (paper.iterations, paper.guide.first, paper.noise.low, paper.noise.high) == (10_000, 100.0, 0.02, 0.98)
    assert RECIPES["fast"]().iterations <= paper.iterations / 20
    assert from_video().weighting == "even"


def test_the_search_for_limbs_is_told_before_the_first_iteration(tmp_path: Path) -> None:
    told: list[tuple[int, float | None]] = []
    settings = DistillSettings(iterations=2, splats=60, basis="frames", search=SearchSettings(swings=(0.0,), bends=(0.0,), rounds=((0, 1.0),)))
    video = gif(tmp_path / "film.gif")
    asked = {"video": video, "seconds": 0.5, "size": (16, 16), "recipe": settings}
    bunraku.animate(worm(), on_progress=lambda now: told.append((now.iteration, now.terms.get("searched"))), **asked)  # type: ignore[arg-type]
    assert told[0] == (0, 1.0)
    assert [iteration for iteration, _ in told[1:]] == [1, 2]
