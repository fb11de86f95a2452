"""Joints moved by hand, in a small JSON: joint → [x, y, z], in the numbers of the mesh's own file."""

from __future__ import annotations

import json
import os

from bunraku.errors import FormatProblem
from bunraku.files.disk import existing_file, read_text
from bunraku.rig.fit.nudge import Place, place_of

_SUCH_AS = '{"left_knee": [0.1, 0.5, 0.02]}'


def load_nudges(path: str | os.PathLike[str]) -> dict[str, Place]:
    """The places in a JSON file of joint → [x, y, z]."""
    try:
        data = json.loads(read_text(existing_file(path)))
    except ValueError as problem:
        raise FormatProblem(f"'{path}' is not JSON ({problem}); it should look like {_SUCH_AS}.") from problem
    if not isinstance(data, dict):
        raise FormatProblem(f"'{path}' holds a {type(data).__name__}, not joints; it should look like {_SUCH_AS}.")
    return {name: place_of(name, value) for name, value in data.items()}
