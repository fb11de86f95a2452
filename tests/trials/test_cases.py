"""Cases: the same from the same seed, true to the motion they are taken from, and files that can be drawn again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import bunraku
from bunraku.datasets.store import Dataset
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.heading import heading_of
from bunraku.timeline import FootPlan, PoseKey, RootPath, check_constraints, load_timeline
from bunraku.trials.cases import case_path, case_truth, make_cases, save_cases
from bunraku.trials.families import FAMILIES, MOST_KEYS
from bunraku.trials.misses import miss_metrics, misses
from bunraku.trials.settings import TrialSettings
from bunraku.trials.stretch import Stretch, captioned_stretches, random_stretches, truth_of
from bunraku.trials.takes import case_print

FEW = TrialSettings(cases=2, seeds=2)


def test_cases_follow_from_the_seed(held_out_walks: Dataset) -> None:
    first, again = (make_cases(held_out_walks, FEW, 10.0) for _ in range(2))
    assert [case_print(case) for case in first] == [case_print(case) for case in again]
    other = make_cases(held_out_walks, replace(FEW, seed=1), 10.0)
    assert {case_print(case) for case in first}.isdisjoint(case_print(case) for case in other)
    assert len({case.name for case in first}) == len(first) == 3 + 2 * 2 * len(FAMILIES) + 8 * 2


def test_the_truth_meets_every_constraint(held_out_walks: Dataset) -> None:
    cases = [case for case in make_cases(held_out_walks, replace(FEW, perturbed=0.5), 10.0) if case.suite == "constraints"]
    assert {case.moved is None for case in cases} == {True, False}
    for case in cases:
        truth = case_truth(held_out_walks, case).motion
        assert len(truth) == case.frames
        check_constraints(case.timeline.constraints, skeleton=truth.skeleton, frames=case.frames, fps=30.0, first_wins=True)
        found = miss_metrics([misses(truth, case.timeline.constraints)])
        for name in ("fullbody", "effector", "effector_turn", "heading"):
            assert (getattr(found, name) or 0.0) < 0.01, (case.name, name)
        assert (found.root or 0.0) < 1.0, case.name  # the walk is whole, so that its smoothed root is that of the crop
        assert found.contacts in (None, 1.0)


def test_with_and_without_text_are_the_same_otherwise(held_out_walks: Dataset) -> None:
    cases = {case.name: case for case in make_cases(held_out_walks, FEW, 10.0)}
    told, mute = cases["root/path_2dpos/withtext/0001"], cases["root/path_2dpos/notext/0001"]
    assert told.with_text
    assert not mute.with_text
    named = replace(mute.timeline, prompts=told.timeline.prompts)
    assert case_print(replace(mute, timeline=named)) == case_print(told)


def test_families_ask_for_what_they_say(held_out_walks: Dataset) -> None:
    truth = truth_of(held_out_walks, Stretch(clip=4, start=0, stop=120))
    rng = torch.Generator().manual_seed(0)
    for _ in range(20):
        (keys,) = FAMILIES["fullbody/random"](truth, rng)
        assert isinstance(keys, PoseKey)
        assert 1 <= len(keys.frames) <= MOST_KEYS
        assert keys.effectors is None
        (between,) = FAMILIES["fullbody/inbetweening"](truth, rng)
        assert {0, 119} & set(between.frames.tolist())
        assert not {*range(40, 80)} & set(between.frames.tolist())
        (feet,) = FAMILIES["end-effectors/feet_posrot"](truth, rng)
        assert isinstance(feet, PoseKey)
        assert set(feet.effectors or ()) <= {"left_foot", "right_foot"}
        (path,) = FAMILIES["root/path_2dposrot"](truth, rng)
        assert isinstance(path, RootPath)
        assert path.heading is not None
        assert len(path.frames) >= 60
        assert torch.equal(path.frames.diff(), torch.ones(len(path.frames) - 1, dtype=torch.long))
        (plan,) = FAMILIES["feet/plan"](truth, rng)
        assert isinstance(plan, FootPlan)
    assert len(FAMILIES["mixture/root_ee_hands_feet_posrot_fullbody"](truth, rng)) == 3


def test_keyframes_are_rather_few(held_out_walks: Dataset) -> None:
    truth, rng = truth_of(held_out_walks, Stretch(clip=4, start=0, stop=120)), torch.Generator().manual_seed(0)
    counts = torch.tensor([len(FAMILIES["fullbody/random"](truth, rng)[0].frames) for _ in range(300)])
    assert 0.2 < float((counts == 1).float().mean()) < 0.36  # 1 / (1 + 1/2 + … + 1/20) = 0.28
    assert int(counts.max()) > 12


def test_the_truth_starts_where_models_start(held_out_walks: Dataset) -> None:
    truth = truth_of(held_out_walks, Stretch(clip=3, start=20, stop=110))
    assert truth.smooth_xz[0].abs().max() < 1e-5
    assert float(heading_of(truth.motion.skeleton, forward_kinematics(truth.motion).p_world_joint[0])) == pytest.approx(0, abs=1e-5)
    away = truth.motion.root_position[:, [0, 2]] - truth.smooth_xz
    assert away.norm(dim=-1).max() < 0.1
    mirrored = truth_of(held_out_walks, Stretch(clip=3, start=20, stop=110, mirrored=True))
    assert mirrored.smooth_xz[0].abs().max() < 1e-5
    assert mirrored.motion.contacts is not None
    assert torch.equal(mirrored.motion.contacts, truth.motion.contacts[:, [2, 3, 0, 1]])  # type: ignore[index]


def test_stretches_of_a_split(held_out_walks: Dataset) -> None:
    rng = torch.Generator().manual_seed(0)
    assert {stretch.clip for stretch in captioned_stretches(held_out_walks, "test", (1.0, 10.0), rng)} == {2, 3, 4}
    assert {stretch.clip for stretch in captioned_stretches(held_out_walks, "test", (1.0, 3.7), rng)} == {2}
    chance = random_stretches(held_out_walks, "train", [30] * 20 + [1000], rng)
    assert {stretch.clip for stretch in chance} == {0, 1}
    assert [stretch.frames for stretch in chance] == [30] * 20 + [102]
    assert len({stretch.start for stretch in chance}) > 5


def test_cases_on_disk_can_be_drawn_again(held_out_walks: Dataset, tmp_path: Path) -> None:
    cases = make_cases(held_out_walks, FEW, 10.0)
    save_cases(cases, tmp_path, held_out_walks)
    rows = json.loads((tmp_path / "cases.json").read_text())
    assert [row["name"] for row in rows] == [case.name for case in cases]
    assert rows[0]["truth"]["clip"] in ("walk2", "walk3", "walk4")
    for case in cases[::7]:
        timeline = load_timeline(case_path(tmp_path, case), held_out_walks.skeleton)
        assert (timeline.prompts, timeline.seed, timeline.frames()) == (case.timeline.prompts, case.timeline.seed, case.frames)
        truth = case_truth(held_out_walks, case).motion if case.stretch else None
        if truth is not None:
            found = miss_metrics([misses(truth, timeline.constraints)])
            assert (found.fullbody or 0.0) < 0.01


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"suites": ()}, "there is nothing to evaluate"),
        ({"suites": ("text", "wings")}, "no suite or family 'wings'"),
        ({"split": "spare"}, "no split 'spare'"),
        ({"cases": 0}, "cases is 0; at least 1"),
        ({"text_cases": 1}, "text_cases is 1; at least 2"),
    ],
)
@pytest.mark.usefixtures("unchecked_shapes")
def test_settings_that_cannot_be(changes: dict[str, object], said: str) -> None:
    with pytest.raises(bunraku.BunrakuError, match=said):
        TrialSettings(**changes)  # type: ignore[arg-type]


def test_suites_and_families_by_name() -> None:
    assert TrialSettings(suites=("root",)).families == tuple(name for name in FAMILIES if name.startswith("root/"))
    chosen = TrialSettings(suites=("text", "feet/plan"))
    assert chosen.families == ("feet/plan",)
    assert [chosen.wants(suite) for suite in ("text", "constraints", "behaviours")] == [True, True, False]  # type: ignore[arg-type]
    assert TrialSettings().families == tuple(FAMILIES)


def test_a_dataset_without_the_split_is_refused(held_out_walks: Dataset) -> None:
    with pytest.raises(bunraku.BunrakuError, match=r"no clips in the split 'val' \(train 2, val 0, test 3\)"):
        make_cases(held_out_walks, TrialSettings(split="val"), 10.0)
    with pytest.raises(bunraku.BunrakuError, match="0 described stretches of 1 to 2 seconds"):
        make_cases(held_out_walks, TrialSettings(suites=("text",)), 2.0)
    assert make_cases(held_out_walks, TrialSettings(suites=("behaviours",), split="val", seeds=1), 10.0)  # needs no motion
