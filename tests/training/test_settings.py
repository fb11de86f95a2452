"""Settings: changed by name, checked, compared."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from small_training import SMALL

from bunraku.errors import BadValue
from bunraku.training.settings import LoopSettings, differences, flat, with_changes


@dataclass(frozen=True)
class Twins:
    first: LoopSettings = field(default_factory=LoopSettings)
    second: LoopSettings = field(default_factory=LoopSettings)


@pytest.mark.parametrize(
    ("change", "name", "value"),
    [
        ("batch=64", "loop.batch", 64),
        ("loop.batch=64", "loop.batch", 64),
        ("learning_rate=1e-4", "loop.learning_rate", 1e-4),
        ("steps=1_000", "loop.steps", 1000),
        ("optimiser=adamw", "loop.optimiser", "adamw"),
        ("compiled=yes", "loop.compiled", True),
        ("lengths=20,40,60", "lengths", (20, 40, 60)),
        ("dropout=0.2, 0.1", "dropout", (0.2, 0.1)),
        ("denoiser.backbone.layers=3", "denoiser.backbone.layers", 3),
        ("stages=1", "denoiser.stages", 1),
        ("text_encoder=a=b", "text_encoder", "a=b"),
    ],
)
def test_a_field_is_changed_by_name(change: str, name: str, value: object) -> None:
    changed, before = flat(with_changes(SMALL, [change])), flat(SMALL)
    assert changed.pop(name) == value
    before.pop(name)
    assert changed == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("batch", "'batch' is no change of a setting; write field=value"),
        ("bach=3", "there is no setting 'bach'; there are denoiser"),
        ("batch=many", "batch=many: a whole number is needed"),
        ("batch=0", "batch is 0; at least 1 is needed"),
        ("learning_rate=-1", "learning_rate is -1; a number from 0 to 1 is needed"),
        ("optimiser=sgd", "optimiser=sgd: choose adam-atan2, adamw"),
        ("compiled=perhaps", "yes or no is needed"),
        ("dropout=0.1", "2 values are needed"),
        ("text_drop=2", "text_drop is 2; a share from 0 to 1 is needed"),
        ("lengths=1", "at least one of 2 frames or more is needed"),
        ("=3", "is no change of a setting"),
    ],
)
def test_what_cannot_be_changed_gets_its_sentence(change: str, message: str) -> None:
    with pytest.raises(BadValue, match=message.replace("(", r"\(")):
        with_changes(SMALL, [change])


def test_a_name_that_stands_for_several_is_asked_about() -> None:
    with pytest.raises(BadValue, match=r"'steps' may be first\.steps or second\.steps; write the whole name"):
        with_changes(Twins(), ["steps=3"])


def test_the_rate_rises_stays_and_falls() -> None:
    loop = LoopSettings(steps=1000, warmup=100, cooldown=0.2, learning_rate=1e-3)
    assert loop.rate_at(0) == pytest.approx(1e-5)
    assert loop.rate_at(99) == loop.rate_at(500) == pytest.approx(1e-3)
    assert loop.rate_at(900) == pytest.approx(5e-4)
    assert loop.rate_at(1000) == 0.0


def test_differences_name_what_differs() -> None:
    assert differences({"a": 1, "b": (1, 2), "c": 3}, {"a": 1, "b": [1, 2], "d": 4}) == ["c: 3, was nothing", "d: nothing, was 4"]
