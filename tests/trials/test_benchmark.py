"""NVIDIA's released folder layout, made up here: found, drawn, measured, and said plainly what is missing."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_trials import generator_of, walker

import bunraku
from bunraku.evaluate.report import Report
from bunraku.generator.sample import Sampling
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.walk import walk
from bunraku.timeline import PoseKey, RootPath
from bunraku.timeline.document import save_constraints
from bunraku.trials.benchmark import evaluate_benchmark, find_cases
from bunraku.trials.results import CLEANED, RAW, TRUTH
from bunraku.trials.settings import TrialSettings

BODY = bunraku.skeleton("soma77")
ALL = TrialSettings(suites=("text", "constraints"), cases=2, text_cases=None)


def case_in(folder: Path, text: str, truth: Motion | None = None, constraints: list | None = None) -> None:  # type: ignore[type-arg]
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text(json.dumps({"text": text, "duration": 1.0, "seed": 7, "num_samples": 1, "diffusion_steps": 100}))
    (folder / "seed_motion.json").write_text(json.dumps({"bvh_path": "BVH/x.bvh", "crop_start_frame_index": 0, "crop_end_frame_index": 30}))
    if truth is not None:
        bunraku.save_motion(truth, folder / "gt_motion.npz")
    if constraints is not None:
        save_constraints(constraints, folder / "constraints.json", form="kimodo")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    root = tmp_path / "testsuite"
    truth = walk(BODY, seconds=1.0)
    frames = torch.tensor([5, 20])
    key = replace(truth, root_position=truth.root_position[frames], quats=truth.quats[frames], contacts=None)
    path = RootPath(frames=frames, xz=truth.root_position[frames][:, [0, 2]])
    for number in range(3):
        case_in(root / "content" / "text2motion" / "overview" / f"{number:04d}", f"A person walks {number}.", truth)
        case_in(root / "content" / "constraints_notext" / "root" / "waypoint_2dpos" / f"{number:04d}", "", truth, [path])
    case_in(root / "repetition" / "constraints_withtext" / "fullbody" / "random" / "0000", "A person walks.", truth, [PoseKey(frames=frames, poses=key)])
    return root


@pytest.fixture(autouse=True)
def _one_report_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    report: Report = bunraku.check(bunraku.walk(bunraku.skeleton("soma30"), seconds=0.5))
    monkeypatch.setattr("bunraku.generator.generate.check", lambda _: report)


def names(folder: Path, settings: TrialSettings = ALL) -> list[str]:
    return [case.name for case, _ in find_cases(folder, bunraku.skeleton("soma30"), settings)]


def test_cases_are_found_by_their_place(suite: Path) -> None:
    assert names(suite) == [
        "content/constraints_notext/root/waypoint_2dpos/0000",
        "content/constraints_notext/root/waypoint_2dpos/0001",
        "content/text2motion/overview/0000",
        "content/text2motion/overview/0001",
        "content/text2motion/overview/0002",
        "repetition/constraints_withtext/fullbody/random/0000",
    ]
    assert names(suite / "content" / "text2motion") == [f"content/text2motion/overview/000{i}" for i in range(3)]
    assert names(suite, replace(ALL, suites=("fullbody",))) == ["repetition/constraints_withtext/fullbody/random/0000"]
    assert len(names(suite, replace(ALL, suites=("text",), text_cases=2))) == 2
    case, _ = find_cases(suite, bunraku.skeleton("soma30"), ALL)[-1]
    assert (case.timeline.seed, case.timeline.samples, case.frames, case.text) == (7, None, 30, "A person walks.")
    assert case.groups == ("repetition/constraints_withtext", "repetition/constraints_withtext/fullbody/random")


def test_the_released_cases_are_drawn_and_measured(suite: Path, tmp_path: Path) -> None:
    done = evaluate_benchmark(generator_of(walker()), suite, tmp_path / "report", ALL, sampling=Sampling(steps=1))
    evaluation = done.evaluation
    assert [group.name for group in evaluation.groups if group.overall] == [
        "content/constraints_notext",
        "content/text2motion/overview",
        "repetition/constraints_withtext",
    ]
    keyed = evaluation.group("repetition/constraints_withtext/fullbody/random").columns
    assert set(keyed) == {TRUTH, RAW, CLEANED}
    assert (keyed[TRUTH].misses.fullbody or 0) < 0.01
    assert (keyed[CLEANED].misses.fullbody or 9) < 0.1
    assert (evaluation.group("content/constraints_notext").columns[TRUTH].misses.pelvis or 0) < 0.01
    assert "ground truth" not in evaluation.notes


def test_what_needs_the_motions_is_said(suite: Path, tmp_path: Path) -> None:
    for truth in suite.rglob("gt_motion.npz"):
        truth.unlink()
    done = evaluate_benchmark(generator_of(walker()), suite, tmp_path / "report", replace(ALL, suites=("text",)), sampling=Sampling(steps=1))
    assert set(done.evaluation.group("content/text2motion/overview").columns) == {RAW, CLEANED}
    assert "3 of 3 cases have no gt_motion.npz" in done.evaluation.notes["ground truth"]
    assert "BONES-SEED" in done.evaluation.notes["ground truth"]
    leaf = suite / "repetition" / "constraints_withtext" / "fullbody" / "random" / "0000"
    (leaf / "constraints.json").rename(leaf / "seed_constraints.json")
    with pytest.raises(bunraku.BunrakuError, match=r"no constraints.json \(only seed_constraints.json, .*create_benchmark.py .* --suite text"):
        names(suite)


def test_folders_that_are_no_benchmark(suite: Path, tmp_path: Path) -> None:
    with pytest.raises(bunraku.BunrakuError, match="there is no folder"):
        names(tmp_path / "nothing")
    with pytest.raises(bunraku.BunrakuError, match="holds no released test cases of the kinds asked for"):
        names(suite, replace(ALL, suites=("behaviours",)))
    shutil.rmtree(suite / "content")
    with pytest.raises(bunraku.BunrakuError, match="holds no released test cases"):
        names(suite, replace(ALL, suites=("text",)))


def test_a_model_of_another_body_is_refused(suite: Path, tmp_path: Path) -> None:
    with pytest.raises(bunraku.BunrakuError, match="moves 'g1'"):
        evaluate_benchmark(generator_of(name="g1"), suite, tmp_path / "report", ALL)
