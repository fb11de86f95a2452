"""Documents on disk: a whole timeline, or constraints alone, in our JSON or in Kimodo's, told apart by what they hold.

Ours is an object with the key `bunraku_timeline` (the version, 1):

    {"bunraku_timeline": 1, "fps": 30, "prompts": [{"text": "A person walks.", "seconds": 4}], "constraints": [ … ],
     "heading_degrees": 0, "seed": 0, "loop": false, "samples": 1, "steps": 25, "guidance": {"text": 2, "constraint": 2},
     "first_wins": false}

All but the version may be left out. Constraints that disagree are refused, unless `first_wins`: then the first in the list counts.
Kimodo's are an array of constraints (`constraints.json`) and an object with `text` or `texts` (`meta.json`), which lie side by side
in a folder. In either place a constraint is read by its `type`: the names that Kimodo knows are in `kimodo_json.py`, ours in
`our_json.py`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NoReturn

from bunraku.errors import BadValue, BunrakuError, FileProblem, FormatProblem
from bunraku.files.disk import write_text
from bunraku.kinematics.skeleton import Skeleton
from bunraku.timeline import kimodo_json, our_json
from bunraku.timeline.constraints import Constraint
from bunraku.timeline.edit import retime_constraints
from bunraku.timeline.fields import Entry, kind_of, object_at, read_json
from bunraku.timeline.prompt import Prompt, check_count
from bunraku.timeline.timeline import FPS, Timeline

KEY = "bunraku_timeline"
VERSION = 1
MOST_CONSTRAINTS = 100_000
_KEYS = (KEY, "fps", "prompts", "constraints", "first_wins", "heading_degrees", "seed", "loop", "samples", "steps", "guidance")
_TYPES = (*our_json.TYPES, *kimodo_json.TYPES)


class ReleasedConstraints(list[Constraint]):
    """Constraints in the order of a file in Kimodo's format: where two disagree the first counts, as the release has it."""


# --- reading ----------------------------------------------------------------------------------------------------------


def load_constraints(path: str | os.PathLike[str], skeleton: Skeleton, *, fps: float = FPS) -> list[Constraint]:
    """The constraints in a file of either format, their poses on `skeleton`, their frames counted by `fps`."""
    value = read_json(path)
    if isinstance(value, list):
        released = _constraints(value, f"'{path}': constraints", skeleton, kimodo_json.FPS)
        return ReleasedConstraints(retime_constraints(released, kimodo_json.FPS, fps))
    document = object_at(value, f"'{path}'")
    if KEY not in document.data:
        _refuse_object(document, 'constraints are an array, or the object {"bunraku_timeline": 1, "constraints": […]}')
    return list(_timeline(document, str(path), skeleton).at(fps).constraints)


def load_timeline(path: str | os.PathLike[str], skeleton: Skeleton) -> Timeline:
    """A timeline in our JSON; Kimodo's `meta.json`; or a folder with that and perhaps `constraints.json` beside it."""
    path = Path(path)
    if path.is_dir():
        if not (path / "meta.json").exists():
            raise FileProblem(f"the folder '{path}' has no 'meta.json'; name a timeline's JSON, or a folder as Kimodo saves it.")
        return _meta(path / "meta.json", _read_object(path / "meta.json"), _beside(path, skeleton))
    document = _read_object(path)
    if KEY in document.data:
        return _timeline(document, str(path), skeleton)
    if "text" not in document.data and "texts" not in document.data:
        _refuse_object(document, 'a timeline is an object with the key "bunraku_timeline", or Kimodo\'s with "text" or "texts"')
    return _meta(path, document, ())


def _read_object(path: Path) -> Entry:
    value = read_json(path)
    if isinstance(value, list):
        raise FormatProblem(f"'{path}' holds an array, as files of constraints do; a timeline is an object with prompts.")
    return object_at(value, f"'{path}'")


def _refuse_object(document: Entry, meaning: str) -> NoReturn:
    keys = ", ".join(f"'{key[:40]}'" for key in list(document.data)[:8]) or "no keys"
    hint = "; its prompts are read by load_timeline" if "text" in document.data or "texts" in document.data else ""
    raise FormatProblem(f"{document.where} is an object with {keys}{hint}; {meaning}.")


def _beside(folder: Path, skeleton: Skeleton) -> tuple[Constraint, ...]:
    return tuple(load_constraints(folder / "constraints.json", skeleton)) if (folder / "constraints.json").exists() else ()


def _constraints(values: list[object], where: str, skeleton: Skeleton, fps: float) -> list[Constraint]:
    if len(values) > MOST_CONSTRAINTS:
        raise FormatProblem(f"{where} are {len(values):,}; at most {MOST_CONSTRAINTS:,} are read. Join those of one kind into one with several frames.")
    return [_constraint(value, f"{where}[{number}]", skeleton, fps) for number, value in enumerate(values)]


def _constraint(value: object, where: str, skeleton: Skeleton, fps: float) -> Constraint:
    entry = object_at(value, where)
    kind = entry.text("type", f"one of {', '.join(_TYPES)}")
    if kind not in _TYPES:
        entry.fail(f"has the unknown type '{kind[:40]}'; one of {', '.join(_TYPES)} is needed.")
    entry = object_at(value, f"{where} ({kind})")
    return kimodo_json.read_entry(entry, kind, skeleton) if kind in kimodo_json.TYPES else our_json.read_entry(entry, kind, skeleton, fps)


def _timeline(document: Entry, path: str, skeleton: Skeleton) -> Timeline:
    document.only(_KEYS)
    version = document.whole(KEY, "the version of the format, 1")
    if version != VERSION:
        document.fail(f"is a timeline of version {version}; this program reads version {VERSION}. Update bunraku.")
    fps = document.number("fps", "a number of frames per second") if document.has("fps") else FPS
    if not 0 < fps <= 1000:
        document.fail(f"counts {fps:g} frames per second; more than 0 and at most 1000 are possible.")
    heading = math.radians(document.number("heading_degrees", "a number of degrees")) if document.has("heading_degrees") else None
    guidance = object_at(document.data["guidance"], f"'{path}': guidance") if document.has("guidance") else Entry(where="", data={})
    guidance.only(("enabled", "text", "constraint"))
    prompts = _prompts(document, path)
    constraints = _constraints(_list(document, "constraints"), f"'{path}': constraints", skeleton, fps)
    loop, first_wins = (document.flag(key, "true or false") if document.has(key) else False for key in ("loop", "first_wins"))
    settings = {name: _whole(document, name) for name in ("seed", "samples", "steps")} | _guidance(guidance, "text", "constraint")
    with _inside(document.where):
        return Timeline(prompts=prompts, constraints=tuple(constraints), fps=fps, heading=heading, loop=loop, first_wins=first_wins, **settings)  # type: ignore[arg-type]


def _prompts(document: Entry, path: str) -> tuple[Prompt, ...]:
    values = _list(document, "prompts")
    with _inside(f"'{path}'"):
        check_count(len(values))
    prompts = []
    for number, value in enumerate(values):
        entry = object_at(value, f"'{path}': prompts[{number}]")
        entry.only(("text", "seconds"))
        text, seconds = entry.text("text", "the words"), entry.number("seconds", "a number of seconds")
        with _inside(entry.where):
            prompts.append(Prompt(text=text, seconds=seconds))
    return tuple(prompts)


def _meta(path: Path, document: Entry, constraints: tuple[Constraint, ...]) -> Timeline:
    """Kimodo's own description of a clip. Keys that we do not know are passed over, as it does."""
    if document.has("texts"):
        texts = document.texts("texts", "an array of prompts")
        with _inside(document.where):
            check_count(len(texts))
        seconds = document.array("durations", (len(texts),), "seconds of each entry of 'texts'").tolist() if texts else []
    else:
        texts, seconds = [document.text("text", "the prompt")], [document.number("duration", "a number of seconds")]
    cfg = object_at(document.data["cfg"], f"'{path}': cfg") if document.has("cfg") else Entry(where="", data={})
    settings = {name: _whole(document, key) for name, key in (("seed", "seed"), ("samples", "num_samples"), ("steps", "diffusion_steps"))}
    weights = _guidance(cfg, "text_weight", "constraint_weight")
    with _inside(document.where):
        prompts = tuple(Prompt(text=text, seconds=duration) for text, duration in zip(texts, seconds, strict=True))
        return Timeline(prompts=prompts, constraints=constraints, fps=kimodo_json.FPS, first_wins=True, **settings, **weights)  # type: ignore[arg-type]


def _guidance(entry: Entry, text: str, constraint: str) -> dict[str, object]:
    return {
        "guided": entry.flag("enabled", "true or false") if entry.has("enabled") else True,
        "guidance_text": entry.number(text, "a weight") if entry.has(text) else None,
        "guidance_constraint": entry.number(constraint, "a weight") if entry.has(constraint) else None,
    }


@contextmanager
def _inside(where: str) -> Iterator[None]:
    """Complaints about values, with the place in the file they came from."""
    try:
        yield
    except BunrakuError as error:
        raise FormatProblem(f"{where}: {error}") from error


def _list(document: Entry, key: str) -> list[object]:
    value = document.data.get(key)
    if value is not None and not isinstance(value, list):
        document.fail(f"has {kind_of(value)} as '{key}'; an array is needed.")
    return value or []


def _whole(document: Entry, key: str) -> int | None:
    return document.whole(key, "a whole number, not negative", 2**63 - 1) if document.has(key) else None


# --- writing ----------------------------------------------------------------------------------------------------------


def save_timeline(timeline: Timeline, path: str | os.PathLike[str]) -> None:
    """Our JSON; what is None is left out."""
    data: dict[str, object] = {KEY: VERSION, "fps": timeline.fps}
    data["prompts"] = [{"text": prompt.text, "seconds": prompt.seconds} for prompt in timeline.prompts]
    data["heading_degrees"] = None if timeline.heading is None else round(math.degrees(timeline.heading), 12)
    data |= {"seed": timeline.seed, "loop": timeline.loop, "samples": timeline.samples, "steps": timeline.steps}
    guidance = {"enabled": timeline.guided, "text": timeline.guidance_text, "constraint": timeline.guidance_constraint}
    data["guidance"] = {key: value for key, value in guidance.items() if value is not None}
    data["first_wins"] = timeline.first_wins or None
    data["constraints"] = [our_json.to_json(constraint) for constraint in timeline.constraints]
    _write(path, {key: value for key, value in data.items() if value is not None})


def save_constraints(
    constraints: Sequence[Constraint], path: str | os.PathLike[str], *, form: Literal["bunraku", "kimodo"] = "bunraku", fps: float = FPS
) -> None:
    """Constraints alone. Our format holds them all; Kimodo's, which counts 30 frames to the second, holds root paths and poses."""
    if form == "kimodo":
        _write(path, kimodo_json.to_json(retime_constraints(constraints, fps, kimodo_json.FPS)))
    elif form == "bunraku":
        _write(path, {KEY: VERSION, "fps": float(fps), "constraints": [our_json.to_json(constraint) for constraint in constraints]})
    else:
        raise BadValue(f"there is no format '{form}' for constraints; choose 'bunraku' or 'kimodo'.")


def _write(path: str | os.PathLike[str], data: object) -> None:
    try:
        text = _layout(data)
    except ValueError as error:  # json's word for NaN and infinity
        raise BadValue(f"'{path}' is not written: a constraint holds a number that is not finite. See check_constraints.") from error
    write_text(path, text + "\n")


def _layout(value: object, indent: str = "") -> str:
    """JSON with a line for each entry of an object, and numbers side by side however deep their arrays."""
    deeper = indent + "  "
    if isinstance(value, dict) and value:
        rows = [f"{json.dumps(key)}: {_layout(item, deeper)}" for key, item in value.items()]
        return "{\n" + ",\n".join(deeper + row for row in rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return "[\n" + ",\n".join(deeper + _layout(item, deeper) for item in value) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
