from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from bunraku.diffusion.guidance import Guidance
from bunraku.errors import BadValue
from bunraku.generator.conditioning import Observation, observe
from bunraku.generator.denoiser import Condition, Denoiser
from bunraku.generator.features import encode
from bunraku.generator.sample import Request, Sampling, sample
from bunraku.timeline.constraints import EffectorTarget, RootPath
from tests.generator.tiny import denoiser_of, layout_of, walking

FEW = Sampling(steps=4)


def request(frames: int = 12, seed: int = 0, **changes: object) -> Request:
    torch.manual_seed(7)
    return replace(Request(frames=frames, text=torch.randn(1, 24), seed=seed), **changes)


def waypoint(frames: int = 12) -> Observation:
    return observe(layout_of(), [RootPath(frames=torch.tensor([frames - 1]), xz=torch.tensor([[0.5, 1.0]]))], frames)


def test_a_clip_is_the_same_whatever_the_batch() -> None:
    denoiser = denoiser_of()
    wanted = [request(seed=3), request(frames=20, seed=4), request(frames=5, seed=3, observation=waypoint(5)), request(seed=9, heading=1.0)]
    together = sample(denoiser, wanted, FEW)
    for one, of_many in zip(wanted, together, strict=True):
        assert len(of_many) == one.frames
        assert torch.equal(sample(denoiser, [one], FEW)[0], of_many)


def test_progress_counts_the_steps_of_all_clips(unchecked_shapes: None) -> None:
    told: list[float] = []
    sample(denoiser_of(), [request(), request(seed=1)], FEW, told.append)
    assert told == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]


def test_a_seed_repeats_exactly_and_another_does_not() -> None:
    denoiser = denoiser_of()
    assert torch.equal(sample(denoiser, [request()], FEW)[0], sample(denoiser, [request()], FEW)[0])
    assert not torch.allclose(sample(denoiser, [request()], FEW)[0], sample(denoiser, [request(seed=1)], FEW)[0])


def test_text_heading_constraints_and_guidance_all_matter() -> None:
    denoiser = denoiser_of()
    base = sample(denoiser, [request(observation=waypoint())], FEW)[0]
    others = {
        "text": sample(denoiser, [request(observation=waypoint(), text=torch.zeros(1, 24))], FEW)[0],
        "heading": sample(denoiser, [request(observation=waypoint(), heading=math.pi / 2)], FEW)[0],
        "constraints": sample(denoiser, [request()], FEW)[0],
        "guidance": sample(denoiser, [request(observation=waypoint())], replace(FEW, guidance=Guidance(text=4.0)))[0],
        "joint": sample(denoiser, [request(observation=waypoint())], replace(FEW, guidance=Guidance(kind="joint")))[0],
        "solver": sample(denoiser, [request(observation=waypoint())], replace(FEW, solver="ddim"))[0],
    }
    for name, other in others.items():
        assert not torch.allclose(base, other, atol=1e-4), name


class Obedient(Denoiser):
    """Stands in for a trained denoiser: it believes what it observes, and a walk for the rest."""

    def __init__(self) -> None:
        real = denoiser_of()
        super().__init__(real.config, real.layout, real.stats)
        spread = self.stats.features
        walk = shifted(encode(self.layout, walking(self.layout))[:12])
        self.clean = (walk - spread.mean) / spread.scale
        self.seen: list[Condition] = []

    def forward(self, x: torch.Tensor, level: torch.Tensor, condition: Condition) -> torch.Tensor:
        self.seen.append(condition)
        clean = self.clean.expand_as(x)
        if condition.mask is None or condition.observed is None:
            return clean
        return torch.where(condition.mask, condition.observed, clean)


def shifted(features: torch.Tensor) -> torch.Tensor:
    moved = features.clone()
    moved[:, 0] += 3.0
    moved[:, 2] -= 2.0
    return moved


def test_a_hand_whose_place_alone_is_known_is_told_against_the_predicted_root() -> None:
    stub = Obedient()
    layout = stub.layout
    hand = layout.skeleton.role("left_hand")
    target = EffectorTarget(frames=torch.tensor([6]), effector="left_hand", position=torch.tensor([[3.4, 1.5, -1.0]]))
    seen = observe(layout, [target], 12)
    assert seen.floating.sum() == 2  # x and z
    (features,) = sample(stub, [request(observation=seen)], replace(FEW, guidance=Guidance(kind="none")))
    place = features[6, layout.position_columns(hand)] + features[6, :3] * torch.tensor([1.0, 0.0, 1.0])
    assert torch.allclose(place, torch.tensor([3.4, 1.5, -1.0]), atol=1e-4)
    first = stub.seen[0]
    assert first.mask.sum() == 1  # at first, while the root is not known, only the height


def test_numbers_that_are_not_finite_stop_the_run() -> None:
    denoiser = denoiser_of()
    denoiser.root_net.pose_out.bias.data[0] = torch.nan
    with pytest.raises(BadValue, match="not finite"):
        sample(denoiser, [request()], FEW)
