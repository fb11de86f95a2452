"""Documents on disk: constraints in Kimodo's JSON."""

from __future__ import annotations

import os

from bunraku.errors import FormatProblem
from bunraku.kinematics.skeleton import Skeleton
from bunraku.timeline import kimodo_json
from bunraku.timeline.constraints import Constraint
from bunraku.timeline.fields import kind_of, object_at, read_json


def load_constraints(path: str | os.PathLike[str], skeleton: Skeleton) -> list[Constraint]:
    """The constraints in a file, their poses on `skeleton`."""
    value = read_json(path)
    if not isinstance(value, list):
        raise FormatProblem(f"'{path}' holds {kind_of(value)}; an array of constraints is needed.")
    return [_constraint(item, f"'{path}': constraints[{number}]", skeleton) for number, item in enumerate(value)]


def _constraint(value: object, where: str, skeleton: Skeleton) -> Constraint:
    entry = object_at(value, where)
    kind = entry.text("type", f"one of {', '.join(kimodo_json.TYPES)}")
    if kind not in kimodo_json.TYPES:
        entry.fail(f"has the unknown type '{kind[:40]}'; one of {', '.join(kimodo_json.TYPES)} is needed.")
    return kimodo_json.read_entry(object_at(value, f"{where} ({kind})"), kind, skeleton)
