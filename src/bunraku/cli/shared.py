"""What several commands share: how inputs are read, progress on long work, and what was written."""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bunraku.errors import BadValue

if TYPE_CHECKING:
    from bunraku.kinematics.motion import Motion


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """How a motion file is to be read: the options that every command with an input has."""
    parser.add_argument("--clip", metavar="NAME", help="which animation, where the input has several: a name or a number")
    parser.add_argument("--input-fps", type=float, metavar="N", help="frames per second of the input, where it states none or a wrong one")
    parser.add_argument("--unit", type=float, metavar="M", help="length of a .bvh's unit in metres (0.01: centimetres), where the guess is wrong")
    parser.add_argument("--roles", metavar="FILE", help="a small JSON that says which joint is the hips, left_foot … of the input")
    parser.add_argument("--robot", metavar="FILE", help="the MJCF or URDF whose joints a .csv moves (default: the G1)")


def reading(args: argparse.Namespace) -> dict[str, Any]:
    """Those options as keywords for `bunraku.api`."""
    return {"clip": args.clip, "fps": args.input_fps, "unit": args.unit, "roles": args.roles, "robot": args.robot}


def let_threads_sleep() -> None:
    """Has OpenMP's threads sleep while they wait; to be called before torch is loaded.

    Threads that wait by spinning made one clip take 40 s instead of 5 on two cores that others used too.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@contextmanager
def progress(task: str) -> Iterator[Callable[[float], None] | None]:
    """A progress bar on a terminal, nothing elsewhere. Yields what the work should call with the share that is done."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task(task, total=1.0)
        yield lambda share: bar.update(row, completed=share)


@contextmanager
def long_run(task: str) -> Iterator[Callable[[int, int, str], None]]:
    """How a run of many steps goes: a bar on a terminal, lines elsewhere. Yields what should be told step, steps and a few words."""
    if not sys.stderr.isatty():
        yield lambda step, steps, words: print(f"step {step} of {steps}: {words}", file=sys.stderr, flush=True)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(task), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task("")
        yield lambda step, steps, words: bar.update(row, completed=step, total=steps, description=words)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings as sentences, each once, without the place in the code they come from."""
    with warnings.catch_warnings():
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = lambda message, *_, **__: print(f"bunraku: warning: {message}", file=sys.stderr)
        yield


def say_written(motion: Motion, path: str, lost: Mapping[str, str], known: Collection[str] = ()) -> int:
    """One line on what was written, and one for each thing that had to be assumed or that the format could not hold.

    `known` are topics of notes that the user knows about already.
    """
    print(f"{path}: {len(motion)} frames at {motion.fps:g} fps, {len(motion.skeleton)} joints of '{motion.skeleton.name}'")
    say_notes({topic: note for topic, note in {**motion.provenance.notes, **lost}.items() if topic not in known})
    return 0


def say_notes(notes: Mapping[str, str]) -> None:
    """What a reader assumed or a writer left out, one line each."""
    for topic, note in notes.items():
        print(f"  note: {topic}: {note}", file=sys.stderr)


def size_of(text: str) -> tuple[int, int]:
    """Width and height from 720x480."""
    found = re.fullmatch(r"(\d{1,9})[x×,](\d{1,9})", text.strip())
    if found is None:
        raise BadValue(f"'{text}' is no size; give width and height in pixels, such as 720x480.")
    return int(found[1]), int(found[2])
