"""FBX, read from a small text file written here: curves, units, axes, pivots, several clips, and files that are broken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from bunraku.errors import FileProblem, FormatProblem
from bunraku.files import fbx
from bunraku.files.fbx import load_fbx_motion
from bunraku.kinematics.forward import forward_kinematics, rest_poses

pytest.importorskip("ufbx")

SECOND = 46_186_158_000  # FBX's ticks


def prop(name: str, kind: str, *values: float) -> str:
    return f'P: "{name}", "{kind}", "", "A",{",".join(map(str, values))}\n'


def bone(number: int, name: str, *properties: str) -> str:
    return f"""
    Model: {number}, "Model::{name}", "LimbNode" {{
        Version: 232
        Properties70:  {{
            {"".join(properties)}
        }}
    }}
    NodeAttribute: {number + 100}, "NodeAttribute::", "LimbNode" {{
        TypeFlags: "Skeleton"
    }}"""


def curve(number: int, values: list[float]) -> str:
    times = ",".join(str(i * SECOND // 30) for i in range(len(values)))
    return f"""
    AnimationCurve: {number}, "AnimCurve::", "" {{
        Default: 0
        KeyVer: 4009
        KeyTime: *{len(values)} {{
            a: {times}
        }}
        KeyValueFloat: *{len(values)} {{
            a: {",".join(map(str, values))}
        }}
        KeyAttrFlags: *1 {{
            a: 4
        }}
        KeyAttrDataFloat: *4 {{
            a: 0,0,0,0
        }}
        KeyAttrRefCount: *1 {{
            a: {len(values)}
        }}
    }}"""


def clip(number: int, name: str, values: list[float]) -> tuple[str, str]:
    """An animation of the hips' turn about x [degrees], and what it is connected to."""
    stop = (len(values) - 1) * SECOND // 30
    objects = f"""
    AnimationStack: {number}, "AnimStack::{name}", "" {{
        Properties70:  {{
            P: "LocalStart", "KTime", "Time", "",0
            P: "LocalStop", "KTime", "Time", "",{stop}
        }}
    }}
    AnimationLayer: {number + 1}, "AnimLayer::Base", "" {{
    }}
    AnimationCurveNode: {number + 2}, "AnimCurveNode::R", "" {{
        Properties70:  {{
            P: "d|X", "Number", "", "A",0
            P: "d|Y", "Number", "", "A",0
            P: "d|Z", "Number", "", "A",0
        }}
    }}{curve(number + 3, values)}"""
    links = [f'"OO",{number + 1},{number}', f'"OO",{number + 2},{number + 1}', f'"OP",{number + 2},1, "Lcl Rotation"', f'"OP",{number + 3},{number + 2}, "d|X"']
    return objects, "".join(f"    C: {link}\n" for link in links)


def document(bones: list[str], links: list[str], clips: list[tuple[str, str]], *, up: str = "Y", unit: float = 1.0, mode: int = 6) -> str:
    """`unit`: centimetres per unit. `mode` 6 is 30 frames per second, 11 is 24. Z up has −y in front, as Blender."""
    axes = {"Y": (1, 1, 2, 1), "Z": (2, 1, 1, -1)}[up]
    settings = [("UpAxis", axes[0]), ("UpAxisSign", axes[1]), ("FrontAxis", axes[2]), ("FrontAxisSign", axes[3]), ("CoordAxis", 0), ("CoordAxisSign", 1)]
    return f"""; FBX 7.4.0 project file
FBXHeaderExtension:  {{
    FBXHeaderVersion: 1003
    FBXVersion: 7400
}}
GlobalSettings:  {{
    Version: 1000
    Properties70:  {{
        {"".join(f'P: "{name}", "int", "Integer", "",{value}' + chr(10) for name, value in settings)}
        P: "UnitScaleFactor", "double", "Number", "",{unit}
        P: "TimeMode", "enum", "", "",{mode}
    }}
}}
Objects:  {{
{"".join(bones)}{"".join(objects for objects, _ in clips)}
}}
Connections:  {{
{"".join(f"    C: {link}{chr(10)}" for link in links)}{"".join(connections for _, connections in clips)}
}}
"""


LINKS = ['"OO",1,0', '"OO",2,1', '"OO",101,1', '"OO",102,2']
SWING = clip(20, "swing", [0.0, 45.0, 90.0])


def leg(axis: int, *extra: str) -> list[str]:
    """Hips 100 units up an axis, the knee 50 below."""
    up, down = [0.0] * 3, [0.0] * 3
    up[axis], down[axis] = 100.0, -50.0
    return [bone(1, "Hips", prop("Lcl Translation", "Lcl Translation", *up), *extra), bone(2, "Knee", prop("Lcl Translation", "Lcl Translation", *down))]


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "ein Bein.fbx"
    path.write_text(text)
    return path


def test_curves_are_read_in_metres(tmp_path: Path) -> None:
    motion = load_fbx_motion(write(tmp_path, document(leg(1), LINKS, [SWING])))
    assert motion.skeleton.joints == ("Hips", "Knee")
    assert motion.fps == 30
    h = 0.5**1.5
    expected = torch.tensor([[[0, 1, 0], [0, 0.5, 0]], [[0, 1, 0], [0, 1 - h, -h]], [[0, 1, 0], [0, 1, -0.5]]])
    assert torch.allclose(forward_kinematics(motion).p_world_joint, expected, atol=1e-5)
    assert motion.translations is None
    assert "rest" in motion.provenance.notes  # no skin in this file
    assert torch.allclose(rest_poses(motion.skeleton).p_world_joint, expected[0], atol=1e-6)


def test_z_up_inches_at_another_rate(tmp_path: Path) -> None:
    """Their z is our y, their −y our z: a turn about x takes the knee from −z to +y, our −z, as before."""
    motion = load_fbx_motion(write(tmp_path, document(leg(2), LINKS, [SWING], up="Z", unit=2.54, mode=11)))
    assert motion.fps == 24
    assert len(motion) == 3  # 2/30 s hold 1.6 frames: the last one is rounded up
    p = forward_kinematics(motion).p_world_joint
    assert torch.allclose(p[0], torch.tensor([[0, 2.54, 0], [0, 1.27, 0]]), atol=1e-5)
    angle = torch.tensor(90 * (1 / 24) / (2 / 30)).deg2rad()
    assert torch.allclose(p[1, 1], torch.tensor([0, 2.54 - 1.27 * angle.cos(), -1.27 * angle.sin()]), atol=1e-4)


def test_pre_rotation_and_pivot_are_applied(tmp_path: Path) -> None:
    """A pre-rotation of 90° about z comes before the animated turn; a rotation pivot half way down leaves that point in place."""
    before = [prop("RotationActive", "bool", 1), prop("PreRotation", "Vector3D", 0, 0, 90)]
    p = forward_kinematics(load_fbx_motion(write(tmp_path, document(leg(1, *before), LINKS, [SWING])))).p_world_joint
    assert torch.allclose(p[0, 1], torch.tensor([0.5, 1, 0]), atol=1e-5)
    assert torch.allclose(p[2, 1], torch.tensor([0.0, 1, -0.5]), atol=1e-5)
    pivot = prop("RotationPivot", "Vector3D", 0, -50, 0)
    p = forward_kinematics(load_fbx_motion(write(tmp_path, document(leg(1, pivot), LINKS, [SWING])))).p_world_joint
    assert torch.allclose(p[2], torch.tensor([[0, 0.5, 0.5], [0, 0.5, 0]]), atol=1e-5)


def test_clips_are_chosen_by_name_or_number(tmp_path: Path) -> None:
    path = write(tmp_path, document(leg(1), LINKS, [SWING, clip(40, "kick", [0.0, 10.0])]))
    first = load_fbx_motion(path)
    assert len(first) == 3
    assert first.provenance.notes["clip"] == "the first of 2 animations: swing"
    assert len(load_fbx_motion(path, "kick")) == len(load_fbx_motion(path, 1)) == 2
    assert "clip" not in load_fbx_motion(path, "kick").provenance.notes
    with pytest.raises(FormatProblem, match="no clip 'jump'; it has swing, kick"):
        load_fbx_motion(path, "jump")


def test_two_bones_of_one_name_and_two_roots(tmp_path: Path) -> None:
    bones = [*leg(1), bone(3, "Knee", prop("Lcl Translation", "Lcl Translation", 30, 0, 0))]
    motion = load_fbx_motion(write(tmp_path, document(bones, [*LINKS, '"OO",3,0', '"OO",103,3'], [SWING])))
    assert set(motion.skeleton.joints) == {"world", "Hips", "Knee", "Knee_2"}
    assert "root" in motion.provenance.notes


def test_files_that_hold_no_motion(tmp_path: Path) -> None:
    good = document(leg(1), LINKS, [SWING])
    cases = [
        ("", "Empty"),
        ("no FBX at all", "cannot be read as FBX"),
        ("Kaydara FBX Binary  \x00\x1a\x00" + "x" * 500, "cannot be read as FBX"),
        (document(leg(1), LINKS, []), "no animation"),
        (document([], [], [SWING]), "no bones"),
        (good.replace(str(2 * SECOND // 30), str(10**17)), "frames"),
        (good.replace("45.0", "nan"), r"not finite|cannot be read"),
    ]
    for text, message in cases:
        with pytest.raises(FormatProblem, match=message) as raised:
            load_fbx_motion(write(tmp_path, text))
        assert "\n" not in str(raised.value)
    with pytest.raises(FileProblem, match="no file"):
        load_fbx_motion(tmp_path / "missing.fbx")


def test_a_crash_of_the_reader_is_an_error_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, document(leg(1), LINKS, [SWING]))
    monkeypatch.setattr(fbx, "_CHILD", "bunraku.files.there_is_none")
    with pytest.raises(FormatProblem, match="made its reader fail"):
        load_fbx_motion(path)


def test_a_long_clip_with_many_bones_survives_the_binding(tmp_path: Path) -> None:
    """The binding frees what is still in use unless it is handled with care: 60 bones and 900 frames, twice."""
    names = [bone(1, "b1"), *(bone(i, f"b{i}", prop("Lcl Translation", "Lcl Translation", 0, 10, 0)) for i in range(2, 61))]
    links = ['"OO",1,0', '"OO",101,1', *(link for i in range(2, 61) for link in (f'"OO",{i},{i - 1}', f'"OO",{i + 100},{i}'))]
    values = (30 * np.sin(np.arange(900) / 20)).round(4).tolist()
    path = write(tmp_path, document(names, links, [clip(1000, "sway", values)]))
    for _ in range(2):
        motion = load_fbx_motion(path)
        assert len(motion) == 900
        p = forward_kinematics(motion).p_world_joint
        angle = torch.tensor(values).deg2rad()
        assert torch.allclose(p[:, 59], 5.9 * torch.stack([torch.zeros(900), angle.cos(), angle.sin()], dim=-1), atol=1e-3)
