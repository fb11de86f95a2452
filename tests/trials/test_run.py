"""Evaluations from end to end on a tiny model: what is measured, what is kept, what goes on after a kill."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from small_trials import generator_of, judge_of, walker

import bunraku
from bunraku.datasets.store import Dataset
from bunraku.evaluate.report import Report
from bunraku.generator.features import FeatureLayout
from bunraku.generator.sample import Sampling
from bunraku.trials.cases import make_cases
from bunraku.trials.report import family_of, markdown, tables, write_report
from bunraku.trials.results import CHANCE, CLEANED, RAW, TRUTH
from bunraku.trials.run import Finished, evaluate
from bunraku.trials.settings import TrialSettings
from bunraku.trials.takes import Shelf, case_print, draw_missing, model_print

QUICK = Sampling(steps=2)
FEW = TrialSettings(suites=("text", "root/path_2dposrot", "fullbody/random", "behaviours"), text_cases=2, cases=1, seeds=1, sheets=2, behaviour_seconds=1.0)


@pytest.fixture(scope="module")
def report() -> Report:
    return bunraku.check(bunraku.walk(bunraku.skeleton("soma30"), seconds=1.0))


@pytest.fixture(autouse=True)
def _one_report_for_all(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes come with a plausibility report, which takes longer than drawing here and is not looked at."""
    monkeypatch.setattr("bunraku.generator.generate.check", lambda _: report)


@pytest.fixture(scope="module")
def finished(held_out_walks: Dataset, report: Report, tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, Path]:
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bunraku.generator.generate.check", lambda _: report)
        done = evaluate(generator_of(walker()), held_out_walks, folder, FEW, judge=judge_of(held_out_walks), sampling=QUICK)
    return done, folder


def test_groups_and_columns(finished: tuple[Finished, Path]) -> None:
    evaluation = finished[0].evaluation
    names = ["text", "constraints/withtext", "constraints/notext"]
    assert [group.name for group in evaluation.groups if group.overall] == names
    assert {group.name for group in evaluation.groups} == {*names, *(f"{f}/{k}" for f in FEW.families for k in ("withtext", "notext"))}
    assert {group.name: group.cases for group in evaluation.groups}["constraints/notext"] == 2
    for group in evaluation.groups:
        assert set(group.columns) == {TRUTH, CHANCE, RAW, CLEANED}


def test_the_truth_is_better_than_chance_and_a_walker_walks(finished: tuple[Finished, Path]) -> None:
    evaluation = finished[0].evaluation
    text, told = evaluation.group("text").columns, evaluation.group("constraints/withtext").columns
    assert text[TRUTH].text.fid == pytest.approx(0, abs=1e-6)
    assert all((text[kind].text.fid or 0) > 1e-3 for kind in (CHANCE, RAW))
    assert text[TRUTH].quality.contact_accuracy == pytest.approx(1, abs=0.02)
    assert (told[TRUTH].misses.fullbody or 0) < 0.01
    assert (told[TRUTH].misses.root or 0) < 1.0
    assert (told[RAW].misses.fullbody or 0) > 5  # it is deaf to constraints
    assert (told[CLEANED].misses.fullbody or 9) < 0.1  # [cm] clean-up is not
    assert (told[CLEANED].misses.heading or 9) < 0.5
    assert (told[CHANCE].misses.fullbody or 0) > 5
    scores = {score.name: score for score in evaluation.behaviours}
    assert scores["walk"].raw == scores["walk"].cleaned == 1.0
    assert scores["sit down"].raw == 0.0
    assert (scores["walk"].said, scores["walk"].said_passed) == (2, 1.0)


def test_nothing_is_drawn_twice(finished: tuple[Finished, Path], held_out_walks: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    done, folder = finished
    drawn: list[str] = []
    monkeypatch.setattr("bunraku.trials.takes._draw", lambda *_: pytest.fail("drawn again"))
    again = evaluate(generator_of(walker()), held_out_walks, folder, FEW, judge=judge_of(held_out_walks), sampling=QUICK)
    assert json.dumps(again.evaluation.to_dict()) == json.dumps(done.evaluation.to_dict())
    assert not drawn


def test_a_killed_evaluation_goes_on(held_out_walks: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator, settings = generator_of(walker()), replace(FEW, suites=("behaviours",), seeds=1)
    cases = make_cases(held_out_walks, settings, 10.0)
    shelf = Shelf(folder=tmp_path, model=model_print(generator), sampling=QUICK)
    told: list[float] = []

    def killed(share: float) -> None:
        told.append(share)
        if len(told) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        draw_missing(generator, cases, shelf, killed)
    assert told == [0.5]
    kept = shelf.path(cases[1])
    kept.write_bytes(kept.read_bytes()[:1000])  # the disk lost the end of a file
    assert draw_missing(generator, cases, shelf, told.append) == 5
    assert told[-1] == 1.0
    assert draw_missing(generator, cases, shelf) == 0
    take = shelf.find(cases[0], generator.skeleton, 30.0)
    assert take is not None
    assert len(take.raw) == len(take.cleaned) == 30


def test_a_take_belongs_to_its_model_and_case(held_out_walks: Dataset) -> None:
    first, other = generator_of(), generator_of(walker())
    prints = {model_print(first), model_print(other), model_print(generator_of())}
    assert len(prints) == 2
    cases = make_cases(held_out_walks, FEW, 10.0)
    assert len({case_print(case) for case in cases}) == len(cases)
    case = cases[-1]
    keys = {Shelf(folder=Path(), model=model, sampling=sampling).key(case) for model in ("a", "b") for sampling in (QUICK, Sampling(steps=3))}
    assert len(keys) == 4


def test_the_report_says_it_all(finished: tuple[Finished, Path], tmp_path: Path) -> None:
    done, _ = finished
    told: list[float] = []
    write_report(done.evaluation, tmp_path, done.pictures, told.append)
    assert told == [0.5, 1.0]
    data = json.loads((tmp_path / "report.json").read_text())
    assert data["units"]["fullbody"] == "cm"
    by_name = {group["name"]: group["columns"] for group in data["groups"]}
    assert by_name["constraints/withtext"][RAW]["fullbody"] == done.evaluation.group("constraints/withtext").columns[RAW].misses.fullbody
    assert len(data["behaviours"]) == 8
    text = (tmp_path / "report.md").read_text()
    for words in ("# How good is tiny?", "## Text (2 cases)", "| fullbody |", "A person sits down.", "Made from formulas.", "root/path_2dposrot"):
        assert words in text, words
    for name in (line.split("(")[1].rstrip(")") for line in text.splitlines() if line.startswith("![")):
        assert (tmp_path / name).is_file(), name
    plots = list(tmp_path.glob("*.svg"))
    assert {plot.stem for plot in plots} == {"retrieval-text", "constraints", "skate", "behaviours"}
    for plot in plots:
        assert ElementTree.fromstring(plot.read_text()).tag.endswith("svg")
    assert len(list((tmp_path / "sheets").glob("*.png"))) == 2


def test_tables_have_a_row_for_every_number(finished: tuple[Finished, Path]) -> None:
    made = tables(finished[0].evaluation)
    for _, heads, rows in made:
        assert rows
        assert all(len(row) == len(heads) for row in rows)
    families = next(rows for title, _, rows in made if title.startswith("constraints, family"))
    assert {row[0] for row in families} == set(FEW.families)
    assert family_of("root/path_2dpos/notext") == ("root/path_2dpos", "without text")
    assert family_of("content/constraints_withtext/root/path_2dpos") == ("content/root/path_2dpos", "with text")


def test_without_a_judge_the_rest_is_measured(held_out_walks: Dataset, tmp_path: Path) -> None:
    settings = replace(FEW, suites=("text",), text_cases=2)
    evaluation = evaluate(generator_of(walker()), held_out_walks, tmp_path, settings, sampling=QUICK).evaluation
    assert evaluation.group("text").columns[RAW].text.r3 is None
    assert evaluation.group("text").columns[RAW].quality.skate is not None
    assert "no retriever" in evaluation.notes["retrieval"]
    assert "| r3 |" not in markdown(evaluation)
    assert not evaluation.behaviours


def test_a_model_of_another_skeleton_is_refused(held_out_walks: Dataset, tmp_path: Path) -> None:
    with pytest.raises(bunraku.BunrakuError, match=r"moves 'g1' at 30 fps, the data holds 'soma30' at 30 fps"):
        evaluate(generator_of(name="g1"), held_out_walks, tmp_path / "new", FEW)
    assert not (tmp_path / "new").exists()


def test_a_report_folder_that_is_a_file_is_refused(held_out_walks: Dataset, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(bunraku.BunrakuError, match="cannot be used"):
        evaluate(generator_of(), held_out_walks, tmp_path / "taken", FEW)


def test_a_judge_of_another_skeleton_is_refused(held_out_walks: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = judge_of(held_out_walks)
    monkeypatch.setattr(judge.retriever, "layout", FeatureLayout(skeleton=bunraku.skeleton("smplx22")))
    with pytest.raises(bunraku.BunrakuError, match=r"judges motion on 'smplx22' at 30 fps, not on 'soma30'"):
        evaluate(generator_of(), held_out_walks, tmp_path / "new", FEW, judge=judge)
    assert not (tmp_path / "new").exists()
    with pytest.raises(bunraku.BunrakuError, match="judges motion on 'soma30' at 30 fps, not on 'g1'"):
        judge_of(held_out_walks).motion(bunraku.walk(bunraku.skeleton("g1"), seconds=1.0))


def test_a_judge_hears_what_fits(held_out_walks: Dataset) -> None:
    judge = judge_of(held_out_walks)
    motions = torch.stack([judge.motion(held_out_walks.motion(number)) for number in range(5)])
    texts = ["one", "two", "three", "four", "four"]
    found = judge.text_metrics(texts, motions, motions)
    assert found.fid == pytest.approx(0, abs=1e-6)
    assert found.r5 == 100
    assert -1 <= (found.similarity or 0) <= 1
    assert judge.text_metrics(texts, motions, None).fid is None
