"""Reading BVH of any dialect, what is assumed and noted, and what is refused with which sentence."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bunraku.errors import BadValue, BunrakuError, FileProblem, FormatProblem, SkeletonProblem
from bunraku.files.axes import CMU_UNIT, Frame, rotations_to, vectors_to
from bunraku.files.bvh import load_bvh, save_bvh
from bunraku.files.bvh_grammar import _CHUNK, parse_bvh, parse_numbers
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import exp_quat, matrix_to_quat, quat_distance, quat_to_matrix

PLAIN = """HIERARCHY
ROOT Hips
{
  OFFSET 0 90 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Yrotation Xrotation
  JOINT Chest
  {
    OFFSET 0 50 2.5
    CHANNELS 3 Yrotation Xrotation Zrotation
    JOINT Head
    {
      OFFSET 1 30 0
      CHANNELS 3 Xrotation Zrotation Yrotation
      End Site
      {
        OFFSET 0 20 1
      }
    }
  }
}
MOTION
Frames: 2
Frame Time: 0.04
1 92 3 10 20 30 -40 50 60.5 7 8 9
2 93 4 11 21 31 -41 51 61.5 8 9 10
"""

ODD = """HIERARCHY
ROOT a
{
  OFFSET 1 2 3
  CHANNELS 4 Yposition Xrotation Zposition Yrotation
  JOINT b
  {
    OFFSET 10 20 30
    CHANNELS 5 Zrotation Xposition Yposition Xrotation Zposition
    JOINT c
    {
      OFFSET 5 50 7
      CHANNELS 1 Yrotation
      JOINT d
      {
        OFFSET 5 6 7
        CHANNELS 3 Yposition Xposition Zposition
        End Site
        {
          OFFSET 1 1 1
        }
      }
    }
  }
}
MOTION
Frames: 2
Frame Time: 0.04
5 30 6 40 1 2 3 4 5 6 6 5 7
50 -30 60 -40 10 20 30 40 50 60 6 5 7
"""


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Motion]:
    def _read(text: str | bytes, **options: float) -> Motion:
        path = tmp_path / "take.bvh"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return load_bvh(path, **options)

    return _read


def turn(axis: str, degrees: float) -> np.ndarray:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    i = "xyz".index(axis)
    R = np.eye(3)
    j, k = (i + 1) % 3, (i + 2) % 3
    R[j, j], R[j, k], R[k, j], R[k, k] = c, -s, s, c
    return R


def test_channels_turn_in_the_order_written(read: Callable[..., Motion]) -> None:
    motion = read(PLAIN)
    poses = forward_kinematics(motion)
    R_hips = turn("z", 10) @ turn("y", 20) @ turn("x", 30)
    R_chest = R_hips @ turn("y", -40) @ turn("x", 50) @ turn("z", 60.5)
    R_head = R_chest @ turn("x", 7) @ turn("z", 8) @ turn("y", 9)
    p_hips = np.array([0.01, 0.92, 0.03])
    p_chest = p_hips + R_hips @ [0, 0.50, 0.025]
    p_head = p_chest + R_chest @ [0.01, 0.30, 0]
    assert np.abs(poses.p_world_joint[0].numpy() - [p_hips, p_chest, p_head]).max() < 1e-6
    assert np.abs(poses.R_world_joint[0].numpy() - [R_hips, R_chest, R_head]).max() < 1e-6
    assert motion.fps == 25
    assert motion.quats.dtype == motion.root_position.dtype == torch.float32
    assert motion.skeleton.name == "take"
    assert motion.translations is None
    assert motion.skeleton.tips[2] == pytest.approx((0, 0.2, 0.01))
    assert motion.skeleton.offsets[0].tolist() == pytest.approx([0, 0.9, 0])
    assert motion.provenance.source.endswith("take.bvh")
    assert "0.01 m assumed" in motion.provenance.notes["unit"]


def test_any_subset_of_channels_and_positions_replace_offsets(read: Callable[..., Motion]) -> None:
    motion = read(ODD)
    poses = forward_kinematics(motion)
    R_a = turn("x", 30) @ turn("y", 40)
    R_b = R_a @ turn("z", 1) @ turn("x", 4)
    R_c = R_b @ turn("y", 6)
    p_a = np.array([1, 5, 6]) / 100  # the x axis has no channel and stays at its OFFSET
    p_b = p_a + R_a @ [0.02, 0.03, 0.05]
    p_c = p_b + R_b @ [0.05, 0.50, 0.07]
    p_d = p_c + R_c @ [0.05, 0.06, 0.07]
    assert np.abs(poses.p_world_joint[0].numpy() - [p_a, p_b, p_c, p_d]).max() < 1e-6
    assert motion.translations is not None
    assert torch.equal(motion.translations[:, 2:], motion.skeleton.offsets[2:].expand(2, -1, -1))


@pytest.mark.oracle
@pytest.mark.parametrize("text", [PLAIN, ODD])
def test_bvhio_agrees(read: Callable[..., Motion], tmp_path: Path, text: str) -> None:
    bvhio = pytest.importorskip("bvhio")
    motion = read(text)
    p_ours = forward_kinematics(motion).p_world_joint
    tree = bvhio.readAsHierarchy(str(tmp_path / "take.bvh"))
    for frame in range(2):
        tree.loadPose(frame, recursive=True)
        p_theirs = {joint.Name: torch.tensor(list(joint.PositionWorld)) / 100 for joint, _, _ in tree.layout()}
        for name, joint in motion.skeleton.index.items():
            assert (p_theirs[name] - p_ours[frame, joint]).norm() < 1e-5


DIALECTS = {
    "tabs": PLAIN.replace("  ", "\t").replace(" ", "\t"),
    "windows": PLAIN.replace("\n", "\r\n"),
    "old mac": PLAIN.replace("\n", "\r"),
    "blank lines": PLAIN.replace("\n", "  \n\n"),
    "brace on the line": PLAIN.replace("\n{", " {").replace("\n  {", "{").replace("\n      {", "  {  "),
    "byte order mark": "\ufeff" + PLAIN,
    "lower case": PLAIN.lower().replace("hips", "Hips").replace("chest", "Chest").replace("head", "Head"),
    "named end site": PLAIN.replace("End Site", "End Site HeadTop"),
    "no last newline": PLAIN.rstrip(),
    "one number a line": PLAIN[: PLAIN.index("1 92")] + "\n".join(PLAIN[PLAIN.index("1 92") :].split()),
    "exponents": PLAIN.replace("60.5", "6.05e1").replace(" 2.5", " +.25E+1"),
    "no space": PLAIN.replace("Frames: 2", "Frames:2").replace("Frame Time: 0.04", "Frame Time:.040"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dialects(read: Callable[..., Motion], dialect: str) -> None:
    expected, motion = read(PLAIN), read(DIALECTS[dialect])
    assert motion.skeleton.joints == ("Hips", "Chest", "Head")
    assert motion.fps == expected.fps
    assert torch.equal(motion.quats, expected.quats)
    assert torch.equal(motion.root_position, expected.root_position)
    assert torch.equal(motion.skeleton.offsets, expected.skeleton.offsets)
    assert motion.skeleton.tips == expected.skeleton.tips


def test_names(read: Callable[..., Motion]) -> None:
    motion = read(PLAIN.replace("ROOT Hips", "ROOT  mixamorig:Hips ").replace("JOINT Chest", "JOINT Upper {x} chest").replace("Head", "Kopf ü"))
    assert motion.skeleton.joints == ("mixamorig:Hips", "Upper {x} chest", "Kopf ü")
    assert "names" not in motion.provenance.notes
    motion = read(PLAIN.replace("Head", "Hips").replace("Chest", "Hips"))
    assert motion.skeleton.joints == ("Hips", "Hips.001", "Hips.002")
    assert "'Hips' → 'Hips.001'" in motion.provenance.notes["names"]


def test_many_joints_of_one_name_are_told_apart_in_one_pass() -> None:
    joint = "JOINT j { OFFSET 0 1 0 CHANNELS 0 }\n"
    text = f"HIERARCHY\nROOT j {{ OFFSET 0 0 0 CHANNELS 1 Xrotation\n{joint * 20_000}}}\nMOTION\nFrames: 1\nFrame Time: 0.1\n0\n"
    names = parse_bvh(text.replace("{", "\n{\n").encode(), "m.bvh").names
    assert names[:2] == ("j", "j.001")
    assert len(set(names)) == 20_001


@pytest.mark.parametrize(
    ("scale", "names", "unit"),
    [(1.0, ("Hips", "Chest"), 0.01), (0.01, ("Hips", "Chest"), 1.0), (0.2, ("Hips", "Chest"), 0.01), (0.2, ("LHipJoint", "RHipJoint"), CMU_UNIT)],
)
def test_the_unit_is_guessed_from_the_size_and_the_names(read: Callable[..., Motion], scale: float, names: tuple[str, str, str], unit: float) -> None:
    text = PLAIN.replace("Hips", names[0]).replace("Chest", names[1])
    for line in (line for line in PLAIN.splitlines() if "OFFSET" in line):
        text = text.replace(line, "OFFSET " + " ".join(str(float(word) * scale) for word in line.split()[1:]))
    motion = read(text)
    assert motion.skeleton.offsets[1].tolist() == pytest.approx([0, 50 * scale * unit, 2.5 * scale * unit])
    assert motion.root_position[0].tolist() == pytest.approx([unit, 92 * unit, 3 * unit])
    assert motion.provenance.notes["unit"].startswith(f"{unit:.6g} m assumed")
    given_unit = read(text, unit=0.5)
    assert given_unit.root_position[0].tolist() == pytest.approx([0.5, 46, 1.5])
    assert "unit" not in given_unit.provenance.notes


@pytest.mark.parametrize("unit", [0.0, -1.0, math.nan, math.inf])
def test_a_unit_is_positive(read: Callable[..., Motion], unit: float) -> None:
    with pytest.raises(BadValue, match="positive number of metres"):
        read(PLAIN, unit=unit)


@pytest.mark.parametrize(
    ("frame_time", "fps"),
    [
        (".0083333", 120),
        ("0.033333", 30),
        ("0.0333", 30),
        ("0.03333333333333333", 30),
        ("0.0333667000333667", 29.97),
        ("1", 1),
        ("2.5", 0.4),
        ("1e-2", 100),
        ("0.05", 20),
        ("0.03", 33.3333333),
    ],
)
def test_frame_rates_are_whole_where_the_digits_allow(read: Callable[..., Motion], frame_time: str, fps: float) -> None:
    motion = read(PLAIN.replace("0.04", frame_time))
    assert motion.fps == pytest.approx(fps, rel=1e-14)
    assert ("fps" in motion.provenance.notes) == (frame_time == "0.0333")


def test_a_body_along_z_is_stood_up(tmp_path: Path) -> None:
    body = skeleton("cmu23")
    ours = Motion(skeleton=body, fps=30.0, root_position=torch.tensor([[0.1, 0.9, 0.2]]).expand(4, 3), quats=exp_quat(0.3 * torch.randn(4, 23, 3)))
    z_up = Skeleton(
        name="z",
        joints=body.joints,
        parents=body.parents,
        offsets=vectors_to(Frame.Z_UP_Y_BACK, body.offsets),
        tips={joint: tuple(vectors_to(Frame.Z_UP_Y_BACK, torch.tensor(tip)).tolist()) for joint, tip in body.tips.items()},
    )
    theirs = Motion(
        skeleton=z_up,
        fps=30.0,
        root_position=vectors_to(Frame.Z_UP_Y_BACK, ours.root_position),
        quats=matrix_to_quat(rotations_to(Frame.Z_UP_Y_BACK, quat_to_matrix(ours.quats))),
    )
    save_bvh(theirs, tmp_path / "z.bvh")
    back = load_bvh(tmp_path / "z.bvh")
    assert "Z-up" in back.provenance.notes["up"]
    assert back.skeleton is body
    assert (forward_kinematics(back).p_world_joint - forward_kinematics(ours).p_world_joint).abs().max() < 1e-5
    save_bvh(ours, tmp_path / "y.bvh")
    assert "up" not in load_bvh(tmp_path / "y.bvh").provenance.notes


def test_a_body_on_four_legs_stands_already(read: Callable[..., Motion]) -> None:
    """Its head lies along +Z from its hind feet, its hips above them."""
    lines = ["HIERARCHY", "ROOT Hips", "{", "OFFSET 0 80 0", "CHANNELS 3 Zrotation Yrotation Xrotation"]
    for side, x in (("Left", 15), ("Right", -15)):
        for name, offset in (("UpLeg", f"{x} 0 0"), ("Leg", "0 -40 5"), ("Foot", "0 -38 -5")):
            lines += [f"JOINT {side}{name}", "{", f"OFFSET {offset}", "CHANNELS 3 Zrotation Yrotation Xrotation"]
        lines += ["End Site", "{", "OFFSET 0 -2 8", "}", "}", "}", "}"]
    for name, offset in (("Spine", "0 0 60"), ("Neck", "0 5 60"), ("Head", "0 -30 60")):
        lines += [f"JOINT {name}", "{", f"OFFSET {offset}", "CHANNELS 3 Zrotation Yrotation Xrotation"]
    lines += ["End Site", "{", "OFFSET 0 0 20", "}", "}", "}", "}", "}", "MOTION", "Frames: 1", "Frame Time: 0.04", " ".join(["0"] * 30)]
    motion = read("\n".join(lines))
    assert motion.skeleton.has("hips", "head", "left_foot", "right_foot")
    assert "up" not in motion.provenance.notes


def test_a_wrapper_that_moves_is_folded_in(tmp_path: Path) -> None:
    ours = Motion(skeleton=skeleton("soma30"), fps=30.0, root_position=torch.randn(3, 3), quats=exp_quat(torch.randn(3, 30, 3)))
    save_bvh(ours, tmp_path / "k.bvh")
    lines = (tmp_path / "k.bvh").read_text().splitlines()
    moved = [line.replace(" ".join(["0.000000"] * 6), "100 0 50 0 90 0", 1) for line in lines]
    (tmp_path / "k.bvh").write_text("\n".join(moved))
    back = load_bvh(tmp_path / "k.bvh")
    assert back.skeleton is skeleton("soma30")
    assert "folded" in back.provenance.notes["wrapper"]
    R = torch.from_numpy(turn("y", 90)).float()
    p_expected = forward_kinematics(ours).p_world_joint @ R.T + torch.tensor([1.0, 0, 0.5])
    assert (forward_kinematics(back).p_world_joint - p_expected).abs().max() < 1e-5


def test_library_names_on_other_bones_are_kept_as_they_are(tmp_path: Path) -> None:
    body = skeleton("smplx22")
    taller = Skeleton(name="tall", joints=body.joints, parents=body.parents, offsets=body.offsets * 1.1)
    save_bvh(Motion(skeleton=taller, fps=30.0, root_position=torch.zeros(1, 3), quats=exp_quat(torch.randn(1, 22, 3))), tmp_path / "tall one.bvh")
    back = load_bvh(tmp_path / "tall one.bvh")
    assert back.skeleton.name == "tall one"
    assert back.skeleton.joints == body.joints
    assert "other bones" in back.provenance.notes["skeleton"]
    assert (back.skeleton.offsets - taller.offsets).abs().max() < 1e-6
    assert dict(back.skeleton.roles) == dict(body.roles)


def drop(text: str, part: str) -> str:
    assert part in text
    return text.replace(part, "", 1)


BAD = {
    "empty": ("", FormatProblem, "no MOTION"),
    "something else": ("<html></html>", FormatProblem, "no MOTION"),
    "no hierarchy line": (drop(PLAIN, "HIERARCHY"), FormatProblem, "begins with the line HIERARCHY"),
    "no root": ("HIERARCHY\nMOTION\nFrames: 1\nFrame Time: 1\n", FormatProblem, "before its last '}'"),
    "cut in the header": (PLAIN[:200], FormatProblem, "no MOTION"),
    "brace missing": (drop(PLAIN, "}\nMOTION").replace("Frames", "MOTION\nFrames"), FormatProblem, "before its last '}'"),
    "brace too many": (PLAIN.replace("MOTION", "}\nMOTION"), FormatProblem, "line 21: '}' stands outside"),
    "cut after motion": (PLAIN[: PLAIN.index("Frame Time")], FormatProblem, "Frame Time: SECONDS"),
    "cut in the numbers": (PLAIN[: PLAIN.index("4 11")], FormatProblem, "claims 2 frames of 12 numbers but holds 14"),
    "cut in a number": (PLAIN[: PLAIN.index("1.5 8 9")] + "-", FormatProblem, "'6-'"),
    "more frames than claimed": (PLAIN.replace("Frames: 2", "Frames: 1"), FormatProblem, "claims 1 frames of 12 numbers but holds 24"),
    "zero frames": (PLAIN[: PLAIN.index("1 92")].replace("Frames: 2", "Frames: 0"), FormatProblem, "'0' frames"),
    "negative frames": (PLAIN.replace("Frames: 2", "Frames: -2"), FormatProblem, "'-2' frames"),
    "frames are a word": (PLAIN.replace("Frames: 2", "Frames: two"), FormatProblem, "'two' frames"),
    "frame time 0": (PLAIN.replace("0.04", "0"), FormatProblem, "Frame Time '0'"),
    "frame time negative": (PLAIN.replace("0.04", "-0.04"), FormatProblem, "Frame Time '-0.04'"),
    "frame time nan": (PLAIN.replace("0.04", "nan"), FormatProblem, "Frame Time 'nan'"),
    "frame time a word": (PLAIN.replace("0.04", "fast"), FormatProblem, "Frame Time 'fast'"),
    "nan": (PLAIN.replace("60.5", "nan"), FormatProblem, r"not finite \(frame 1, column 9\)"),
    "infinite": (PLAIN.replace("61.5", "-inf"), FormatProblem, r"not finite \(frame 2, column 9\)"),
    "a word among numbers": (PLAIN.replace("60.5", "sixty"), FormatProblem, "'sixty'"),
    "two dots": (PLAIN.replace("60.5", "6.0.5"), FormatProblem, "'6.0.5'"),
    "decimal comma": (PLAIN.replace("60.5", "60,5"), FormatProblem, "'60,5'"),
    "two roots": (PLAIN.replace("MOTION", PLAIN[PLAIN.index("ROOT") : PLAIN.index("MOTION")] + "MOTION"), SkeletonProblem, "two ROOTs"),
    "root in root": (PLAIN.replace("JOINT Chest", "ROOT Chest"), SkeletonProblem, "two ROOTs"),
    "joint in end site": (PLAIN.replace("OFFSET 0 20 1", "OFFSET 0 20 1\nJOINT x\n{\n}"), FormatProblem, "JOINT x stands outside"),
    "first joint is no root": (PLAIN.replace("ROOT", "JOINT"), FormatProblem, "JOINT Hips stands outside"),
    "no offset": (drop(PLAIN, "OFFSET 0 50 2.5"), FormatProblem, "'Chest' has no OFFSET"),
    "offset of two": (drop(PLAIN, " 2.5"), FormatProblem, "'Chest' needs three numbers"),
    "offset nan": (PLAIN.replace("0 50 2.5", "0 nan 2.5"), FormatProblem, "'Chest' is not finite"),
    "unknown channel": (PLAIN.replace("Xrotation Zrotation\n", "Xrotation Zscale\n"), FormatProblem, "line 9: joint 'Chest' has a channel 'Zscale'"),
    "channel missing": (PLAIN.replace("CHANNELS 3 X", "CHANNELS 4 X"), FormatProblem, "channel 'End'"),
    "channel too many": (PLAIN.replace("CHANNELS 3 Y", "CHANNELS 2 Y"), FormatProblem, "'Zrotation' is not expected"),
    "position twice": (PLAIN.replace("Xposition Yposition", "Xposition Xposition"), FormatProblem, "twice"),
    "no channels": (PLAIN.replace("CHANNELS 6", "").replace("CHANNELS 3", "").replace("position", "").replace("rotation", ""), FormatProblem, "not expected"),
    "all joints still": ("HIERARCHY\nROOT a\n{\nOFFSET 0 0 0\nCHANNELS 0\n}\nMOTION\nFrames: 1000000000\nFrame Time: 1\n", FormatProblem, "no joint a channel"),
    "no brace": (PLAIN.replace("ROOT Hips\n{", "ROOT Hips\n"), FormatProblem, "'{' is missing after 'Hips'"),
    "latin-1": (PLAIN.replace("Hips", "Hüfte").encode("latin-1"), FormatProblem, "not UTF-8"),
    "binary": (bytes(range(256)) * 4, FormatProblem, "no MOTION"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_say_what_is_wrong(read: Callable[..., Motion], case: str) -> None:
    text, kind, message = BAD[case]
    with pytest.raises(kind, match=message) as caught:
        read(text)
    assert "take.bvh" in str(caught.value)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@given(cut=st.integers(0, len(PLAIN) - 10))
def test_no_truncation_passes_or_escapes(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "take.bvh"
    path.write_text(PLAIN[:cut])
    with pytest.raises(BunrakuError):
        load_bvh(path)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="no file"):
        load_bvh(tmp_path / "not there.bvh")
    with pytest.raises(FileProblem, match="folder"):
        load_bvh(tmp_path)


def test_a_claim_of_a_milliard_frames_allocates_nothing(read: Callable[..., Motion]) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(FormatProblem, match="claims 1000000000 frames"):
            read(PLAIN.replace("Frames: 2", "Frames: 1000000000"))
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_deep_trees_and_hostile_white_space(read: Callable[..., Motion]) -> None:
    depth = 3000
    joints = "".join(f"{'JOINT' if i else 'ROOT'} j{i}\n{{\nOFFSET 0 1 0\nCHANNELS 1 Xrotation\n" for i in range(depth))
    motion = read(f"HIERARCHY\n{joints}{'}' * depth}\nMOTION\nFrames: 1\nFrame Time: 1\n{' 0' * depth}\n", unit=0.01)
    assert len(motion.skeleton) == depth
    assert forward_kinematics(motion).p_world_joint[0, -1].tolist() == pytest.approx([0, 30, 0], rel=1e-4)
    spaces = " " * 300_000
    assert read(PLAIN.replace("ROOT", f"ROOT{spaces}").replace("MOTION", f"\n{spaces}\n" * 3 + "MOTION")).skeleton.joints[0] == "Hips"
    for text in (f"HIERARCHY\nROOT a{spaces}\nMOTION {spaces}", "\n" * 300_000 + "x", f"HIERARCHY\nEnd Site{spaces}\nMOTION\nFrames: 1"):
        with pytest.raises(FormatProblem):
            read(text)


def test_one_joint_alone(read: Callable[..., Motion]) -> None:
    motion = read("HIERARCHY\nROOT camera\n{\nOFFSET 0 0 0\nCHANNELS 3 Xposition Yposition Zposition\n}\nMOTION\nFrames: 1\nFrame Time: 0.1\n100 200 300\n")
    assert motion.root_position.tolist() == [pytest.approx([1, 2, 3])]
    assert quat_distance(motion.quats, torch.tensor([1.0, 0, 0, 0])).max() == 0


DECIMAL = st.one_of(
    st.floats(-1e6, 1e6).map(lambda x: f"{x:.6f}"),
    st.floats(-1e4, 1e4).map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["-.5", "+5.", "007.250", "-0.0", "0", "1e3"]),
)


@given(words=st.lists(DECIMAL, max_size=12), gap=st.sampled_from([" ", "\n", "\t \r\n"]))
def test_numbers_are_what_python_reads(words: list[str], gap: str) -> None:
    text = gap.join(words).encode()
    assert parse_numbers(b"xyz" + text, 3, "x").tolist() == pytest.approx([float(word) for word in words], rel=1e-15, abs=0)


@pytest.mark.parametrize("text", ["9007199254740993.5 1.5", "12345678901234567890 -7", "0.00000000000000000000000125 2.5", "-0.5 .5", "5. 6"])
def test_numbers_too_long_for_the_quick_way(text: str) -> None:
    assert parse_numbers(text.encode(), 0, "x").tolist() == [float(word) for word in text.split()]


@pytest.mark.parametrize("text", ["1.2.3 5", "5 1.2.3", ". 5", "5 .", "- 1", "1-2 3", "1.-2 3", "1_0 2", "0x10 1", "1 2 \x00"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(FormatProblem, match="among its motion numbers"):
        parse_numbers(text.encode(), 0, "x")


def test_numbers_across_chunks() -> None:
    values = np.random.default_rng(0).uniform(-180, 180, _CHUNK // 3).round(6)
    text = " ".join(map(repr, values.tolist()))
    assert len(text) > 3 * _CHUNK
    assert np.array_equal(parse_numbers(text.encode(), 0, "x"), values)
