"""The same sentence in other words: by rules that keep its meaning, or by a language model that is asked once and remembered.

Rules change who moves ("a person", "someone", "the figure"), how it is told ("walks", "is walking", "walking", "walk"), a few adverbs,
and how it is written (capital, full stop). They touch only sentences that they can parse: a known subject followed by a known verb.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import torch

from bunraku.datasets.sides import sides_of
from bunraku.datasets.verbs import BASE_OF_CONTINUOUS, BASE_OF_THIRD, continuous, third_person
from bunraku.errors import BunrakuError, FileProblem, FormatProblem

SUBJECTS = ("a person", "someone", "the person", "a human", "the figure", "a man", "a figure", "this person")
_NEUTRAL = (
    r"(?:(?:a|an|the|one|this)\s+)?(?:person|human(?:\s+being)?|humanoid|individual|figure|character|man|guy|sim|subject|stick\s+figure|somebody|someone)"
)
_PARSED = re.compile(rf"^\s*(?P<subject>{_NEUTRAL})\s+(?:(?P<be>is)\s+)?(?P<verb>[a-z]+)\b(?P<rest>.*?)\s*\.?\s*$", re.IGNORECASE | re.DOTALL)
_LINK = r",\s*(?:and\s+)?(?:then\s+)?|\band\s+(?:then\s+)?|\bthen\s+|\bor\s+|\bbut\s+"
_NEXT_VERB = re.compile(rf"(?P<link>(?:{_LINK})(?:(?:slowly|quickly|suddenly|briefly|carefully)\s+)?)(?P<verb>[a-z]+)\b")
_PLURALS = frozenset({"arms", "hands", "legs", "feet", "his", "hips", "steps", "its", "sides", "knees", "backwards"})
_ADVERBS = {
    "quickly": ("fast", "rapidly", "quickly"),
    "rapidly": ("quickly", "fast"),
    "forwards": ("forward",),
    "backward": ("backwards",),
    "backwards": ("backward",),
    "slowly": ("slowly", "at a slow pace"),
    "counterclockwise": ("counter-clockwise", "anticlockwise"),
    "counter-clockwise": ("counterclockwise", "anti-clockwise"),
    "several": ("a few",),
}
_ADVERB = re.compile(rf"\b(?<!-)({'|'.join(_ADVERBS)})\b(?!-)")


def paraphrase(text: str, generator: torch.Generator) -> str:
    """The sentence told in another way; itself where the rules cannot parse it, but for its capital and its full stop."""
    told = _retold(text.strip(), generator)
    told = _ADVERB.sub(lambda m: _pick((*_ADVERBS[m[1]], m[1]), generator), told)
    if sides_of(told) != sides_of(text):
        told = text.strip()
    return _written(told, generator)


def _retold(text: str, generator: torch.Generator) -> str:
    parsed = _PARSED.match(text)
    if not parsed:
        return text
    verb, rest = parsed["verb"].lower(), parsed["rest"]
    base = BASE_OF_CONTINUOUS.get(verb) if parsed["be"] else BASE_OF_THIRD.get(verb)
    if base is None:
        words = text[parsed.end("subject") :].lstrip()
        return f"{_pick(SUBJECTS, generator)} {words}"
    known = BASE_OF_CONTINUOUS if parsed["be"] else BASE_OF_THIRD
    # a tense that does not fit all the verbs that hang together would be wrong: "walks and is waving" stays
    links = [match["verb"].lower() for match in _NEXT_VERB.finditer(rest)]
    plain = "is" not in rest.split() and all(word in known or not _looks_finite(word) for word in links)
    style = _pick(("third", "third", "continuous", "bare", "command"), generator) if plain else None
    if style is None:
        return f"{_pick(SUBJECTS, generator)} {'is ' if parsed['be'] else ''}{verb}{rest}"
    form: Callable[[str], str] = {"third": third_person, "continuous": continuous, "bare": continuous, "command": lambda word: word}[style]
    rest = _NEXT_VERB.sub(lambda m: m["link"] + (form(known[m["verb"]]) if m["verb"] in known else m["verb"]), rest)
    subject = _pick(SUBJECTS, generator)
    lead = {"third": f"{subject} ", "continuous": f"{subject} is ", "bare": "", "command": ""}[style]
    return f"{lead}{form(base)}{rest}"


def _looks_finite(word: str) -> bool:
    """Might it be a verb in a form that would have to change?"""
    return word.endswith("s") and not word.endswith("ss") and word not in _PLURALS


def _written(text: str, generator: torch.Generator) -> str:
    """With or without capital and full stop, more often with."""
    text = text.rstrip(" .")
    if not text:
        return text
    return f"{text[:1].upper()}{text[1:]}." if int(torch.randint(4, (), generator=generator)) else f"{text[:1].lower()}{text[1:]}"


def _pick(choices: tuple[str, ...], generator: torch.Generator) -> str:
    return choices[int(torch.randint(len(choices), (), generator=generator))]


# --- a language model ---------------------------------------------------------------------------------------------------


def ask_for_paraphrases(
    sentences: Iterable[str], command: str, cache: Path, *, count: int = 4, on_progress: Callable[[float], None] | None = None
) -> Mapping[str, tuple[str, ...]]:
    """Paraphrases from any program: a shell command that reads lines `{"text": …, "count": 4}` and answers each, in order, with a line
    `{"paraphrases": […]}`. Answers are kept in `cache` as they come, so that only new sentences are asked for, also after a crash.

    What lost a side (left, right, clockwise) or is empty is not taken over.
    """
    known = read_paraphrases(cache, command)
    missing = [text for text in dict.fromkeys(s.strip() for s in sentences) if text and text not in known]
    if not missing:
        return known
    asked = hashlib.sha256(command.encode()).hexdigest()[:12]
    try:
        _cut_half_line(cache)
        child = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert child.stdout is not None
        complaints: list[str] = []
        feeder = threading.Thread(target=_feed, args=(child, missing, count), daemon=True)
        listener = threading.Thread(target=lambda: complaints.extend(child.stderr or ()), daemon=True)
        feeder.start()
        listener.start()
        answered = 0
        with cache.open("a", encoding="utf-8") as stream:
            for text, line in zip(missing, child.stdout, strict=False):
                kept = _answers(line, text, command)
                stream.write(json.dumps({"text": text, "paraphrases": kept, "by": asked}, ensure_ascii=False) + "\n")
                stream.flush()
                known[text], answered = tuple(kept), answered + 1
                if on_progress is not None:
                    on_progress(answered / len(missing))
        child.stdout.close()
        status = child.wait()
        listener.join(timeout=5)
    except OSError as error:
        raise FileProblem(f"paraphrases cannot be kept in '{cache}': {error.strerror or error}.") from error
    if answered < len(missing):
        said = f" It said: {complaints[-1].strip():.200}" if complaints else ""
        raise BunrakuError(
            f"the command '{command:.80}' ended with status {status} after {answered} of {len(missing)} sentences; "
            f"those are kept, run it again for the rest.{said}"
        )
    return known


def paraphrases_path(dataset: Path) -> Path:
    """Where a dataset's paraphrases are kept: in its folder, or beside its packed file."""
    return dataset / "paraphrases.jsonl" if dataset.is_dir() else dataset.with_name(dataset.name + ".paraphrases.jsonl")


def read_paraphrases(cache: Path, command: str | None = None) -> dict[str, tuple[str, ...]]:
    """What was answered before, by this command or by any; half a line at the end is overlooked."""
    if not cache.is_file():
        return {}
    asked = None if command is None else hashlib.sha256(command.encode()).hexdigest()[:12]
    known: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(cache.read_bytes().split(b"\n")[:-1], start=1):
        try:
            row = json.loads(line)
            if asked is None or row["by"] == asked:
                known[row["text"]] = (*known.get(row["text"], ()), *row["paraphrases"])
        except (ValueError, KeyError, TypeError) as error:
            raise FormatProblem(f"'{cache}', line {number}, is damaged ({error}); remove that line.") from error
    return known


def _cut_half_line(cache: Path) -> None:
    """After a crash in the middle of a line: what comes next must not be glued to it."""
    data = cache.read_bytes() if cache.is_file() else b""
    if data and not data.endswith(b"\n"):
        with cache.open("r+b") as stream:
            stream.truncate(data.rfind(b"\n") + 1)


def _feed(child: subprocess.Popen[str], sentences: list[str], count: int) -> None:
    assert child.stdin is not None
    try:
        with child.stdin as stream:
            for text in sentences:
                stream.write(json.dumps({"text": text, "count": count}, ensure_ascii=False) + "\n")
                stream.flush()
    except (BrokenPipeError, ValueError):
        pass  # the command has ended; its missing answers tell


def _answers(line: str, text: str, command: str) -> list[str]:
    try:
        answers = [str(answer).strip() for answer in json.loads(line)["paraphrases"]]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatProblem(f"the command '{command:.80}' answered '{line.strip():.80}'; a line such as {{\"paraphrases\": [\"…\"]}} is needed.") from error
    return [answer for answer in dict.fromkeys(answers) if answer and answer != text and sorted(sides_of(answer)) == sorted(sides_of(text))]
