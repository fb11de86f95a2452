"""Limbs found on a grid: the cheapest way through frames, which chains are limbs, and a bend that no gradient finds."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bunraku.distill.limb_search import PITCH, cheapest_path, limbs_of, search_limbs
from bunraku.distill.settings import SearchSettings
from bunraku.distill.stage import Shot, set_stage
from bunraku.distill.teachers import VideoTeacher
from bunraku.distill.trajectory import Timing, Trajectory
from bunraku.kinematics.library import skeleton
from bunraku.rig.mannequin import mannequin
from bunraku.splats import from_mesh
from tests.distill.worm import worm


@given(seed=st.integers(0, 200), moving=st.floats(0, 3))
def test_the_path_is_the_cheapest_of_all(seed: int, moving: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    costs, places = torch.rand(4, 3, generator=generator), torch.randn(4, 3, 2, generator=generator)

    def price(path: tuple[int, ...]) -> float:
        steps = [float((places[f, a] - places[f + 1, b]).norm() / (torch.pi / 2)) ** 2 for f, (a, b) in enumerate(pairwise(path))]
        return sum(float(costs[f, p]) for f, p in enumerate(path)) + moving * sum(steps)

    found = tuple(cheapest_path(costs, places, moving).tolist())
    assert price(found) == pytest.approx(min(price(path) for path in product(range(3), repeat=4)), abs=1e-5)


def test_arms_and_legs_are_limbs() -> None:
    body = mannequin(skeleton("cmu23"))
    trajectory = Trajectory(body.rig, Timing(frames=4, fps=8.0))
    firsts = {body.skeleton.joints[int(trajectory.joints[limb[0]])] for limb in limbs_of(trajectory)}
    wanted = {body.skeleton.joints[body.skeleton.role(role)] for role in ("left_hip", "right_hip")}
    assert wanted <= firsts
    assert all(len(limb) >= 3 for limb in limbs_of(trajectory))


def test_a_far_swing_is_found() -> None:
    character, timing = worm(), Timing(frames=4, fps=8.0)
    stage = set_stage(character, from_mesh(character, views=0, count=200), timing.fps, Shot(aside=80.0, follow=False))
    wanted, found = (Trajectory(character.rig, timing, basis="frames") for _ in range(2))
    limb = limbs_of(wanted)
    assert [len(chain) for chain in limb] == [3]
    wanted.angles.data[:, limb[0][0], PITCH] = torch.deg2rad(torch.tensor([0.0, -45.0, -60.0, -30.0]))
    with torch.no_grad():
        video = stage.film(wanted.poses(), 24, 24)
    shares: list[float] = []
    settings = replace(SearchSettings(), bends=(-30.0, 0.0, 30.0), rounds=((0, 1.0),))
    search_limbs(found, stage, VideoTeacher(video), settings, shares.append)
    away = (found.bone_angles() - wanted.bone_angles())[..., PITCH].detach().rad2deg()
    assert float(away.abs().max()) <= 15.1
    assert float(away.abs().mean()) < 6
    assert shares[-1] == 1.0
