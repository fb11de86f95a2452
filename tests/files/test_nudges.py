"""The JSON that moves joints: what is in it, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunraku.errors import BadValue, FileProblem, FormatProblem
from bunraku.files.nudges import load_nudges


def test_places_are_read(tmp_path: Path) -> None:
    (tmp_path / "n.json").write_text('\ufeff{"knee": [0.1, 2, -3e-1], "hips": [0, 1, 0]}', encoding="utf-8")
    assert load_nudges(tmp_path / "n.json") == {"knee": (0.1, 2.0, -0.3), "hips": (0.0, 1.0, 0.0)}


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("{", FormatProblem, "is not JSON"),
        ("[1, 2]", FormatProblem, "holds a list, not joints"),
        ('{"Hips": [1, 2]}', BadValue, r"'Hips' is put at \[1, 2\]; a place is three finite numbers"),
        ('{"Hips": [1, 2, NaN]}', BadValue, "three finite numbers"),
        ('{"Hips": "up"}', BadValue, "three finite numbers"),
    ],
)
def test_bad_files(text: str, kind: type[Exception], message: str, tmp_path: Path) -> None:
    (tmp_path / "n.json").write_text(text)
    with pytest.raises(kind, match=message):
        load_nudges(tmp_path / "n.json")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match=r"missing\.json"):
        load_nudges(tmp_path / "missing.json")
