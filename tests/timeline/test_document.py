"""Our own documents: what is written comes back, what people type is understood, and no damage goes unnamed."""

from __future__ import annotations

import json
import math
import random
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from some_constraints import TYPES, difference, some_constraint

from bunraku.errors import BadValue, BunrakuError, FileProblem, FormatProblem
from bunraku.kinematics.library import skeleton
from bunraku.timeline import (
    EffectorTarget,
    FootPlan,
    Heading,
    PoseKey,
    Prompt,
    Timeline,
    check_constraints,
    load_constraints,
    load_timeline,
    save_constraints,
    save_timeline,
)

SOMA = skeleton("soma30")


@given(st.lists(st.tuples(st.sampled_from(TYPES), st.integers(0, 10**6), st.integers(1, 4)), max_size=5), st.sampled_from(["soma30", "g1", "cmu23"]))
def test_constraints_come_back(tmp_path_factory: pytest.TempPathFactory, kinds: list[tuple[str, int, int]], name: str) -> None:
    path, body = tmp_path_factory.getbasetemp() / "round.json", skeleton(name)
    given_ = [some_constraint(kind, seed, body, rows) for kind, seed, rows in kinds]
    save_constraints(given_, path)
    for a, b in zip(given_, load_constraints(path, body), strict=True):
        assert difference(a, b) < 1e-6


def test_a_timeline_comes_back(tmp_path: Path) -> None:
    timeline = Timeline(
        prompts=(Prompt(text='Ein "Winken" — 手を振る', seconds=2.5), Prompt(text="")),
        constraints=(some_constraint("position", 3), some_constraint("pose", 4)),
        fps=24.0,
        heading=1.25,
        seed=2**63 - 1,
        loop=True,
        samples=4,
        steps=25,
        guided=False,
        guidance_text=2.5,
        guidance_constraint=0.0,
    )
    save_timeline(timeline, tmp_path / "t.json")
    back = load_timeline(tmp_path / "t.json", SOMA)
    for field in fields(Timeline):
        if field.name not in ("constraints", "heading"):
            assert getattr(back, field.name) == getattr(timeline, field.name), field.name
    assert back.heading == pytest.approx(1.25, abs=1e-12)
    assert all(difference(a, b) < 1e-6 for a, b in zip(timeline.constraints, back.constraints, strict=True))
    assert len(load_constraints(tmp_path / "t.json", SOMA)) == 2


def typed(folder: Path, *constraints: object, **more: object) -> list:
    (folder / "t.json").write_text(json.dumps({"bunraku_timeline": 1, "constraints": list(constraints), **more}))
    return load_constraints(folder / "t.json", SOMA)


def test_what_people_type(tmp_path: Path) -> None:
    hand, facing, feet, pose = typed(
        tmp_path,
        {"type": "effector", "effector": "left_hand", "seconds": [1.5], "position": [[0.3, 1.2, 0.4]]},
        {"type": "heading", "from_seconds": 0, "to_seconds": 0.1, "heading_degrees": 90},
        {"type": "foot_plan", "from_frame": 3, "to_frame": 5, "on_ground": ["left_foot", "left_toe"]},
        {"type": "pose", "frames": 7, "joints": ["LeftArm"], "quaternions_wxyz": [[0.6, 0, 0.8, 0]], "root_position": [0, 0.95, 0]},
    )
    assert isinstance(hand, EffectorTarget)
    assert hand.frames.tolist() == [45]
    assert hand.quats is None
    assert torch.equal(hand.position, torch.tensor([[0.3, 1.2, 0.4]]))
    assert isinstance(facing, Heading)
    assert facing.frames.tolist() == [0, 1, 2]
    assert torch.allclose(facing.heading, torch.full((3,), math.pi / 2))
    assert isinstance(feet, FootPlan)
    assert feet.contacts.tolist() == [[True, True, False, False]] * 2
    assert isinstance(pose, PoseKey)
    assert torch.equal(pose.poses.quats[0, SOMA.index["LeftArm"]], torch.tensor([0.6, 0, 0.8, 0]))
    assert torch.equal(pose.poses.quats[0, 0], SOMA.rest_quats[0])


def test_both_formats_may_stand_side_by_side(tmp_path: Path) -> None:
    entries = [{"type": "root2d", "frame_indices": [3], "smooth_root_2d": [[0, 1]]}, {"type": "heading", "frames": [3], "heading_degrees": [0]}]
    (tmp_path / "a.json").write_text(json.dumps(entries))
    assert [type(c).__name__ for c in load_constraints(tmp_path / "a.json", SOMA)] == ["RootPath", "Heading"]
    assert [type(c).__name__ for c in typed(tmp_path, *entries)] == ["RootPath", "Heading"]


def test_whether_the_first_wins_is_kept(tmp_path: Path) -> None:
    save_timeline(Timeline(prompts=(Prompt(text="walks."),), first_wins=True), tmp_path / "t.json")
    assert load_timeline(tmp_path / "t.json", skeleton("soma30")).first_wins
    (tmp_path / "meta.json").write_text('{"text": "walks.", "duration": 2}')
    assert load_timeline(tmp_path / "meta.json", skeleton("soma30")).first_wins
    (tmp_path / "t.json").write_text('{"bunraku_timeline": 1, "prompts": [{"text": "walks.", "seconds": 2}]}')
    assert not load_timeline(tmp_path / "t.json", skeleton("soma30")).first_wins


def test_fingers_come_and_go(tmp_path: Path) -> None:
    large = skeleton("soma77")
    save_constraints([some_constraint("pose", 1, large)], tmp_path / "c.json")
    (small,) = load_constraints(tmp_path / "c.json", SOMA)
    assert small.poses.skeleton is SOMA
    save_constraints([small], tmp_path / "c.json")
    (back,) = load_constraints(tmp_path / "c.json", large)
    assert back.poses.skeleton.name == "soma77"


def test_frames_follow_the_frame_rate(tmp_path: Path) -> None:
    at_60 = {"bunraku_timeline": 1, "fps": 60, "constraints": [{"type": "heading", "frames": [0, 59, 60], "heading_degrees": [0, 1, 2]}]}
    (tmp_path / "t.json").write_text(json.dumps(at_60))
    (c,) = load_constraints(tmp_path / "t.json", SOMA)
    assert c.frames.tolist() == [0, 30]
    assert load_constraints(tmp_path / "t.json", SOMA, fps=60)[0].frames.tolist() == [0, 59, 60]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"type": "heading", "frames": [1], "heading_degree": [0]}, "key 'heading_degree', which means nothing here; .*heading_degrees"),
        ({"type": "heading", "heading_degrees": [0]}, "says when by nothing; give 'frames'"),
        ({"type": "heading", "frames": [1], "seconds": [1], "heading_degrees": [0]}, "says when by frames and seconds"),
        ({"type": "heading", "from_frame": 5, "to_frame": 5, "heading_degrees": 0}, "from frame 5 to frame 5"),
        ({"type": "heading", "from_frame": 0, "to_frame": 10**9, "heading_degrees": 0}, "'to_frame'"),
        ({"type": "heading", "seconds": [-1], "heading_degrees": 0}, "no time from 0"),
        ({"type": "heading", "seconds": [], "heading_degrees": 0}, "'seconds'"),
        ({"type": "heading", "frames": [1], "heading_degrees": "north"}, "heading_degrees"),
        ({"type": "heading", "frames": [1, 2], "heading_degrees": [1, 2, 3]}, r"of the shape \[3\]; \[2\] is needed"),
        ({"type": "effector", "frames": [1], "effector": "tail", "position": [0, 0, 0]}, "names the effector 'tail'; one of left_hand"),
        ({"type": "effector", "frames": [1], "effector": "hips"}, "neither where nor how"),
        ({"type": "effector", "frames": [1], "effector": "hips", "quaternion_wxyz": [1, 1, 0, 0]}, "length 1.41421"),
        ({"type": "effector", "frames": [1], "effector": "hips", "position": [1, 2]}, r"\[1 3\] is needed|\[3\] is needed"),
        ({"type": "foot_plan", "frames": [1], "on_ground": ["left_elbow"]}, "some of left_foot, left_toe"),
        ({"type": "foot_plan", "frames": [1, 2], "on_ground": [[], [], []]}, "3 lists in 'on_ground' for 2 frames"),
        ({"type": "pose", "frames": [1], "joints": ["Tail"], "quaternions_wxyz": [[1, 0, 0, 0]], "root_position": [0, 0, 0]}, "joint 'Tail'.*Hips, Spine1"),
        ({"type": "pose", "frames": [1], "joints": ["Hips", "Hips"], "quaternions_wxyz": [[1, 0, 0, 0]] * 2, "root_position": [0, 0, 0]}, "twice"),
        ({"type": "pose", "frames": [1], "quaternions_wxyz": [[1, 0, 0, 0]], "root_position": [0, 0, 0]}, "each of the 30 joints"),
        ({"type": "pose", "frames": [1], "effectors": ["nose"], "quaternions_wxyz": [], "root_position": [0, 0, 0]}, "some of left_hand"),
        ({"type": "pose", "from_frame": 0, "to_frame": 999_999, "quaternions_wxyz": [[1, 0, 0, 0]], "root_position": [0, 0, 0]}, "name fewer frames"),
    ],
)
def test_a_sentence_for_each_mistake(tmp_path: Path, entry: dict, says: str) -> None:
    with pytest.raises(FormatProblem, match=says) as caught:
        typed(tmp_path, {"type": "heading", "frames": [0], "heading_degrees": 0}, entry)
    assert "t.json': constraints[1]" in str(caught.value)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"bunraku_timeline": 2}, "version 2; this program reads version 1"),
        ({"bunraku_timeline": 1, "prompt": []}, "key 'prompt', which means nothing"),
        ({"bunraku_timeline": 1, "fps": 0}, "0 frames per second"),
        ({"bunraku_timeline": 1, "fps": True}, "True as 'fps'"),
        ({"bunraku_timeline": 1, "prompts": [{"text": "a"}]}, r"prompts\[0\] has no 'seconds'"),
        ({"bunraku_timeline": 1, "prompts": [{"text": "a", "seconds": 1}, {"text": "b", "seconds": 0}]}, r"prompts\[1\]: the prompt 'b' cannot last 0 seconds"),
        ({"bunraku_timeline": 1, "prompts": [{"text": "a", "seconds": 1}] * 1001}, "1,001 prompts are too many"),
        ({"bunraku_timeline": 1, "prompts": {}}, "an object as 'prompts'"),
        ({"bunraku_timeline": 1, "seed": -1}, "-1 as 'seed'"),
        ({"bunraku_timeline": 1, "seed": 10**400}, "'seed'"),
        ({"bunraku_timeline": 1, "steps": 0}, "steps is 0"),
        ({"bunraku_timeline": 1, "loop": "yes"}, "'loop'"),
        ({"bunraku_timeline": 1, "guidance": {"txt": 1}}, "guidance has the key 'txt'"),
        ({"bunraku_timeline": 1, "heading_degrees": [1]}, "'heading_degrees'"),
        ({"texts": ["a", "b"], "durations": [1]}, r"'durations' of the shape \[1\]"),
        ({"text": "a", "duration": -1}, "cannot last -1"),
        ({"text": ["a"], "duration": 1}, "an array as 'text'"),
        ({"title": "a"}, "'title'; a timeline is an object with the key"),
        ([], "holds an array"),
    ],
)
def test_a_sentence_for_each_mistake_of_a_timeline(tmp_path: Path, document: object, says: str) -> None:
    (tmp_path / "t.json").write_text(json.dumps(document))
    with pytest.raises(FormatProblem, match=says):
        load_timeline(tmp_path / "t.json", SOMA)


def test_kimodos_own_description(tmp_path: Path) -> None:
    meta = {"texts": ["a", "b"], "durations": [3.5, 4], "num_samples": 2, "seed": 7, "diffusion_steps": 50, "extra": None}
    (tmp_path / "meta.json").write_text(json.dumps(meta | {"cfg": {"enabled": True, "text_weight": 1.0, "constraint_weight": 2.0}}))
    timeline = load_timeline(tmp_path, SOMA)
    assert timeline.prompts == (Prompt(text="a", seconds=3.5), Prompt(text="b", seconds=4.0))
    assert (timeline.samples, timeline.seed, timeline.steps, timeline.guided, timeline.guidance_text, timeline.guidance_constraint) == (
        2,
        7,
        50,
        True,
        1.0,
        2.0,
    )
    assert timeline.constraints == ()
    with pytest.raises(FormatProblem, match="prompts are read by load_timeline"):
        load_constraints(tmp_path / "meta.json", SOMA)
    with pytest.raises(FileProblem, match=r"no 'meta\.json'"):
        load_timeline(tmp_path.parent, SOMA)


def test_every_released_example_loads_and_passes(shared: Path) -> None:
    for meta in sorted((shared / "data" / "kimodo-examples").glob("*/meta.json")):
        body = skeleton("g1" if meta.parent.name.startswith("g1") else "soma77")
        timeline = load_timeline(meta.parent, body)
        assert check_constraints(timeline.constraints, skeleton=body, frames=timeline.frames(), fps=timeline.fps) == []
    for path in sorted((shared / "golden" / "kimodo").glob("*/constraints.json")):
        body = skeleton("g1" if path.parent.name.startswith("g1") else "soma30")
        assert check_constraints(load_constraints(path, body), skeleton=body, frames=60, fps=30.0) == []


def test_nothing_half_is_written(tmp_path: Path, unchecked_shapes: None) -> None:
    (tmp_path / "c.json").write_text("kept")
    with pytest.raises(BadValue, match="not finite"):
        save_constraints([Heading(frames=torch.tensor([0]), heading=torch.tensor([math.nan]))], tmp_path / "c.json")
    with pytest.raises(BadValue, match="no format 'xml'"):
        save_constraints([], tmp_path / "c.json", form="xml")  # type: ignore[arg-type]
    assert (tmp_path / "c.json").read_text() == "kept"
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]


# --- damage ---------------------------------------------------------------------------------------------------------


WRONG = [None, True, -1, 0, 1.5, 10**9, 1e308, 10**30, "", "left_hand", [], [[]], [None], {}, {"type": "pose"}, [[1, 2], [3]], [["a"]], "\ud800", [[[[1]]]]]


def mutated(value: object, rng: random.Random) -> object:
    """The document with one place in it damaged: replaced, removed, doubled or renamed."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        damage = rng.random()
        if damage < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if damage < 0.15:
            return {(k + "x" if k == key else k): v for k, v in value.items()}
        return value | {key: mutated(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        i = rng.randrange(len(value))
        damage = rng.random()
        if damage < 0.1:
            return value[:i] + value[i + 1 :]
        if damage < 0.2:
            return value + value[:1]
        return [*value[:i], mutated(value[i], rng), *value[i + 1 :]]
    return rng.choice(WRONG)


def documents(folder: Path) -> list[object]:
    constraints = [some_constraint(kind, i, rows=1) for i, kind in enumerate(TYPES)]
    save_timeline(Timeline(prompts=(Prompt(text="a"), Prompt(text="b")), constraints=tuple(constraints), heading=1.0, seed=1, steps=5), folder / "t.json")
    released = [c for c, kind in zip(constraints, TYPES, strict=True) if "path" in kind or kind in ("pose", "hand pose")]
    save_constraints(released, folder / "k.json", form="kimodo")
    meta = {"texts": ["a", "b"], "durations": [1.0, 2.0], "seed": 3, "cfg": {"enabled": True, "text_weight": 1.0}}
    return [json.loads((folder / "t.json").read_text()), json.loads((folder / "k.json").read_text()), meta]


def test_damage_is_always_named(tmp_path: Path) -> None:
    rng, refusals = random.Random(0), []
    originals = documents(tmp_path)
    for _ in range(200):
        document = rng.choice(originals)
        for _ in range(rng.randint(1, 2)):
            document = mutated(document, rng)
        text = json.dumps(document)
        if rng.random() < 0.1:
            text = text[: rng.randrange(len(text))]
        (tmp_path / "d.json").write_text(text)
        for load in (load_constraints, load_timeline):
            try:
                loaded = load(tmp_path / "d.json", SOMA)
                constraints = loaded.constraints if isinstance(loaded, Timeline) else loaded
                check_constraints(constraints, skeleton=SOMA, frames=300, fps=30.0)
                save_constraints(constraints, tmp_path / "again.json")
            except BunrakuError as error:
                refusals.append(str(error))
    assert len(refusals) > 100
    assert all(sentence and "\n" not in sentence and len(sentence) < 2000 for sentence in refusals)
