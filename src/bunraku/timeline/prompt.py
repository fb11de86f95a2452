"""What should happen, in words, and for how long; and how both are typed on a command line: `waves.@3`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bunraku.errors import BadValue

DEFAULT_SECONDS = 5.0
LONGEST_SECONDS = 600.0  # of one prompt
LONGEST_TEXT = 2000  # [characters] far beyond what any text encoder reads
MOST_PROMPTS = 1000

# only a number after the last @ is a length of time: "mail bob@home.org" is all text. nan and inf are let in to be refused
_TIMED = re.compile(r"(?P<text>.*)@(?P<seconds>[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?(?:nan|inf))\s*", re.DOTALL | re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A sentence and how long it lasts. The empty text lets the model choose."""

    text: str
    seconds: float = DEFAULT_SECONDS

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise BadValue(f"a prompt's text is words; got {type(self.text).__name__}.")
        if len(self.text) > LONGEST_TEXT:
            raise BadValue(
                f"the prompt '{_head(self.text)}' has {len(self.text):,} characters; at most {LONGEST_TEXT:,} are read. Split it into several prompts."
            )
        if any("\ud800" <= letter <= "\udfff" for letter in self.text):
            raise BadValue(f"the prompt '{_head(self.text)}' holds characters that are no text (bytes that are not UTF-8); type it again.")
        seconds = self.seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise BadValue(f"the prompt '{_head(self.text)}' lasts {type(seconds).__name__}; a number of seconds is needed.")
        if not 0 < seconds <= LONGEST_SECONDS:
            raise BadValue(f"the prompt '{_head(self.text)}' cannot last {_number(seconds)} seconds; more than 0 and at most {LONGEST_SECONDS:g} are possible.")
        object.__setattr__(self, "seconds", float(seconds))


def parse_prompt(argument: str, default_seconds: float = DEFAULT_SECONDS) -> Prompt:
    """`waves.@3` is "waves." for 3 s; without a trailing @NUMBER it is all text and lasts `default_seconds`."""
    timed = _TIMED.fullmatch(argument)
    if timed is None:
        return Prompt(text=argument.strip(), seconds=default_seconds)
    return Prompt(text=timed["text"].strip(), seconds=float(timed["seconds"]))


def parse_prompts(arguments: Sequence[str], default_seconds: float = DEFAULT_SECONDS) -> tuple[Prompt, ...]:
    check_count(len(arguments))
    return tuple(parse_prompt(argument, default_seconds) for argument in arguments)


def check_count(prompts: int) -> None:
    if prompts > MOST_PROMPTS:
        raise BadValue(f"{prompts:,} prompts are too many for one timeline; at most {MOST_PROMPTS:,} are possible. Make several and join them.")


def prompt_frames(prompts: Sequence[Prompt], fps: float) -> list[range]:
    """The frames that each prompt owns: without gaps, and as many in all as the sum of the seconds has.

    Borders are rounded, not lengths, so that fractions of a frame do not add up.
    """
    if not (isinstance(fps, int | float) and 0 < fps < math.inf):
        raise BadValue(f"{fps} frames per second is no frame rate; a positive one is needed.")
    seconds = 0.0
    borders = [0]
    for prompt in prompts:
        seconds += prompt.seconds
        borders.append(round(seconds * fps))
        if borders[-1] == borders[-2]:
            raise BadValue(f"the prompt '{_head(prompt.text)}' lasts {prompt.seconds:g} s, less than a frame at {fps:g} frames per second; give it more time.")
    return [range(start, end) for start, end in pairwise(borders)]


def _head(text: str) -> str:
    """The beginning of a text, fit to be printed on one line."""
    line = " ".join(text[:60].split()).encode(errors="replace").decode()
    return line if len(text) <= 40 else f"{line[:40]}…"


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) or abs(value) < 10**15 else "that many"
