"""Roles from names and geometry: one human body under the names of many tools, and trees that differ from it."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from role_cases import BODY, LIMBS, TOOLS, TREES, TRUNK

from bunraku.errors import BadValue, FileProblem, FormatProblem
from bunraku.kinematics.joint_names import parse
from bunraku.kinematics.library import skeleton, skeleton_names
from bunraku.kinematics.roles import infer_roles, with_roles
from bunraku.kinematics.skeleton import ROLES, Skeleton


def build(names: dict[str, str], extra: dict[str, tuple[str, tuple[float, float, float]]] | None = None, *, right_first: bool = False) -> Skeleton:
    """The body under `names` (key of BODY → joint name), with further joints `name → (parent key, world position)` appended."""
    sides = ("right", "left") if right_first else ("left", "right")
    rows = []
    for key, (parent, place) in BODY.items():
        for side in sides if "{s}" in key else ("left",):
            x = -place[0] if side == "right" else place[0]
            rows.append((key.format(s=side), parent and parent.format(s=side), (x, *place[1:])))
    at = {key: torch.tensor(place, dtype=torch.float32) for key, _, place in rows}
    joints, keys = [names[key] for key, _, _ in rows], [key for key, _, _ in rows]
    parents = [-1 if parent is None else keys.index(parent) for _, parent, _ in rows]
    offsets = [at[key] - (at[parent] if parent else 0) for key, parent, _ in rows]
    for name, (parent, place) in (extra or {}).items():
        joints.append(name)
        parents.append(keys.index(parent))
        offsets.append(torch.tensor(place) - at[parent])
    return Skeleton(name="body", joints=tuple(joints), parents=tuple(parents), offsets=torch.stack(offsets))


def names_of(tool: str) -> dict[str, str]:
    trunk, left, (l_word, r_word) = TOOLS[tool]
    separator = "|" if "|" in trunk else None
    names = dict(zip(TRUNK, trunk.split(separator), strict=True))
    for part, name in zip(LIMBS, left.split(separator), strict=True):
        right = name.removesuffix(l_word) + r_word if name.endswith(l_word) else name.replace(l_word, r_word, 1)
        if l_word == "l":
            right = "r" + name[1:]
        names |= {f"left_{part}": name, f"right_{part}": right}
    return names


def roles_by_name(skeleton: Skeleton) -> dict[str, str]:
    return {role: skeleton.joints[joint] for role, joint in infer_roles(skeleton).items()}


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_s_names_give_every_role(tool: str) -> None:
    names = names_of(tool)
    expected = {role: names[role] for role in ROLES}
    assert roles_by_name(build(names)) == expected
    assert roles_by_name(build(names, right_first=True)) == expected


@pytest.mark.parametrize("name", skeleton_names())
def test_library_skeletons_keep_their_own_roles(name: str) -> None:
    known = skeleton(name)
    bare = Skeleton(name="read from a file", joints=known.joints, parents=known.parents, offsets=known.offsets, rest_quats=known.rest_quats)
    assert infer_roles(bare) == dict(known.roles)


def test_unnamed_biped_by_shape_alone() -> None:
    names = {key.format(s=side): "" for key in BODY for side in ("left", "right")}
    names = {key: f"Joint{i}" for i, key in enumerate(names)}
    assert roles_by_name(build(names)) == {role: names[role] for role in ROLES}


def test_unnamed_biped_that_faces_away_has_its_sides_swapped() -> None:
    names = {key: f"Joint{i}" for i, key in enumerate(key.format(s=side) for key in BODY for side in ("left", "right"))}
    body = build(names)
    away = Skeleton(name="away", joints=body.joints, parents=body.parents, offsets=body.offsets * torch.tensor([1.0, 1.0, -1.0]))
    assert roles_by_name(away)["left_foot"] == names["right_foot"]


def test_unnamed_shapes_that_are_no_biped_get_no_role() -> None:
    snake = Skeleton(name="snake", joints=tuple("abcdef"), parents=(-1, 0, 1, 2, 3, 4), offsets=torch.tensor([[0.0, 0, 0]] + [[0, 0, 0.2]] * 5))
    assert infer_roles(snake) == {}
    arms = torch.tensor([[0.0, 0, 0], [1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])
    star = Skeleton(name="star", joints=tuple("abcde"), parents=(-1, 0, 0, 0, 0), offsets=arms)
    assert infer_roles(star) == {}


def test_sides_from_the_x_coordinate_where_names_are_silent() -> None:
    names = names_of("unreal")
    silent = {key: (name.removesuffix("_l").removesuffix("_r") + (".001" if key.startswith("right") else "")) for key, name in names.items()}
    assert roles_by_name(build(silent)) == {role: silent[role] for role in ROLES}


def test_controls_and_helpers_never_win() -> None:
    names = names_of("metarig")
    extra = {
        "ORG-thigh.L": ("hips", (0.1, 0.92, 0.0)),
        "MCH-foot.L": ("hips", (0.1, 0.09, 0.0)),
        "IK-foot.L": ("hips", (0.1, 0.09, 0.0)),
        "kneeIK.L": ("hips", (0.1, 0.5, 0.6)),
        "thigh_ik.L": ("hips", (0.1, 0.92, 0.0)),
        "PoleTarget.L": ("hips", (0.1, 0.5, 1.0)),
        "handslot.l": ("left_hand", (0.8, 1.45, 0.0)),
        "upper_arm_twist.L": ("left_shoulder", (0.3, 1.45, 0.0)),
        "control-toe-roll.L": ("hips", (0.1, 0.02, 0.2)),
    }
    assert roles_by_name(build(names, extra)) == {role: names[role] for role in ROLES}


def test_wrist_is_the_hand_even_when_a_hand_hangs_below_it() -> None:
    names = names_of("quaternius")
    body = build(names, {"Hand.L": ("left_hand", (0.75, 1.45, 0.0)), "Hand.R": ("right_hand", (-0.75, 1.45, 0.0))})
    assert roles_by_name(body)["left_hand"] == "Wrist.L"


def test_detached_foot_is_found_by_name_and_side() -> None:
    names = names_of("quaternius")
    body = build(names)
    loose = list(body.parents)
    p = {name: torch.tensor(place) for name, place in (("Foot.L", (0.1, 0.09, 0.0)), ("Foot.R", (-0.1, 0.09, 0.0)))}
    offsets = body.offsets.clone()
    for name, place in p.items():
        loose[body.index[name]] = 0
        offsets[body.index[name]] = place - body.offsets[0]
    raw = Skeleton(name="raw", joints=body.joints, parents=tuple(loose), offsets=offsets)
    assert roles_by_name(raw) == {role: names[role] for role in ROLES}


def tree_from_text(text: str) -> Skeleton:
    """A skeleton from lines of `name x y z`, one more space for each step down the tree."""
    lines = [line for line in text.splitlines() if line.strip()]
    margin = len(lines[0]) - len(lines[0].lstrip())
    open_joints: list[int] = []
    joints, parents, places = [], [], []
    for line in lines:
        depth = len(line) - len(line.lstrip()) - margin
        name, *place = line.strip().rsplit(" ", 3)
        del open_joints[depth:]
        parents.append(open_joints[-1] if open_joints else -1)
        open_joints.append(len(joints))
        joints.append(name)
        places.append([float(value) for value in place])
    p = torch.tensor(places)
    offsets = torch.stack([p[i] - (p[parent] if parent >= 0 else 0) for i, parent in enumerate(parents)])
    return Skeleton(name="text", joints=tuple(joints), parents=tuple(parents), offsets=offsets)


@pytest.mark.parametrize("tree", TREES)
def test_trees_that_differ_from_the_plain_body(tree: str) -> None:
    text, listed = TREES[tree]
    expected = dict(item.strip().split("=") for item in listed.split(","))
    roles = roles_by_name(tree_from_text(text))
    assert {role: roles.get(role, "none") for role in expected} == expected


@pytest.mark.parametrize(
    ("name", "side", "part", "control"),
    [
        ("mixamorig:LeftUpLeg", "left", "thigh", False),
        ("Bip01 R Calf", "right", "shin", False),
        ("LHipJoint", "left", "hip", False),
        ("lThigh", "left", "thigh", False),
        ("rightupleg", "right", "thigh", False),
        ("DEF-upper_arm.L.001", "left", "upperarm", False),
        ("PalmR.L", "left", "palm", False),
        ("b_LeftForeArm_010", "left", "forearm", False),
        ("MCH-foot_roll.L", "left", "foot", True),
        ("LeftToe_End", "left", "toe", True),
        ("Head", None, "head", False),
        ("Root", None, None, False),
    ],
)
def test_words_of_a_name(name: str, side: str | None, part: str | None, control: bool) -> None:
    parsed = parse(name)
    assert (parsed.side, parsed.part, parsed.control) == (side, part, control)


LIMB_NAMES = "Thigh UpLeg Leg Knee Shin Foot Ankle Toe Shoulder Arm ForeArm Elbow Hand Wrist Hip"
TRUNK_NAMES = "Hips Pelvis Spine Spine1 Chest Neck Head Body root Joint Tail IK-foot.L FrontUpperLeg.L BackUpperLeg.L"
VOCABULARY = [*TRUNK_NAMES.split(), *(side + part for side in ("Left", "Right", "l_", "") for part in LIMB_NAMES.split())]


@given(st.integers(0, 2**31))
@settings(max_examples=200)
def test_names_in_any_disorder_give_each_joint_one_part_at_most(seed: int) -> None:
    generator = random.Random(seed)
    count = generator.randint(1, 30)
    names = tuple(f"{generator.choice(VOCABULARY)}.{i}" for i in range(count))
    parents = (-1, *(generator.randrange(joint) for joint in range(1, count)))
    body = Skeleton(name="any", joints=names, parents=parents, offsets=torch.randn(count, 3, generator=torch.Generator().manual_seed(seed)))
    roles = infer_roles(body)
    assert set(roles) <= set(ROLES)
    assert len(set(roles.values())) == len(roles), {role: names[joint] for role, joint in roles.items()}
    for side in ("left", "right"):
        for above, below in (("hip", "knee"), ("shoulder", "elbow")):
            if {f"{side}_{above}", f"{side}_{below}"} <= set(roles):
                assert roles[f"{side}_{above}"] in body.ancestors(roles[f"{side}_{below}"])


def test_a_thousand_joints_are_read_at_once() -> None:
    joints = 1000
    flat = Skeleton(name="flat", joints=tuple(f"Joint{i}" for i in range(joints)), parents=(-1, *[0] * (joints - 1)), offsets=torch.randn(joints, 3))
    chain = Skeleton(name="chain", joints=flat.joints, parents=tuple(range(-1, joints - 1)), offsets=torch.randn(joints, 3))
    start = time.perf_counter()
    assert infer_roles(flat) == {}
    assert infer_roles(chain) == {}
    assert time.perf_counter() - start < 5


# --- roles given by the user ----------------------------------------------------------------------------------------


def test_a_roles_file_adds_replaces_and_removes(tmp_path: Path) -> None:
    body = build(names_of("unreal"))
    body = with_roles(body, roles_by_name(body))
    path = tmp_path / "rôles of mine.json"
    path.write_text(json.dumps({"left_foot": "ball_l", "left_toe": None, "neck": None}), encoding="utf-8")
    changed = with_roles(body, path)
    assert changed.joints[changed.role("left_foot")] == "ball_l"
    assert {role for role in ROLES if changed.has(role)} == set(ROLES) - {"neck", "left_toe"}
    assert with_roles(changed, {"left_foot": "foot_l", "left_toe": "ball_l", "neck": "neck_01"}).roles == body.roles


@pytest.mark.parametrize(
    ("given", "spare"),
    [
        ({"left_foot": "ball_l", "left_toe": "ball_l"}, "left_toe"),
        ({"left_foot": "ball_l"}, "left_toe"),
        ({"left_toe": "foot_l"}, "left_foot"),
        ({"left_foot": "foot_r"}, "right_foot"),
    ],
)
def test_one_joint_cannot_play_two_roles(given: dict[str, str], spare: str) -> None:
    """Neither two roles of the file nor one of the file and one that is there already, which is then the one to take away."""
    body = build(names_of("unreal"))
    body = with_roles(body, roles_by_name(body))
    with pytest.raises(BadValue, match=r"are both played by the joint '(ball_l|foot_l|foot_r)'") as problem:
        with_roles(body, given)
    assert f'take one role away with {{"{spare}": null}}.' in str(problem.value)


def test_two_joints_may_change_roles() -> None:
    body = build(names_of("unreal"))
    body = with_roles(body, roles_by_name(body))
    swapped = with_roles(body, {"left_foot": "foot_r", "right_foot": "foot_l"})
    assert (swapped.role("left_foot"), swapped.role("right_foot")) == (body.role("right_foot"), body.role("left_foot"))


@pytest.mark.parametrize("name", skeleton_names())
def test_no_library_skeleton_gives_a_joint_two_roles(name: str) -> None:
    assert len(set(skeleton(name).roles.values())) == len(skeleton(name).roles)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"left_fot": "foot_l"}, ["no role 'left_fot'", "closest is 'left_foot'"]),
        ({"left_foot": "fot_l"}, ["'fot_l'", "does not have", "closest is 'foot_l'"]),
        ({"left_foot": 7}, ["7", "does not have"]),
        ({"left_foot": ["foot_l"]}, ["does not have"]),
    ],
)
def test_unknown_roles_and_joints_name_the_closest_match(data: dict[str, object], words: list[str]) -> None:
    with pytest.raises(BadValue) as problem:
        with_roles(build(names_of("unreal")), data)
    assert all(word in str(problem.value) for word in words)


def test_roles_files_that_cannot_be_read(tmp_path: Path) -> None:
    body = build(names_of("unreal"))
    with pytest.raises(FileProblem, match="cannot read the roles file"):
        with_roles(body, tmp_path / "missing.json")
    (tmp_path / "torn.json").write_text('{"left_foot": ')
    with pytest.raises(FormatProblem, match="not JSON"):
        with_roles(body, tmp_path / "torn.json")
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(FormatProblem, match="one object"):
        with_roles(body, tmp_path / "list.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatProblem, match="not JSON"):
        with_roles(body, tmp_path / "bytes.json")
