"""The grammar of BVH: text in, joints and one table of numbers out. What they mean is decided in `bvh_read.py`.

The header is read token by token without recursion, so trees of any depth are fine. The numbers, which are nearly all of the
file, are read in one go; nothing is ever allocated from the frame count that the file claims, only compared with it.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bunraku.errors import FormatProblem, SkeletonProblem

# No two neighbours in these patterns can match the same character, so a hostile file cannot make them try for ever.
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<kind>ROOT|JOINT|End[ \t]+Site)\b(?P<name>[^\n]*)
    | OFFSET\s+(?P<offset>\S+\s+\S+\s+\S+)
    | CHANNELS\s+(?P<channels>\d{1,6})\b
    | (?P<close>\})
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_WORD = re.compile(r"\s+([^\s{}]+)")
_BRACE = re.compile(r"\s*\{")
_MOTION = re.compile(rb"[\s}]MOTION\s+(?=Frames)", re.IGNORECASE)
_FRAMES = re.compile(rb"Frames\s*:\s*(\S+)\s+Frame\s+Time\s*:\s*(\S+)(?=\s|$)", re.IGNORECASE)
_SPACE = re.compile(rb"\s")
_CHUNK = 1 << 18  # bytes of numbers read at a time
_POWERS_OF_TEN = 10.0 ** np.arange(23)  # the last that float64 holds exactly
_CHANNELS = tuple(f"{axis}{kind}" for kind in ("position", "rotation") for axis in "xyz")


@dataclass(frozen=True, kw_only=True)
class BvhTable:
    """A BVH as it stands in its file: C channels in all, in the file's own unit and degrees."""

    names: tuple[str, ...]  # unique
    parents: tuple[int, ...]
    offsets: Float[np.ndarray, "J 3"]
    channels: tuple[tuple[str, ...], ...]  # per joint, lower case: 'xposition' … 'zrotation'
    tips: dict[int, tuple[float, float, float]]  # the joint's first End Site
    frame_time: str  # as written: its digits tell how exact it is [s]
    values: Float[np.ndarray, "F C"]
    notes: dict[str, str]


def parse_bvh(data: bytes, path: str) -> BvhTable:
    """Reads the bytes of a BVH; `path` is for the messages."""
    start = _MOTION.search(data)
    if start is None:
        raise FormatProblem(f"'{path}' has no MOTION block; it is no BVH, or was cut off. Export it again.")
    header = _Header(path, _decode(data[: start.start() + 1], path))
    header.read()
    claim = _FRAMES.match(data, start.end())
    if claim is None:
        raise FormatProblem(f"'{path}': MOTION must be followed by 'Frames: N' and 'Frame Time: SECONDS'; the file was cut off or is no BVH.")
    frames, frame_time = (group.decode(errors="replace") for group in claim.groups())
    if not frames.isdecimal() or int(frames[:12]) == 0:
        raise FormatProblem(f"'{path}' claims '{frames}' frames; a whole number from 1 up is needed.")
    width = sum(map(len, header.channels))
    if width == 0:
        raise FormatProblem(f"'{path}' gives no joint a channel, so it holds no motion; at least the root needs CHANNELS.")
    return BvhTable(
        names=header.unique_names(),
        parents=tuple(header.parents),
        offsets=np.array(header.offsets),
        channels=tuple(header.channels),
        tips=header.tips,
        frame_time=frame_time,
        values=_frames(parse_numbers(data, claim.end(), path), int(frames[:12]), width, path),
        notes=header.notes,
    )


class _Header:
    """Walks over HIERARCHY once and collects its joints."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text, self.at = path, text, 0
        self.names: list[str] = []
        self.parents: list[int] = []
        self.offsets: list[tuple[float, ...]] = []
        self.channels: list[tuple[str, ...]] = []
        self.tips: dict[int, tuple[float, float, float]] = {}
        self.notes: dict[str, str] = {}
        self.open: list[tuple[int, bool]] = []  # (joint, is this its End Site?) from the root down

    def read(self) -> None:
        start = re.match(r"\s*HIERARCHY\b[^\n]*", self.text, re.IGNORECASE)
        if start is None:
            raise self.problem("a BVH begins with the line HIERARCHY")
        self.at = start.end()
        last = len(self.text.rstrip())
        while self.at < last:
            token = _TOKEN.match(self.text, self.at)
            if token is None:
                rest = self.text[self.at :].lstrip()
                self.at = len(self.text) - len(rest)
                raise self.problem(f"'{rest.split(maxsplit=1)[0][:40]}' is not expected here")
            self.at = token.end()
            self._take(token)
        if self.open or not self.names:
            raise self.problem("the HIERARCHY ends before its last '}'; the file was cut off")
        if any(len(offset) != 3 for offset in self.offsets):
            joint = self.names[next(j for j, offset in enumerate(self.offsets) if len(offset) != 3)]
            raise self.problem(f"joint '{joint}' has no OFFSET")

    def _take(self, token: re.Match[str]) -> None:
        if token["kind"]:
            self._begin(token["kind"].upper(), self._name_before_brace(token["name"]))
        elif not self.open:
            raise self.problem(f"'{token[0].strip()[:40]}' stands outside every joint; a ROOT must come first")
        elif token["close"]:
            self.open.pop()
        elif token["offset"]:
            self._offset(token["offset"])
        else:
            self._channels(int(token["channels"]))

    def _begin(self, kind: str, name: str) -> None:
        if kind == "ROOT" and self.names:
            roots = f"'{self.names[0]}' and '{name}'"
            raise SkeletonProblem(f"'{self.path}' has two ROOTs ({roots}); a motion is of one skeleton. Split the file, one ROOT in each.")
        if kind != "ROOT" and (not self.open or self.open[-1][1]):
            raise self.problem(f"{kind} {name} stands outside every joint; a ROOT must hold it")
        if kind.startswith("END"):
            self.open.append((self.open[-1][0], True))
            return
        self.parents.append(self.open[-1][0] if self.open else -1)
        self.open.append((len(self.names), False))
        self.names.append(name)
        self.offsets.append(())
        self.channels.append(())

    def _name_before_brace(self, rest_of_line: str) -> str:
        """A name is the rest of its line, spaces and colons included; its brace closes that line or opens the next."""
        name = rest_of_line.strip()
        if name.endswith("{"):
            return name[:-1].rstrip()
        brace = _BRACE.match(self.text, self.at)
        if brace is None:
            raise self.problem(f"a '{{' is missing after '{name[:40]}'")
        self.at = brace.end()
        return name

    def _offset(self, text: str) -> None:
        joint, is_end = self.open[-1]
        try:
            x, y, z = (float(word) for word in text.split())
        except ValueError:
            raise self.problem(f"OFFSET of '{self.names[joint]}' needs three numbers, got '{' '.join(text.split())[:60]}'") from None
        if not np.isfinite([x, y, z]).all():
            raise self.problem(f"OFFSET of '{self.names[joint]}' is not finite")
        if not is_end:
            self.offsets[joint] = (x, y, z)
        elif self.tips.setdefault(joint, (x, y, z)) != (x, y, z):
            self.notes["end_sites"] = "a joint has several End Sites; the first was kept"

    def _channels(self, count: int) -> None:
        joint, words = self.open[-1][0], []
        while len(words) < count and (word := _WORD.match(self.text, self.at)):
            self.at = word.end()
            words.append(word[1].lower())
            if words[-1] not in _CHANNELS:
                raise self.problem(f"joint '{self.names[joint]}' has a channel '{word[1]}'; channels are Xposition … Zposition and Xrotation … Zrotation")
        if len(words) < count:
            raise self.problem(f"joint '{self.names[joint]}' claims {count} channels but names {len(words)}")
        if any(words.count(axis) > 1 for axis in _CHANNELS[:3]):
            raise self.problem(f"joint '{self.names[joint]}' names a position channel twice")
        self.channels[joint] = tuple(words)

    def unique_names(self) -> tuple[str, ...]:
        """The names, repeated ones told apart by '.001', '.002' … as Blender does; what was changed goes to the notes."""
        seen: set[str] = set()
        copies: dict[str, int] = {}  # of each name so far
        repeated = []
        for number, given in enumerate(self.names):
            wanted = name = given or "unnamed"
            while name in seen:
                copies[wanted] = copies.get(wanted, 0) + 1
                name = f"{wanted}.{copies[wanted]:03d}"
            if name != given:
                repeated.append(f"'{given}' → '{name}'")
            seen.add(name)
            self.names[number] = name
        if repeated:
            self.notes["names"] = f"repeated or empty joint names made unique: {', '.join(repeated[:8])}{' …' if len(repeated) > 8 else ''}"
        return tuple(self.names)

    def problem(self, what: str) -> FormatProblem:
        line = self.text.count("\n", 0, self.at) + 1
        return FormatProblem(f"'{self.path}', line {line}: {what}.")


def _decode(data: bytes, path: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatProblem(f"'{path}' has joint names that are not UTF-8 (byte {error.start}); save it as UTF-8.") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _frames(values: Float[np.ndarray, " N"], frames: int, width: int, path: str) -> Float[np.ndarray, "F C"]:
    if values.size != frames * width:
        held = f"{values.size // width}" if values.size % width == 0 else f"{values.size / width:.2f}"
        raise FormatProblem(
            f"'{path}' claims {frames} frames of {width} numbers but holds {values.size} numbers, which is {held} frames; "
            "it was cut off or its frame count is wrong."
        )
    if not np.isfinite(values).all():
        frame, column = divmod(int(np.flatnonzero(~np.isfinite(values))[0]), width)
        raise FormatProblem(f"'{path}' holds a number that is not finite (frame {frame + 1}, column {column + 1}); repair the take where it was made.")
    return values.reshape(frames, width)


def parse_numbers(data: bytes, start: int, path: str) -> Float[np.ndarray, " N"]:
    """All numbers from byte `start` to the end, separated by white space.

    Nearly every BVH writes plain decimals. Then the dots are taken out, the integers are read, which is seven times as fast as
    reading floats, and each is divided by its power of ten: exact, as both are exact in float64. All else takes the slow way.
    The text is taken in chunks, so that what is made on the way stays in the processor's cache.
    """
    chunks = [np.empty(0)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # older numpy's word for what is now a ValueError
        while start < len(data):
            gap = _SPACE.search(data, start + _CHUNK)
            chunk, start = (data[start : gap.end()], gap.end()) if gap else (data[start:] + b"\n", len(data))
            if not chunk.isspace():
                chunks.append(_numbers(chunk, path))
    return np.concatenate(chunks)


def _numbers(text: bytes, path: str) -> Float[np.ndarray, " N"]:
    try:
        return _plain_decimals(text)
    except (DeprecationWarning, ValueError):
        pass
    try:
        return np.fromstring(text, sep=" ")
    except (DeprecationWarning, ValueError):
        raise FormatProblem(f"'{path}' has '{_first_wrong(text)}' among its motion numbers; it was cut off or edited by hand.") from None


def _plain_decimals(text: bytes) -> Float[np.ndarray, " N"]:
    """The numbers of a text that ends in white space and holds only plain decimals; ValueError if it holds anything else."""
    whole = np.fromstring(text.translate(None, b"."), np.int64, sep=" ")
    raw = np.frombuffer(text, np.uint8)
    space = raw <= ord(" ")
    ends = np.flatnonzero(space[1:] & ~space[:-1]) + 1
    dots = np.flatnonzero(raw == ord("."))
    if len(dots) == len(ends) and (dots < ends).all() and (dots[1:] > ends[:-1]).all():
        decimals = ends - dots - 1  # every number has its dot
    else:
        owner = np.searchsorted(ends, dots)
        decimals = np.zeros(len(ends), np.int64)
        decimals[owner] = ends[owner] - dots - 1
        if (np.diff(owner) == 0).any():
            raise ValueError("two dots in one number")
    if len(whole) != len(ends) or np.abs(whole).max() >= 1 << 53 or decimals.max() > 22:
        raise ValueError("not exact as an integer divided by a power of ten")
    return whole / _POWERS_OF_TEN[decimals]


def _first_wrong(text: bytes) -> str:
    for word in text.split():
        try:
            float(word)
        except ValueError:
            return word[:40].decode(errors="replace")
    return "something"
