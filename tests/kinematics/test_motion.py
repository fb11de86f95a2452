"""A clip: slices, its length in seconds, what it refuses, what provenance carries."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bunraku.errors import BadValue, BunrakuError, SkeletonMismatch
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, Provenance, is_finite, rest_motion
from bunraku.math.rotations import quat_normalize

BODY = skeleton("smplx22")


def clip(frames: int = 12, fps: float = 30.0, dtype: torch.dtype = torch.float32) -> Motion:
    return Motion(
        skeleton=BODY,
        fps=fps,
        root_position=torch.randn(frames, 3, dtype=dtype),
        quats=quat_normalize(torch.randn(frames, 22, 4, dtype=dtype)),
        translations=torch.randn(frames, 22, 3, dtype=dtype),
        contacts=torch.rand(frames, 4) < 0.5,
        provenance=Provenance(prompt="a person walks", seed=3),
    )


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"fps": 0.0}, BadValue, ["positive frame rate", "0.0"]),
        ({"fps": -30.0}, BadValue, ["positive frame rate", "-30"]),
        ({"fps": float("nan")}, BadValue, ["positive frame rate", "nan"]),
        ({"fps": float("inf")}, BadValue, ["positive frame rate", "inf"]),
        ({"quats": torch.zeros(0, 22, 4)}, BadValue, ["at least one frame"]),
        ({"quats": torch.zeros(12, 21, 4)}, SkeletonMismatch, ["(12, 21, 4)", "'smplx22'", "22 joints", "(12, 22, 4) is needed"]),
        ({"quats": torch.zeros(12, 22, 3)}, SkeletonMismatch, ["(12, 22, 3)", "(12, 22, 4) is needed"]),
        ({"root_position": torch.zeros(11, 3)}, SkeletonMismatch, ["root_position", "(11, 3)", "(12, 3)"]),
        ({"root_position": torch.zeros(12, 2)}, SkeletonMismatch, ["root_position", "(12, 2)"]),
        ({"translations": torch.zeros(12, 3)}, SkeletonMismatch, ["translations", "(12, 22, 3)"]),
        ({"contacts": torch.zeros(12, 6, dtype=torch.bool)}, SkeletonMismatch, ["contacts", "(12, 6)", "(12, 4)"]),
    ],
)
def test_a_motion_that_does_not_fit_gets_its_sentence(unchecked_shapes: None, change: dict, error: type[BunrakuError], words: list[str]) -> None:
    with pytest.raises(error) as problem:
        replace(clip(), **change)
    assert all(word in str(problem.value) for word in words), str(problem.value)
    assert "\n" not in str(problem.value)


def test_length_and_seconds() -> None:
    motion = clip(45, fps=30.0)
    assert len(motion) == 45
    assert motion.seconds == 1.5


@pytest.mark.parametrize(
    ("cut", "first", "count"),
    [(slice(3, 7), 3, 4), (slice(None, 5), 0, 5), (slice(-4, None), 8, 4), (slice(10, 99), 10, 2), (slice(2, 5, 1), 2, 3)],
)
def test_a_slice_holds_those_frames_of_everything(cut: slice, first: int, count: int) -> None:
    motion = clip()
    part = motion[cut]
    assert len(part) == count
    for name in ("root_position", "quats", "translations", "contacts"):
        assert torch.equal(getattr(part, name), getattr(motion, name)[first : first + count])
    assert part.provenance == motion.provenance
    assert part.fps == motion.fps


@pytest.mark.parametrize("cut", [slice(5, 5), slice(7, 3), slice(12, None)])
def test_an_empty_slice_is_refused(cut: slice) -> None:
    with pytest.raises(BadValue, match="holds no frame"):
        clip()[cut]


def test_steps_and_single_frames_are_refused(unchecked_shapes: None) -> None:
    with pytest.raises(BadValue, match="resample"):
        clip()[::2]
    with pytest.raises(BadValue, match="range of frames"):
        clip()[3]  # type: ignore[index]


def test_to_another_dtype() -> None:
    motion = clip().to(torch.float64)
    assert {motion.root_position.dtype, motion.quats.dtype, motion.translations.dtype} == {torch.float64}  # type: ignore[union-attr]
    assert motion.contacts is not None
    assert motion.contacts.dtype == torch.bool


def test_notes_add_up() -> None:
    first = Provenance(prompt="p").noted(unit="cm assumed")
    assert first.noted(up="+Z assumed").notes == {"unit": "cm assumed", "up": "+Z assumed"}
    assert first.notes == {"unit": "cm assumed"}
    assert first.prompt == "p"


def test_the_rest_motion_stands_in_the_rest_pose() -> None:
    body = skeleton("g1")
    motion = rest_motion(body, frames=3, fps=50.0)
    assert (len(motion), motion.fps) == (3, 50.0)
    assert torch.equal(motion.quats, body.rest_quats.expand(3, -1, -1))
    assert torch.equal(motion.root_position, body.offsets[:1].expand(3, 3))


def test_finite_or_not() -> None:
    motion = clip()
    assert is_finite(motion)
    for name in ("root_position", "quats", "translations"):
        values = getattr(motion, name).clone()
        values[2, 0] = float("nan")
        assert not is_finite(replace(motion, **{name: values}))
