"""The report as table and JSON, limits and what breaks them, and the page that defines each metric."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from evaluate_figure import make_figure, move, ramp

from bunraku.errors import BadValue
from bunraku.evaluate.metric import metrics_of
from bunraku.evaluate.quality import check
from bunraku.evaluate.report import DEFAULT_LIMITS, GROUPS, METRIC_NAMES, parse_limits, report_rows
from bunraku.kinematics.motion import rest_motion

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def report():
    return check(move(rest_motion(make_figure(), 31), x=ramp(31, 0.07 / 30)))


def test_metric_names_are_unique_and_listed_in_order(report) -> None:
    names = [m.name for group in GROUPS for m in metrics_of(getattr(report, group))]
    assert tuple(names) == METRIC_NAMES == tuple(report.metrics())
    assert len(set(names)) == len(names)


def test_every_metric_is_defined_in_the_docs_with_its_unit(report) -> None:
    page = (DOCS / "metrics.md").read_text()
    for m in report.metrics().values():
        unit = "" if m.unit == "1" else m.unit
        assert f"| `{m.name}` | {unit} |".replace("|  |", "| |") in page, m.name


def test_default_limits_are_in_the_docs() -> None:
    page = (DOCS / "metrics.md").read_text()
    for limit in DEFAULT_LIMITS:
        assert f"`{limit}`" in page


def test_json_holds_every_metric_and_no_nan(report) -> None:
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert tuple(data["metrics"]) == METRIC_NAMES
    assert data["metrics"]["skate"] == pytest.approx(7)
    assert data["units"]["skate"] == "cm/s"
    assert data["contacts"] == "detected"


def test_rows_show_units_and_dashes(report) -> None:
    rows = {row[1]: row for row in report_rows(report)}
    assert rows["skate"][:4] == ("feet", "skate", "7", "cm/s")
    assert rows["frames"][2:4] == ("31", "")
    assert rows["hinge_violations"][2] == "–"
    assert all(isinstance(text, str) for row in rows.values() for text in row)


def test_failures_say_what_and_how_much(report) -> None:
    assert report.failures(parse_limits("skate>5,penetration_max>20")) == ["skate is 7 cm/s, above 5"]
    assert report.failures(parse_limits("skate>8")) == []
    assert report.failures(parse_limits("skate>6.999")) == ["skate is 7 cm/s, above 6.999"]
    assert report.failures(parse_limits("contact_share<=1, frames>=31")) == ["contact_share is 1, at most 1", "frames is 31, at least 31"]


def test_a_limit_that_is_broken_by_little_is_not_said_to_be_met() -> None:
    sunk = check(move(rest_motion(make_figure(), 30), y=-0.10002))
    assert sunk.failures(parse_limits("penetration_max>100")) == ["penetration_max is 100.02 mm, above 100"]


def test_a_metric_that_does_not_apply_breaks_no_limit(report) -> None:
    assert report.failures(parse_limits("hinge_violations>0")) == []


def test_a_standing_figure_keeps_the_default_limits(report) -> None:
    assert report.failures() == []
    assert check(move(rest_motion(make_figure(), 30), y=-0.15)).failures() == ["penetration_max is 150 mm, above 100"]


def test_limits_print_as_they_are_read() -> None:
    text = "skate>5,penetration_max>20.5,contact_consistency<0.9,pops>=1,phase<=0.4"
    assert ",".join(map(str, parse_limits(text))) == text
    assert list(map(str, parse_limits(" skate > 5 , pops>0 ,"))) == ["skate>5", "pops>0"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("skat>5", "did you mean 'skate'"),
        ("beauty>5", "The metrics are duration, frames"),
        ("skate", "not a limit"),
        ("skate=5", "not a limit"),
        ("skate>five", "not a limit"),
        ("skate>nan", "not a limit"),
        ("skate>inf", "not a limit"),
        ("", "no limit"),
        (" , ", "no limit"),
    ],
)
def test_limits_that_make_no_sense(text: str, message: str) -> None:
    with pytest.raises(BadValue, match=message):
        parse_limits(text)
