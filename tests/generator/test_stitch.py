"""Many prompts as one clip: lengths, seams, what each run of the model is told, and the same numbers in any company."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bunraku.errors import BadValue
from bunraku.evaluate.quality import check
from bunraku.generator import stitch
from bunraku.generator.features import decode, encode, shift_features
from bunraku.generator.pieces import OVERLAP, Stitching, Strand, piece_seed, plan, start_of
from bunraku.generator.sample import Request, Sampling
from bunraku.generator.stitch import draw
from bunraku.kinematics.edit import place
from bunraku.kinematics.forward import forward_kinematics
from bunraku.timeline import EffectorTarget, Heading, PoseKey, RootPath
from tests.generator.tiny import denoiser_of, layout_of, walk_features, walker, walking

LAYOUT = layout_of()
FEW, ONE = Sampling(steps=2), Sampling(steps=1)
MOST = 60


def strand(*lengths: int, seed: int = 0, **more: object) -> Strand:
    starts = [sum(lengths[:k]) for k in range(len(lengths) + 1)]
    frames = tuple(range(a, b) for a, b in pairwise(starts))
    torch.manual_seed(len(lengths))
    return Strand(prompt_frames=frames, text=tuple(torch.randn(1, 24) for _ in lengths), seed=seed, **more)  # type: ignore[arg-type]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """Every request that the model gets."""
    requests: list[Request] = []
    real = stitch.sample

    def listening(denoiser, wanted, *rest):  # type: ignore[no-untyped-def]
        requests.extend(wanted)
        return real(denoiser, wanted, *rest)

    monkeypatch.setattr(stitch, "sample", listening)
    return requests


@given(st.lists(st.integers(1, 400), min_size=1, max_size=6), st.integers(10, 300), st.integers(1, 4), st.booleans(), st.integers(0, 1))
def test_pieces_cover_every_frame_once_and_fit(lengths: list[int], most: int, overlap: int, led: bool, tail: int) -> None:
    frames = strand(*lengths).prompt_frames
    pieces = plan(frames, most, overlap=overlap, led=led, tail=tail)
    assert [f for piece in pieces for f in range(piece.start, piece.stop)] == list(range(sum(lengths)))
    for number, piece in enumerate(pieces):
        last = piece.prompt == len(lengths) - 1
        assert 0 < piece.stop - piece.start <= most - (overlap if led or number else 0) - (tail if last else 0)
        assert frames[piece.prompt].start <= piece.start < piece.stop <= frames[piece.prompt].stop


def test_a_prompt_as_long_as_the_model_allows_is_one_piece() -> None:
    assert len(plan([range(300)], 300, overlap=2)) == 1
    assert [piece.stop - piece.start for piece in plan([range(301)], 300, overlap=2)] == [150, 151]
    with pytest.raises(BadValue, match="no room"):
        plan([range(10)], 8, overlap=4)


def test_a_clip_is_the_same_in_any_company() -> None:
    strands = [strand(20, 30, seed=4), strand(45, seed=5), strand(7, 7, 7, seed=6, loop=True)]
    together = draw(denoiser_of(), strands, FEW, most=MOST)
    for each, features in zip(strands, together, strict=True):
        (alone,) = draw(denoiser_of(), [each], FEW, most=MOST)
        assert len(features) == each.frames
        assert torch.isfinite(features).all()
        assert (alone - features).abs().max() < 1e-4


def test_seeds_of_pieces_do_not_meet() -> None:
    seeds = {piece_seed(seed, piece) for seed in range(100) for piece in range(100)}
    assert len(seeds) == 10_000
    assert piece_seed(7, 0) == 7
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_batches_do_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    strands = [strand(10, 10, seed=seed) for seed in range(5)]
    whole = draw(denoiser_of(), strands, FEW, most=MOST)
    monkeypatch.setattr(stitch, "AT_ONCE", 2)
    shares: list[float] = []
    parts = draw(denoiser_of(), strands, FEW, most=MOST, on_progress=shares.append)
    assert max(float((a - b).abs().max()) for a, b in zip(whole, parts, strict=True)) < 1e-4
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) == 2 * 5 * 2  # stages, clips, steps


# --- seams -----------------------------------------------------------------------------------------------------------


def largest_steps(features: torch.Tensor) -> torch.Tensor:
    """[m] the largest move of a joint from each frame to the next."""
    p = forward_kinematics(decode(LAYOUT, features).motion).p_world_joint
    return torch.diff(p, dim=0).norm(dim=-1).amax(dim=-1)


@pytest.mark.parametrize("overlap", [1, 2, 5])
def test_joints_do_not_jump_at_seams(overlap: int) -> None:
    (features,) = draw(walker(), [strand(37, 45, 50)], ONE, most=MOST, stitching=Stitching(overlap=overlap))
    steps = largest_steps(features)
    inside = largest_steps(walk_features()).max()
    assert steps.max() < 1.6 * inside  # the phases of the steps do not meet: they are led over within a third of a second
    assert features[-1, 2] > 3.0  # and the walk goes on, piece after piece


def test_seams_change_nothing_where_the_model_keeps_what_it_was_told() -> None:
    expected = shift_features(LAYOUT, walk_features()[:31], torch.tensor([3.0, -2.0]).expand(31, 2))
    (features,) = draw(walker(), [strand(30, before=expected[:1])], ONE, most=MOST, stitching=Stitching(overlap=1))
    assert (features - expected[1:]).abs().max() < 1e-4


def test_what_was_there_is_led_on_wherever_it_is() -> None:
    here = encode(LAYOUT, walking(LAYOUT))
    there = encode(LAYOUT, place(walking(LAYOUT), (50.0, -20.0), 2.0))
    for before in (here, there):
        (features,) = draw(walker(), [strand(30, before=before)], ONE, most=MOST)
        joined = torch.cat([before, features])
        assert largest_steps(joined)[len(before) - 1] < 1.5 * largest_steps(before).max()


def test_both_ends_of_a_range_are_met() -> None:
    walk = walk_features()
    after = shift_features(LAYOUT, walk[40:70], torch.tensor([0.2, 0.6]).expand(30, 2))  # out of step, and a little aside
    (features,) = draw(walker(), [strand(30, before=walk[:30], after=after)], ONE, most=MOST)
    steps, inside = largest_steps(torch.cat([walk[:30], features, after])), largest_steps(walk).max()
    assert steps[[29, 59]].max() < 1.5 * inside


@pytest.mark.parametrize("lengths", [(40,), (40, 25), (70,)])
def test_a_loop_ends_as_it_began(lengths: tuple[int, ...]) -> None:
    (features,) = draw(walker(), [strand(*lengths, loop=True)], ONE, most=MOST)
    report = check(decode(LAYOUT, features).motion)
    assert len(features) == sum(lengths)
    assert report["loop_pose"] < 0.1
    assert report["loop_position"] < 0.1


def test_a_loop_of_noise_closes_too() -> None:
    (features,) = draw(denoiser_of(), [strand(12, loop=True)], FEW, most=MOST)
    report = check(decode(LAYOUT, features).motion)
    assert report["loop_pose"] < 0.5
    assert report["loop_position"] < 1.0


# --- what the model is told ------------------------------------------------------------------------------------------


def test_a_first_piece_without_constraints_is_told_nothing(told: list[Request]) -> None:
    draw(denoiser_of(), [strand(20, heading=0.5)], FEW, most=MOST)
    (request,) = told
    assert (request.frames, request.heading, request.observation) == (20, 0.5, None)


def test_a_later_piece_is_told_the_end_of_the_one_before(told: list[Request]) -> None:
    denoiser = walker()
    draw(denoiser, [strand(20, 30)], FEW, most=MOST)
    second = told[1]
    assert second.frames == 30 + OVERLAP
    seen = second.observation
    assert seen is not None
    assert seen.mask[:OVERLAP, LAYOUT.root].all()
    assert seen.mask[:OVERLAP, LAYOUT.joint_positions].all()
    hands = [LAYOUT.skeleton.role(role) for role in stitch.ENDS]
    assert all(seen.mask[:OVERLAP, LAYOUT.rotation_columns(joint)].all() for joint in hands)
    assert not seen.mask[OVERLAP:].any()
    assert seen.values[0, [0, 2]].abs().max() < 1e-6  # the smoothed root starts at the origin
    known = walk_features()[20 - OVERLAP : 20]
    assert (seen.values[:OVERLAP, LAYOUT.joint_positions] - known[:, LAYOUT.joint_positions]).abs().max() < 1e-4
    assert second.heading == pytest.approx(math.atan2(float(known[0, 4]), float(known[0, 3])), abs=1e-4)


def test_constraints_land_in_their_piece_moved_with_it(told: list[Request]) -> None:
    path = RootPath(frames=torch.tensor([5, 45]), xz=torch.tensor([[0.0, 0.2], [0.5, 1.5]]))
    draw(walker(), [strand(20, 30, constraints=(path,))], ONE, most=MOST)
    first, second = (request.observation for request in told)
    assert first is not None
    assert second is not None
    assert first.mask[:, 0].nonzero()[:, 0].tolist() == [5]
    row = 45 - 20 + OVERLAP
    assert second.mask[:, 0].nonzero()[:, 0].tolist() == [*range(OVERLAP), row]
    origin = torch.tensor([0.5, 1.5]) - second.values[row, [0, 2]]  # where the second run's origin is in the world
    assert origin.tolist() == pytest.approx(walk_features()[20 - OVERLAP, [0, 2]].tolist(), abs=1e-4)


def test_a_piece_looks_ahead_to_a_constraint_soon_after_it(told: list[Request]) -> None:
    soon = RootPath(frames=torch.tensor([24]), xz=torch.tensor([[0.0, 1.0]]))
    (features,) = draw(walker(), [strand(20, 30, constraints=(soon,))], ONE, most=MOST)
    assert [request.frames for request in told] == [25, 30 + OVERLAP]
    assert told[0].observation is not None
    assert told[0].observation.mask[:, 0].nonzero()[:, 0].tolist() == [24]
    assert len(features) == 50


def test_a_clip_that_must_start_elsewhere_is_drawn_at_the_origin_and_moved_there(told: list[Request]) -> None:
    start = RootPath(frames=torch.tensor([0, 10]), xz=torch.tensor([[7.0, -3.0], [7.5, -3.0]]), heading=torch.tensor([1.5, 1.5]))
    (features,) = draw(walker(), [strand(20, constraints=(start,))], ONE, most=MOST)
    (request,) = told
    assert request.observation is not None
    assert request.observation.values[0, [0, 2]].abs().max() < 1e-6
    assert request.observation.values[10, 0] == pytest.approx(0.5)
    assert request.heading == 1.5
    assert (features[0, [0, 2]] - torch.tensor([7.0, -3.0])).abs().max() < 1e-5


def test_poses_and_targets_say_where_a_clip_starts() -> None:
    pose = place(walking(LAYOUT)[:1], (4.0, 5.0), 1.0)
    at_once = torch.tensor([0])
    key = PoseKey(frames=at_once, poses=pose)
    heading, xz = start_of(strand(5, constraints=(key,), heading=3.0))
    assert xz == pytest.approx((float(pose.root_position[0, 0]), float(pose.root_position[0, 2])))
    assert heading == pytest.approx(1.0, abs=0.2)
    hand = EffectorTarget(frames=at_once, effector="left_hand", position=torch.tensor([[2.0, 1.0, 3.0]]))
    assert start_of(strand(5, constraints=(hand, Heading(frames=at_once, heading=torch.tensor([0.3])))))[1] == (2.0, 3.0)
    later = replace(hand, frames=torch.tensor([1]))
    assert start_of(strand(5, constraints=(later,), heading=0.25)) == (0.25, (0.0, 0.0))


@pytest.mark.parametrize("bad", [{"overlap": 0}, {"overlap": 1000}, {"fade_seconds": math.nan}])
def test_absurd_stitching_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(BadValue):
        Stitching(**bad)  # type: ignore[arg-type]
