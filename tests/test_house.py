"""The house stands: imports go down only, the map names every file, and each thing the package offers is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import bunraku

ROOT = Path(__file__).resolve().parents[1]


def test_layers() -> None:
    done = subprocess.run([str(Path(sys.executable).with_name("lint-imports"))], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_everything_promised_can_be_imported() -> None:
    for name in bunraku.__all__:
        assert getattr(bunraku, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'generate_everything'"):
        bunraku.generate_everything  # noqa: B018


def test_the_map_is_true() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from write_map import the_map
    finally:
        sys.path.pop(0)
    text = (ROOT / "docs" / "map.md").read_text()
    assert text == the_map(), "run: python tools/write_map.py"
    source = ROOT / "src" / "bunraku"
    for path in source.rglob("*.py"):
        assert path.name == "__init__.py" or f"`{path.relative_to(source).as_posix()}`" in text, path


def test_constraints_pin_every_dependency() -> None:
    pinned = {re.split("==", line)[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    for line in re.findall(r'^  "([A-Za-z0-9-]+)[>=]', (ROOT / "pyproject.toml").read_text(), flags=re.M):
        assert line.lower() in pinned, line
