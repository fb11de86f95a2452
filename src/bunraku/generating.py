"""The doors to the generator: words in, takes out. `bunraku.api` offers them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypedDict, Unpack

from bunraku.errors import BadValue
from bunraku.files import formats
from bunraku.files.disk import require_writable
from bunraku.generator.checkpoint import WEIGHTS
from bunraku.generator.generate import Job, Options, generate_jobs, sampling_of
from bunraku.generator.models import find_model
from bunraku.generator.pieces import Stitching
from bunraku.generator.ready import Generator, open_generator
from bunraku.generator.sample import Sampling
from bunraku.generator.surroundings import result_body
from bunraku.generator.take import Take
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.rig.character import Character
from bunraku.timeline import Constraint, Prompt, Timeline, parse_prompt
from bunraku.timeline.document import ReleasedConstraints
from bunraku.timeline.prompt import DEFAULT_SECONDS, check_count

PathLike = str | os.PathLike[str]
ModelLike = Generator | PathLike | None  # one that is open, a name or folder, or the default
Prompts = str | Prompt | Sequence[Prompt | str] | Timeline
_PICKY = (".csv", ".amass.npz", ".usd", ".usda", ".usdc")  # formats that not every skeleton, or not every machine, can write


class Asking(TypedDict, total=False):
    """What can be asked for beside prompts. In place of it a Timeline can say it all."""

    seconds: float  # of prompts that do not say how long they last
    constraints: Sequence[Constraint]  # added to those of a Timeline
    heading: float | None  # [rad] which way the body faces in the first frame
    seed: int  # of sample 0; sample i has seed + i
    samples: int
    loop: bool


def generate(
    prompt: Prompts,
    *,
    model: ModelLike = None,
    continue_from: Motion | None = None,
    sampling: Sampling | None = None,
    cleanup: bool = True,
    stitching: Stitching | None = None,
    on_progress: Callable[[float], None] | None = None,
    **asking: Unpack[Asking],
) -> list[Take]:
    """Takes of a prompt, of prompts one after the other ("waves.@3" lasts 3 s), or of a Timeline; one for each sample.

    `bunraku.generate("A person walks.", model="folder", seconds=4, samples=2)[0].motion`. With `continue_from` the takes begin
    with that motion and constraints count from its end. A model that is used again is best opened once, with `load_model`.
    """
    job = Job(timeline=timeline_of(prompt, **asking), existing=continue_from)
    return _generate([job], model, sampling, cleanup, stitching, on_progress)[0]


def generate_many(
    prompts: Sequence[Prompts],
    *,
    model: ModelLike = None,
    sampling: Sampling | None = None,
    cleanup: bool = True,
    stitching: Stitching | None = None,
    on_progress: Callable[[float], None] | None = None,
    **asking: Unpack[Asking],
) -> list[list[Take]]:
    """Each entry by itself, as `generate` would make it, but all drawn together: much faster on a GPU."""
    if isinstance(prompts, str):
        raise BadValue("generate_many takes a list of prompts; for one, call generate.")
    jobs = [Job(timeline=timeline_of(prompt, **asking)) for prompt in prompts]
    if sampling is None and len({sampling_of(job.timeline) for job in jobs}) > 1:
        raise BadValue("these timelines ask for different steps or guidance; draw them one by one, or say for all: sampling=Sampling(…).")
    return _generate(jobs, model, sampling, cleanup, stitching, on_progress) if jobs else []


def regenerate(
    motion: Motion,
    frames: range,
    prompt: Prompts = "",
    *,
    model: ModelLike = None,
    sampling: Sampling | None = None,
    cleanup: bool = True,
    stitching: Stitching | None = None,
    on_progress: Callable[[float], None] | None = None,
    **asking: Unpack[Asking],
) -> list[Take]:
    """The motion with those frames drawn anew and the rest kept as it is.

    A prompt that does not say how long it lasts fills the range. Constraints count from the range's first frame.
    """
    if not isinstance(prompt, Timeline) and "seconds" not in asking:
        asking["seconds"] = max(len(frames), 1) / motion.fps / (1 if isinstance(prompt, str | Prompt) else max(len(prompt), 1))
    job = Job(timeline=timeline_of(prompt, **asking), existing=motion, replaced=frames)
    return _generate([job], model, sampling, cleanup, stitching, on_progress)[0]


def load_model(model: PathLike | None = None, *, text_encoder: str | None = None, device: str = "auto", precision: str = "auto") -> Generator:
    """A model ready to draw: its name, or a folder with a checkpoint (ours, or as Kimodo's are released).

    `device` is cpu, cuda, cuda:1 …, `precision` float32, bfloat16 or float16; `text_encoder` replaces the one the model was trained with.
    """
    return open_generator(model, text_encoder=text_encoder, device=device, precision=precision)  # type: ignore[arg-type]


def timeline_of(prompt: Prompts, **asking: Unpack[Asking]) -> Timeline:
    """All that is asked for as one value."""
    told = {name: value for name, value in asking.items() if value is not None and name not in ("seconds", "constraints")}
    given = asking.get("constraints", ())
    constraints = tuple(given)
    if isinstance(given, ReleasedConstraints):
        told["first_wins"] = True
    if isinstance(prompt, Timeline):
        if "seconds" in asking:
            raise BadValue("a Timeline's prompts say themselves how long they last; leave seconds out.")
        return replace(prompt, constraints=(*prompt.constraints, *constraints), **told)
    seconds = asking.get("seconds", DEFAULT_SECONDS)
    rows = [prompt] if isinstance(prompt, str | Prompt) else list(prompt)
    check_count(len(rows))
    prompts = tuple(parse_prompt(row, seconds) if isinstance(row, str) else row for row in rows)
    if not prompts:
        raise BadValue('there is no prompt; say what should happen, such as "A person walks forward." (an empty text lets the model choose).')
    return Timeline(prompts=prompts, constraints=constraints, **told)  # type: ignore[arg-type]


def output_paths(path: PathLike, takes: int) -> list[Path]:
    """The files that so many takes go to: the path itself, or `walk_00.npz`, `walk_01.npz` …; raises if one cannot be written."""
    suffix = formats.suffix_of(path, "saves", "motion")
    name = os.fspath(path)
    stem, ending = name[: len(name) - len(suffix)], name[len(name) - len(suffix) :]
    paths = [Path(name)] if takes == 1 else [Path(f"{stem}_{number:02d}{ending}") for number in range(takes)]
    for target in paths:
        require_writable(target)
    return paths


def require_format(path: PathLike, body: Skeleton | Character | Generator) -> None:
    """Raises if a motion on that body, or of that model, cannot be written to such a file: tried with a short one."""
    suffix = formats.suffix_of(path, "saves", "motion")
    if suffix not in _PICKY:
        return
    skeleton = result_body(body.skeleton) if isinstance(body, Generator) else body.skeleton if isinstance(body, Character) else body
    with tempfile.TemporaryDirectory() as folder:
        formats.save_motion(rest_motion(skeleton, frames=2), Path(folder) / f"rehearsal{suffix}")


def _generate(
    jobs: Sequence[Job],
    model: ModelLike,
    sampling: Sampling | None,
    cleanup: bool,
    stitching: Stitching | None,
    on_progress: Callable[[float], None] | None,
) -> list[list[Take]]:
    generator = model if isinstance(model, Generator) else _opened(model)
    options = Options(cleanup=cleanup, stitching=stitching or Stitching())
    return generate_jobs(generator, jobs, sampling=sampling or sampling_of(jobs[0].timeline), options=options, on_progress=on_progress)


def _opened(model: PathLike | None) -> Generator:
    folder = find_model(model)
    weights = folder / WEIGHTS
    return _kept(folder.resolve(), weights.stat().st_mtime_ns if weights.is_file() else 0)


@lru_cache(maxsize=1)
def _kept(folder: Path, changed: int) -> Generator:
    """The model used last, until its file changes: scripts that name it in every call do not read it every time."""
    return open_generator(folder)
