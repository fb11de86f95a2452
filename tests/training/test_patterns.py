"""What networks are told in training is what constraints tell them later, in the proportions of the paper."""

from __future__ import annotations

from functools import cache

import pytest
import torch

import bunraku
from bunraku.errors import BadValue
from bunraku.generator.conditioning import observe
from bunraku.generator.features import FeatureLayout
from bunraku.kinematics.walk import walk
from bunraku.math.rotations import matrix_to_quat
from bunraku.timeline.constraints import Constraint, EffectorTarget, FootPlan, Heading, PoseKey, RootPath
from bunraku.training.patterns import ENDS, FAMILIES, MIXED_SHARE, NONE_SHARE, Groups, PatternSampler, most_keys_at


@cache
def layout_of(name: str) -> FeatureLayout:
    return FeatureLayout(skeleton=bunraku.skeleton(name))


def sampler_of(name: str = "soma30", **families: float) -> PatternSampler:
    return PatternSampler(Groups.of(layout_of(name)), families or None)


def alone(family: str) -> PatternSampler:
    return PatternSampler(Groups.of(layout_of("soma30")), {family: 1.0})


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# --- as constraints are observed -------------------------------------------------------------------------------------


def observed_rows(constraint: Constraint) -> torch.Tensor:
    """Which columns a constraint at frame 1 of 3 makes known."""
    return observe(layout_of("soma30"), [constraint], 3).mask[1]


def asked(name: str) -> Constraint:
    frames, pose = torch.tensor([1]), walk(bunraku.skeleton("soma30"), seconds=1.0)[3:4]
    place, turn = torch.tensor([[0.2, 1.0, 0.3]]), matrix_to_quat(torch.eye(3)[None])
    wanted: dict[str, Constraint] = {
        "pose keys": PoseKey(frames=frames, poses=pose),
        "effector keys": PoseKey(frames=frames, poses=pose, effectors=("left_hand", "right_foot")),
        "place": EffectorTarget(frames=frames, effector="left_hand", position=place),
        "turn": EffectorTarget(frames=frames, effector="left_hand", quats=turn),
        "place and turn": EffectorTarget(frames=frames, effector="left_foot", position=place, quats=turn),
        "waypoints": RootPath(frames=frames, xz=torch.zeros(1, 2)),
        "waypoints with heading": RootPath(frames=frames, xz=torch.zeros(1, 2), heading=torch.zeros(1)),
        "headings": Heading(frames=frames, heading=torch.zeros(1)),
        "contacts": FootPlan(frames=frames, contacts=torch.ones(1, 4, dtype=torch.bool)),
    }
    return wanted[name]


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("pose keys", "pose keys"),
        ("pose keys", "in between"),
        ("effector keys", "effector keys"),
        ("place", "effectors alone"),
        ("turn", "effectors alone"),
        ("place and turn", "effectors alone"),
        ("waypoints", "waypoints"),
        ("waypoints with heading", "waypoints"),
        ("waypoints", "path"),
        ("headings", "headings"),
        ("contacts", "contacts"),
    ],
)
def test_a_pattern_of_each_family_knows_what_its_constraint_makes_known(name: str, family: str) -> None:
    sampler = alone(family)
    mask = sampler.draw(400, 30, 1, seeded()).mask(sampler.groups)
    rows = mask.flatten(0, 1)[mask.flatten(0, 1).any(dim=1)]
    assert (rows == observed_rows(asked(name))).all(dim=1).any()


def test_a_lead_is_what_stitching_tells() -> None:
    poses = walk(bunraku.skeleton("soma30"), seconds=1.0)[:2]
    whole = PoseKey(frames=torch.tensor([0, 1]), poses=poses)
    ends = PoseKey(frames=torch.tensor([0, 1]), poses=poses, effectors=ENDS)
    told = observe(layout_of("soma30"), [whole, ends], 40).mask
    sampler = alone("lead")
    masks = sampler.draw(400, 40, 1, seeded()).mask(sampler.groups)
    assert any(torch.equal(mask, told) for mask in masks)


@pytest.mark.parametrize("name", ["soma30", "g1", "smplx22"])
def test_every_body_has_its_groups(name: str) -> None:
    sampler = sampler_of(name)
    mask = sampler.draw(64, 20, 20, seeded()).mask(sampler.groups)
    assert mask.shape == (64, 20, layout_of(name).width)
    assert not mask[..., layout_of(name).joint_velocities].any()  # nobody asks for velocities


# --- proportions -----------------------------------------------------------------------------------------------------


def test_one_in_ten_is_told_nothing_and_one_in_four_two_things() -> None:
    pattern = sampler_of().draw(20_000, 12, 20, seeded())
    told = pattern.frames.any(dim=2).sum(dim=0)
    shares = [float((told == n).double().mean()) for n in range(3)]
    assert shares == pytest.approx([NONE_SHARE, 1 - NONE_SHARE - MIXED_SHARE, MIXED_SHARE], abs=0.01)


def test_families_are_drawn_in_their_shares() -> None:
    sampler = sampler_of()
    pattern = sampler.draw(40_000, 12, 20, seeded())
    contacts = float(pattern.groups[0][:, sampler.groups.names.index("contacts")].double().mean())
    assert contacts == pytest.approx(FAMILIES["contacts"] / sum(FAMILIES.values()), abs=0.01)


def test_few_keyframes_are_drawn_more_often_than_many() -> None:
    pattern = alone("headings").draw(40_000, 60, 20, seeded())
    counts = pattern.frames[0].sum(dim=1)
    found = torch.bincount(counts[counts > 0], minlength=21)[1:].double()
    expected = 1 / torch.arange(1, 21).double()
    torch.testing.assert_close(found / found.sum(), expected / expected.sum(), atol=0.01, rtol=0)


@pytest.mark.parametrize(("progress", "most"), [(-1, 1), (0.0, 1), (0.5, 10), (1.0, 20), (2.0, 20)])
def test_the_number_of_keyframes_grows(progress: float, most: int) -> None:
    assert most_keys_at(progress) == pytest.approx(most, abs=1)
    assert 1 <= most_keys_at(progress) <= 20


@pytest.mark.parametrize("frames", [1, 2, 3, 40])
def test_short_clips_get_patterns_too(frames: int) -> None:
    sampler = sampler_of()
    pattern = sampler.draw(200, frames, 20, seeded())
    assert pattern.frames.shape == (2, 200, frames)
    assert pattern.frames.any()


def test_a_seed_repeats() -> None:
    first, again, other = (sampler_of().draw(50, 30, 20, seeded(s)).mask(sampler_of().groups) for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_unknown_families_are_named() -> None:
    with pytest.raises(BadValue, match="no family of constraints 'dance'; there are pose keys"):
        PatternSampler(Groups.of(layout_of("soma30")), {"dance": 1.0})
