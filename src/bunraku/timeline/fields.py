"""JSON read with care: every complaint names the file, the entry in it, and what would be right."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bunraku.errors import FormatProblem
from bunraku.files.disk import existing_file, read_text

MOST_BYTES = 256 << 20  # an hour of 77-joint poses is smaller
LAST_FRAME = 1_000_000  # nine hours
LARGEST = 1e6  # no metre, second or turn of a document is larger; beyond it float32 loses the centimetres
MOST_NUMBERS = 50_000_000  # in one array, after a single row was spread over its frames

_KINDS = {str: "a text", bool: "true or false", list: "an array", dict: "an object", type(None): "null", int: "a number", float: "a number"}


def read_json(path: str | os.PathLike[str]) -> object:
    """The JSON value in a file. NaN and Infinity, which Python would take, are no JSON."""
    size = existing_file(path).stat().st_size
    if size > MOST_BYTES:
        raise FormatProblem(f"'{path}' has {size / 2**20:.0f} MiB; JSON of constraints or prompts up to {MOST_BYTES >> 20} MiB is read.")

    def refuse(constant: str) -> NoReturn:
        raise FormatProblem(f"'{path}' contains {constant}, which is no JSON; every number must be finite.")

    try:
        return json.loads(read_text(path), parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise FormatProblem(f"'{path}' is no JSON: {error.msg} at line {error.lineno}, column {error.colno}; was it cut short?") from error
    except ValueError as error:  # an integer of thousands of digits
        raise FormatProblem(f"'{path}' cannot be read as JSON: {str(error).split(';')[0]}.") from error
    except RecursionError as error:
        raise FormatProblem(f"'{path}' is nested too deeply; constraints are arrays of at most three levels.") from error


def kind_of(value: object) -> str:
    return _KINDS.get(type(value), type(value).__name__)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One object of a JSON document, and the words that say which one."""

    where: str  # "'c.json': constraints[2] (root2d)"
    data: Mapping[str, object]

    def fail(self, problem: str) -> NoReturn:
        raise FormatProblem(f"{self.where} {problem}")

    def has(self, key: str) -> bool:
        return self.data.get(key) is not None

    def get(self, key: str, meaning: str) -> object:
        if self.data.get(key) is None:
            given = ", ".join(str(k) for k in list(self.data)[:12]) or "none"
            self.fail(f"has no '{key}'; {meaning} is needed (its keys: {given}).")
        return self.data[key]

    def text(self, key: str, meaning: str) -> str:
        value = self.get(key, meaning)
        if not isinstance(value, str):
            self.fail(f"has {kind_of(value)} as '{key}'; {meaning} is needed.")
        return value

    def texts(self, key: str, meaning: str) -> list[str]:
        value = self.get(key, meaning)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(f"has {kind_of(value)} as '{key}' that is no array of texts; {meaning} is needed.")
        return [str(item) for item in value]

    def number(self, key: str, meaning: str) -> float:
        value = self.get(key, meaning)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            self.fail(f"has {_brief(value)} as '{key}'; {meaning} is needed.")
        return float(value)

    def whole(self, key: str, meaning: str, most: int = LAST_FRAME) -> int:
        value = self.get(key, meaning)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            self.fail(f"has {_brief(value)} as '{key}'; {meaning} is needed.")
        return value

    def flag(self, key: str, meaning: str) -> bool:
        value = self.get(key, meaning)
        if not isinstance(value, bool):
            self.fail(f"has {_brief(value)} as '{key}'; {meaning} is needed.")
        return value

    def only(self, keys: Sequence[str]) -> None:
        """Refuses a key that is none of these: it is most likely a slip of the pen."""
        unknown = next((key for key in self.data if key not in keys), None)
        if unknown is not None:
            self.fail(f"has the key '{unknown[:40]}', which means nothing here; the keys are {', '.join(keys)}.")

    def array(self, key: str, shape: Sequence[int | str], meaning: str, *, single: bool = False) -> Float[np.ndarray, "..."]:
        """Finite numbers; sizes that are words may be anything. `single`: one number stands for an array of one."""
        value = self.get(key, meaning)
        if single and isinstance(value, int | float):
            value = [value]
        wanted = f"[{' '.join(map(str, shape))}]"
        try:
            numbers = np.asarray(value)
        except (ValueError, OverflowError):
            self.fail(f"has rows of different lengths in '{key}'; {wanted} numbers are needed: {meaning}.")
        if not isinstance(value, list) or numbers.dtype.kind not in "iuf":
            inside = kind_of(value) if not isinstance(value, list) else "something that is no number" if value else "nothing"
            self.fail(f"has {inside} in '{key}'; {wanted} numbers are needed: {meaning}.")
        if numbers.ndim != len(shape) or any(isinstance(want, int) and size != want for size, want in zip(numbers.shape, shape, strict=True)):
            self.fail(f"has '{key}' of the shape {list(numbers.shape)}; {wanted} is needed: {meaning}.")
        numbers = numbers.astype(np.float64)
        if not (np.abs(numbers) <= LARGEST).all():
            self.fail(f"has a number in '{key}' that is not finite or beyond {LARGEST:,.0f}; {meaning}.")
        return numbers

    def tensor(self, key: str, shape: Sequence[int | str], meaning: str) -> Float[Tensor, "..."]:
        return torch.from_numpy(self.array(key, shape, meaning)).float()

    def frames(self, key: str) -> Int[Tensor, " K"]:
        """Frame numbers; at least one, whole, none negative."""
        meaning = "frame numbers counted from 0"
        numbers = self.array(key, ("K",), meaning, single=True) if self.get(key, meaning) != [] else np.zeros(0)
        if len(numbers) == 0:
            self.fail(f"holds at no frame: '{key}' is empty; give at least one frame number.")
        if (numbers != np.floor(numbers)).any():
            self.fail(f"has {numbers[numbers != np.floor(numbers)][0]:g} in '{key}'; frame numbers are whole.")
        if (numbers < 0).any():
            self.fail(f"has the frame {int(numbers.min())} in '{key}'; frames are counted from 0.")
        return torch.from_numpy(numbers.astype(np.int64))


def object_at(value: object, where: str) -> Entry:
    if not isinstance(value, dict):
        raise FormatProblem(f"{where} is {kind_of(value)}; an object {{…}} is needed.")
    return Entry(where=where, data=value)


def _brief(value: object) -> str:
    """A value short enough to be quoted."""
    if isinstance(value, int) and abs(value) > 10**15:
        return f"a whole number of {'more than 300' if value.bit_length() > 1000 else len(str(abs(value)))} digits"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
