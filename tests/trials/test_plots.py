"""Plots as SVG: bars as long as their numbers, curves through their points, words escaped."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from bunraku.trials.plots import bars, curves

SVG = "{http://www.w3.org/2000/svg}"


def test_bars_are_as_long_as_their_numbers() -> None:
    made = ElementTree.fromstring(bars("errors", "cm", {"a": {"x": 2.0, "y": 4.0}, "b": {"x": None, "y": 8.0}}))
    widths = [float(r.get("width", "")) for r in made.iter(f"{SVG}rect") if r.get("height") == "13"]
    assert widths == pytest.approx([105, 210, 420])
    assert "8 cm" in {text.text for text in made.iter(f"{SVG}text")}


def test_an_axis_that_is_given_is_kept() -> None:
    made = ElementTree.fromstring(bars("shares", "%", {"a": {"x": 150.0}}, most=100.0))
    assert [float(r.get("width", "")) for r in made.iter(f"{SVG}rect") if r.get("height") == "13"] == [420]


def test_curves_pass_through_their_points() -> None:
    made = ElementTree.fromstring(curves("found", " %", ["1", "2", "3"], {"a": [0, 50, 100], "b": [100, None, 0]}, 100.0))
    lines = [line.get("points", "").split() for line in made.iter(f"{SVG}polyline")]
    assert lines[0] == ["50.0,285.0", "275.0,172.5", "500.0,60.0"]
    assert lines[1] == ["50.0,60.0", "500.0,285.0"]


def test_words_are_escaped_and_nothing_is_no_error() -> None:
    made = ElementTree.fromstring(bars("<a> & b", "cm", {"x < y": {"z & w": 1.0}}))
    assert {"<a> & b", "x < y", "z & w"} <= {text.text for text in made.iter(f"{SVG}text")}
    ElementTree.fromstring(bars("empty", "cm", {}))
    ElementTree.fromstring(bars("zero", "cm", {"a": {"x": 0.0}}))
