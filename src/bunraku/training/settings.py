"""Settings as frozen dataclasses: changed from the command line by name, compared when a run goes on, written to JSON."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from bunraku.errors import BadValue

S = TypeVar("S")


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """What every training run has in common."""

    seed: int = 0
    steps: int = 100_000
    batch: int = 512  # clips a step, over all ranks
    optimiser: Literal["adam-atan2", "adamw"] = "adam-atan2"
    learning_rate: float = 2e-4
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.0
    warmup: int = 1000  # steps in which the rate grows from 0
    cooldown: float = 0.2  # share of the steps, at the end, in which it falls to 0
    gradient_clip: float = 1.0  # largest norm
    ema_decay: float = 0.995
    ema_every: int = 10  # steps
    precision: Literal["float32", "bfloat16"] = "bfloat16"  # of matrix products; weights and losses stay float32
    compiled: bool = False
    log_every: int = 50  # steps
    checkpoint_every: int = 2000
    preview_every: int = 0  # 0: never

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "log_every", "checkpoint_every", "ema_every"):
            if getattr(self, name) < 1:
                raise BadValue(f"{name} is {getattr(self, name)}; at least 1 is needed.")
        for name, low, high in (("learning_rate", 0.0, 1.0), ("cooldown", 0.0, 1.0), ("ema_decay", 0.0, 1.0)):
            if not low <= getattr(self, name) <= high:
                raise BadValue(f"{name} is {getattr(self, name):g}; a number from {low:g} to {high:g} is needed.")

    def rate_at(self, step: int) -> float:
        """The learning rate: up in a line, level, down in a line."""
        rise = min((step + 1) / max(self.warmup, 1), 1.0)
        fall_from = self.steps * (1 - self.cooldown)
        fall = 1.0 if step < fall_from else max(self.steps - step, 0) / max(self.steps - fall_from, 1)
        return self.learning_rate * rise * fall


def with_changes(settings: S, changes: Sequence[str]) -> S:
    """The settings with `field=value` applied; `part.field`, where a name alone stands for several."""
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals or not name.strip():
            raise BadValue(f"'{change}' is no change of a setting; write field=value, such as batch=64.")
        settings = _changed(settings, _find(settings, name.strip()), text.strip())
    return settings


def flat(settings: Any, before: str = "") -> dict[str, Any]:
    """Every field by its dotted name."""
    named: dict[str, Any] = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        named |= flat(value, f"{before}{field.name}.") if is_dataclass(value) else {f"{before}{field.name}": value}
    return named


def as_json(settings: Any) -> dict[str, Any]:
    """The settings as plain values."""
    return asdict(settings)


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Which settings differ between two runs, as 'name: 1, was 2'."""
    names = dict.fromkeys([*ours, *theirs])
    plain = [(name, *(_plain(side.get(name, "nothing")) for side in (ours, theirs))) for name in names]
    return [f"{name}: {now}, was {then}" for name, now, then in plain if now != then]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _find(settings: Any, name: str) -> str:
    known = flat(settings)
    if name in known:
        return name
    ending = [full for full in known if full.rsplit(".", 1)[-1] == name]
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise BadValue(f"'{name}' may be {' or '.join(ending)}; write the whole name.")
    raise BadValue(f"there is no setting '{name}'; there are {', '.join(known)}.")


def _changed(settings: S, name: str, text: str) -> S:
    head, _, rest = name.partition(".")
    value = _changed(getattr(settings, head), rest, text) if rest else _parsed(get_type_hints(type(settings))[head], text, name)
    return replace(settings, **{head: value})  # type: ignore[type-var]


def _parsed(kind: Any, text: str, name: str) -> Any:
    """The text as a value of that type."""
    try:
        return _value(kind, text)
    except ValueError as error:
        raise BadValue(f"{name}={text}: {error}.") from error


def _value(kind: Any, text: str) -> Any:
    origin = get_origin(kind)
    if origin is Literal:
        choices = {str(choice): choice for choice in get_args(kind)}
        if text not in choices:
            raise ValueError(f"choose {', '.join(choices)}")
        return choices[text]
    if origin in (Union, types.UnionType):
        kinds = [each for each in get_args(kind) if each is not type(None)]
        return None if text.lower() == "none" and len(kinds) < len(get_args(kind)) else _value(kinds[0], text)
    if origin is tuple:
        inner = get_args(kind)
        parts = [part for part in text.strip("()").split(",") if part.strip()]
        if inner[-1] is not Ellipsis and len(parts) != len(inner):
            raise ValueError(f"{len(inner)} values are needed, with commas between them")
        return tuple(_value(inner[0] if inner[-1] is Ellipsis else each, part.strip()) for part, each in zip(parts, inner * len(parts), strict=False))
    if kind is bool:
        if text.lower() not in ("true", "false", "1", "0", "yes", "no"):
            raise ValueError("yes or no is needed")
        return text.lower() in ("true", "1", "yes")
    if kind in (int, float, str):
        try:
            return kind(text.replace("_", "")) if kind is not str else text
        except ValueError:
            raise ValueError(f"{'a whole number' if kind is int else 'a number'} is needed") from None
    raise ValueError(f"a setting of type {kind} cannot be given in words")
