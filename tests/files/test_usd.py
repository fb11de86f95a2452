"""USD: what we write comes back, other people's axes and units arrive in ours, and Pixar's and Blender's answers agree with ours."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bunraku.errors import BunrakuError, FileProblem, FormatProblem, SkeletonMismatch
from bunraku.files.usd import load_usd_motion, save_usd_motion
from bunraku.geometry.mesh import Mesh
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, Provenance, rest_motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.kinematics.walk import walk
from bunraku.math.rotations import exp_quat, quat_multiply
from bunraku.rig.character import Character
from bunraku.rig.mannequin import mannequin
from bunraku.rig.rig import rig_for
from bunraku.rig.skinning import skin_vertices

pytest.importorskip("pxr")
REPOSITORY = Path(__file__).resolve().parents[2]
BLENDER = REPOSITORY / ".oracles" / "blender" / "bin" / "python"


def wiggle(body: Skeleton, frames: int = 7, fps: float = 30.0) -> Motion:
    """Every joint turning a little, the root going somewhere."""
    motion = rest_motion(body, frames, fps)
    turns = exp_quat(0.4 * torch.randn(frames, len(body), 3))
    return replace(motion, quats=quat_multiply(motion.quats, turns), root_position=motion.root_position + torch.randn(frames, 3))


def assert_same(a: Motion, b: Motion) -> None:
    first, second = forward_kinematics(a), forward_kinematics(b)
    assert (first.p_world_joint - second.p_world_joint).abs().max() < 1e-5
    assert (first.R_world_joint - second.R_world_joint).abs().max() < 1e-5


@pytest.mark.parametrize("suffix", [".usda", ".usdc", ".usd"])
@pytest.mark.parametrize("name", ["smplx22", "g1", "soma77"])
def test_round_trip(tmp_path: Path, suffix: str, name: str) -> None:
    motion = wiggle(skeleton(name), fps=29.97)
    motion = replace(motion, contacts=torch.rand(7, 4) > 0.5, provenance=Provenance(prompt="a “walk”", seed=3, model="m", notes={"unit": "guessed"}))
    save_usd_motion(motion, tmp_path / f"ein Gäng{suffix}")
    back = load_usd_motion(tmp_path / f"ein Gäng{suffix}")
    assert_same(motion, back)
    assert back.fps == pytest.approx(29.97)
    assert back.translations is None
    assert back.contacts is not None
    assert torch.equal(back.contacts, motion.contacts)
    assert back.skeleton.roles == motion.skeleton.roles
    assert (back.skeleton.hinges is None) == (motion.skeleton.hinges is None)
    assert (back.provenance.prompt, back.provenance.seed, back.provenance.model, dict(back.provenance.notes)) == ("a “walk”", 3, "m", {"unit": "guessed"})


def test_a_body_far_away_keeps_its_shape(tmp_path: Path) -> None:
    motion = wiggle(skeleton("smplx22"))
    far = replace(motion, root_position=motion.root_position + torch.tensor([100_000.0, 0, -3_000]))
    save_usd_motion(far, tmp_path / "far.usdc")
    back = load_usd_motion(tmp_path / "far.usdc")
    assert torch.equal(back.root_position, far.root_position)
    assert back.translations is None
    assert_same(motion, replace(back, root_position=motion.root_position))


def test_a_character_without_a_mesh_is_bones(tmp_path: Path) -> None:
    body = skeleton("smplx22")
    nothing = Mesh(vertices=torch.zeros(0, 3), faces=torch.zeros(0, 3, dtype=torch.long))
    bare = Character(name="bare", mesh=nothing, rig=rig_for(body, torch.zeros(0, len(body))))
    save_usd_motion(wiggle(body), tmp_path / "bare.usda", bare)
    assert "Mesh" not in (tmp_path / "bare.usda").read_text()


def test_bones_that_stretch_come_back_stretching(tmp_path: Path) -> None:
    motion = wiggle(skeleton("cmu23"))
    translations = motion.skeleton.offsets.expand(7, -1, -1) * torch.linspace(1, 1.5, 7)[:, None, None]
    motion = replace(motion, translations=translations.contiguous())
    save_usd_motion(motion, tmp_path / "a.usdc")
    back = load_usd_motion(tmp_path / "a.usdc")
    assert back.translations is not None
    assert_same(motion, back)


def test_one_frame_one_joint_and_names_that_usd_forbids(tmp_path: Path) -> None:
    body = Skeleton(name="odd", joints=("mixamorig:Hips", "1 arm.L", "1_arm.L", "Länge"), parents=(-1, 0, 0, 1), offsets=torch.rand(4, 3))
    motion = wiggle(body, frames=1)
    save_usd_motion(motion, tmp_path / "odd.usda")
    back = load_usd_motion(tmp_path / "odd.usda")
    assert back.skeleton.joints == body.joints
    assert_same(motion, back)
    single = Skeleton(name="one", joints=("root",), parents=(-1,), offsets=torch.zeros(1, 3))
    save_usd_motion(wiggle(single), tmp_path / "one.usda")
    assert len(load_usd_motion(tmp_path / "one.usda").skeleton) == 1


def test_a_file_written_anew_is_read_anew(tmp_path: Path) -> None:
    for frames in (3, 5):
        motion = wiggle(skeleton("smplx22"), frames)
        save_usd_motion(motion, tmp_path / "a.usda")
        back = load_usd_motion(tmp_path / "a.usda")
        assert len(back) == frames
        assert_same(motion, back)


def test_pixars_own_skinning_agrees_with_ours(tmp_path: Path) -> None:
    from pxr import Usd, UsdGeom, UsdSkel

    character = mannequin(skeleton("smplx22"))
    motion = wiggle(character.skeleton)
    save_usd_motion(motion, tmp_path / "dressed.usdc", character)
    stage = Usd.Stage.Open(str(tmp_path / "dressed.usdc"))
    cache, root = UsdSkel.Cache(), UsdSkel.Root(stage.GetPrimAtPath("/Character"))
    cache.Populate(root, Usd.PrimDefaultPredicate)
    query = cache.GetSkelQuery(UsdSkel.Skeleton(stage.GetPrimAtPath("/Character/Skeleton")))
    prim = stage.GetPrimAtPath("/Character/Mesh")
    points = UsdGeom.Mesh(prim).GetPointsAttr().Get()
    cache.GetSkinningQuery(prim).ComputeSkinnedPoints(query.ComputeSkinningTransforms(4), points, 4)
    assert np.abs(np.array(points) - skin_vertices(character, motion)[4].numpy()).max() < 1e-4
    subsets = UsdGeom.Subset.GetAllGeomSubsets(UsdGeom.Mesh(prim))
    assert sum(len(subset.GetIndicesAttr().Get()) for subset in subsets) == len(character.mesh.faces)
    assert_same(motion, load_usd_motion(tmp_path / "dressed.usdc"))


THEIRS = """#usda 1.0
(
    UNITS
)
def SkelRoot "Model"
{
    double3 xformOp:translate = (0, 0, 7)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    def Skeleton "Rig" (prepend apiSchemas = ["SkelBindingAPI"])
    {
        uniform token[] joints = ["hip", "hip/knee"MORE]
        uniform matrix4d[] restTransforms = [( (1,0,0,0), (0,1,0,0), (0,0,1,0), (0,0,90,1) ), ( (1,0,0,0), (0,1,0,0), (0,0,1,0), (0,0,-40,1) )REST]
        uniform matrix4d[] bindTransforms = [( (1,0,0,0), (0,1,0,0), (0,0,1,0), (0,0,90,1) ), ( (1,0,0,0), (0,1,0,0), (0,0,1,0), (0,0,50,1) )REST]
        rel skel:animationSource = </Model/Rig/Move>
        def SkelAnimation "Move"
        {
            uniform token[] joints = ["hip"]
            float3[] translations.timeSamples = { 1: [(0, 0, 90)], 3: [(0, -30, 90)] }
            quatf[] rotations = [(0.7071068, 0.7071068, 0, 0)]
            half3[] scales = [(1, 1, 1)]
        }
    }
}
"""


def theirs(tmp_path: Path, units: str, more: str = "", rest: str = "") -> Path:
    path = tmp_path / "theirs.usda"
    path.write_text(THEIRS.replace("UNITS", units).replace("MORE", more).replace("REST", rest))
    return path


def test_z_up_centimetres_partial_animation_and_a_moved_model(tmp_path: Path) -> None:
    """Blender's axes: their −y is our z. The knee has no animation and keeps its rest; the model stands 7 cm up."""
    motion = load_usd_motion(theirs(tmp_path, 'upAxis = "Z"\n metersPerUnit = 0.01\n timeCodesPerSecond = 25'))
    assert motion.fps == 25
    assert motion.skeleton.joints == ("hip", "knee")
    p = forward_kinematics(motion).p_world_joint
    # a quarter turn about their x takes the knee from below the hip (−z) to +y, our −z; the hips go 30 cm along our +z, linearly
    expected = torch.tensor([[[0, 0.97, 0.0], [0, 0.97, -0.4]], [[0, 0.97, 0.15], [0, 0.97, -0.25]], [[0, 0.97, 0.3], [0, 0.97, -0.1]]])
    assert torch.allclose(p, expected, atol=1e-5)
    assert dict(motion.provenance.notes) == {}


def test_what_a_file_does_not_say_is_noted(tmp_path: Path) -> None:
    motion = load_usd_motion(theirs(tmp_path, 'doc = "nothing"'))
    assert set(motion.provenance.notes) == {"unit", "fps"}
    assert motion.fps == 24
    assert float(motion.root_position[0, 2]) == pytest.approx(0.97)  # Y-up by default: their z is ours


def test_several_roots_hang_on_one_joint(tmp_path: Path) -> None:
    still = ", ( (1,0,0,0), (0,1,0,0), (0,0,1,0), (5,0,0,1) )"
    motion = load_usd_motion(theirs(tmp_path, "metersPerUnit = 1\n timeCodesPerSecond = 25", ', "handle"', still))
    assert motion.skeleton.joints == ("world", "hip", "knee", "handle")
    assert motion.skeleton.parents == (-1, 0, 1, 0)
    assert "root" in motion.provenance.notes
    assert forward_kinematics(motion).p_world_joint[0, 3].tolist() == [5, 0, 7]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read as USD"),
        (b"#usda 1.0\ndef Skeleton {", "cannot be read as USD .*:2:1"),
        (b"PXR-USDC" + bytes(80), "cannot be read as USD"),
        (b"#usda 1.0\n", "no UsdSkel skeleton"),
        (b'#usda 1.0\ndef SkelRoot "A"\n{\ndef Skeleton "B"\n{\nuniform token[] joints = ["a"]\n}\n}\n', "no animation"),
    ],
)
def test_files_that_hold_no_motion(tmp_path: Path, content: bytes, message: str) -> None:
    suffix = ".usdc" if content.startswith(b"PXR") else ".usda"
    (tmp_path / f"bad{suffix}").write_bytes(content)
    with pytest.raises(FormatProblem, match=message):
        load_usd_motion(tmp_path / f"bad{suffix}")


def test_absurd_times_are_refused(tmp_path: Path) -> None:
    path = theirs(tmp_path, "timeCodesPerSecond = 24")
    path.write_text(path.read_text().replace("3: [(0, -30, 90)]", "1000000000: [(0, 0, 0)]"))
    with pytest.raises(FormatProblem, match="1000000000 frames"):
        load_usd_motion(path)


def test_numbers_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    path = theirs(tmp_path, "timeCodesPerSecond = 24")
    path.write_text(path.read_text().replace("3: [(0, -30, 90)]", "3: [(0, nan, 90)]"))
    with pytest.raises(FormatProblem, match="not finite"):
        load_usd_motion(path)


def test_damaged_notes_of_ours_do_not_stop_a_file(tmp_path: Path) -> None:
    motion = wiggle(skeleton("smplx22"))
    save_usd_motion(motion, tmp_path / "a.usda")
    text = (tmp_path / "a.usda").read_text()
    for broken in ("string bunraku = '{\"skeleton\": 3, \"contacts\": [[1]], \"provenance\": []}'", "string bunraku = 'x'", "int bunraku = 4"):
        start, end = text.index("string bunraku"), text.index("\n", text.index("string bunraku"))
        (tmp_path / "b.usda").write_text(text[:start] + broken + text[end:])
        back = load_usd_motion(tmp_path / "b.usda")
        assert_same(motion, back)
        assert back.skeleton.roles == motion.skeleton.roles  # recognised by its names


def test_refusals_leave_the_target_alone(tmp_path: Path) -> None:
    motion = wiggle(skeleton("smplx22"))
    with pytest.raises(SkeletonMismatch, match="retarget"):
        save_usd_motion(motion, tmp_path / "a.usda", mannequin(skeleton("cmu23")))
    with pytest.raises(FileProblem, match="usdz"):
        save_usd_motion(motion, tmp_path / "a.usdz")
    with pytest.raises(FileProblem, match="no file"):
        load_usd_motion(tmp_path / "missing.usd")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.oracle
@pytest.mark.skipif(not BLENDER.exists(), reason="Blender's Python module is not installed beside the repository")
def test_blender_sees_the_joints_where_we_put_them(tmp_path: Path) -> None:
    character = mannequin(skeleton("soma30"))
    motion = wiggle(character.skeleton)
    save_usd_motion(motion, tmp_path / "a.usda", character)
    command = [BLENDER, REPOSITORY / "tools" / "blender_joints.py", tmp_path / "a.usda", "--fps", "30", "--frames", "7"]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    answer = json.loads(printed.splitlines()[-1])  # Blender's USD importer talks before
    p = forward_kinematics(motion).p_world_joint
    columns = [answer["joints"].index(joint) for joint in motion.skeleton.joints]
    assert np.abs(np.array(answer["frames"])[:, columns] - p.numpy()).max() < 1e-3


def test_bytes_that_are_no_text_are_damage(tmp_path: Path) -> None:
    save_usd_motion(walk(skeleton("soma30"), seconds=0.2), tmp_path / "a.usda")
    text = (tmp_path / "a.usda").read_bytes()
    for at in (134, 419, len(text) // 2):
        (tmp_path / "b.usda").write_bytes(text[:at] + b"\xc3\x28" + text[at + 2 :])
        with pytest.raises(FormatProblem, match=r"b\.usda"):
            load_usd_motion(tmp_path / "b.usda")


def test_a_skeleton_without_a_rest_for_every_joint_is_named(tmp_path: Path) -> None:
    save_usd_motion(walk(skeleton("soma30"), seconds=0.2), tmp_path / "a.usda")
    text = (tmp_path / "a.usda").read_text()
    start = text.index("restTransforms = [") + len("restTransforms = [")
    (tmp_path / "b.usda").write_text(text[:start] + text[text.index("), ( (", start) + 3 :])
    with pytest.raises(FormatProblem, match="does not give each of them"):
        load_usd_motion(tmp_path / "b.usda")


@pytest.mark.parametrize("suffix", ["usda", "usdc"])
def test_damage_anywhere_is_one_sentence_and_no_chatter(tmp_path: Path, suffix: str, capfd: pytest.CaptureFixture[str]) -> None:
    """USD reads lazily and prints what it thinks: whatever it meets and whenever, a BunrakuError comes out, or a motion.

    The seeds are such that most files are damaged in a way that is noticed; each costs a process of its own.
    """
    save_usd_motion(walk(skeleton("soma30"), seconds=0.2), tmp_path / f"a.{suffix}")
    whole = (tmp_path / f"a.{suffix}").read_bytes()
    refused = 0
    for seed in range(9):
        chance = np.random.default_rng(seed)
        damaged = bytearray(whole[: len(whole) if seed % 3 else int(chance.integers(len(whole)))])
        for place in chance.integers(len(damaged), size=seed % 5):
            damaged[place] = chance.integers(256)
        (tmp_path / f"b.{suffix}").write_bytes(damaged)
        try:
            load_usd_motion(tmp_path / f"b.{suffix}")
        except BunrakuError as error:
            refused += "\n" not in str(error)
    assert refused > 3
    assert capfd.readouterr() == ("", "")
