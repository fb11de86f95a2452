"""Robots out of MJCF and URDF, against MuJoCo's own kinematics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bunraku.errors import FileProblem, FormatProblem, SkeletonMismatch
from bunraku.files.axes import Frame, rotations_from, vectors_from
from bunraku.files.mjcf import load_robot, mjcf_from_skeleton
from bunraku.files.npz import load_npz
from bunraku.files.qpos_csv import load_qpos_csv, motion_from_qpos, save_qpos_csv
from bunraku.kinematics.forward import forward_kinematics, rest_poses
from bunraku.kinematics.hinges import hinge_angles
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.skeleton import Skeleton

mujoco = pytest.importorskip("mujoco")
G1 = skeleton("g1")

# Degrees, defaults, two hinges in one body, anchors off the origin, turned bodies, a fixed hand, a missing mesh and texture, a floor and a ball.
WALKER = """
<mujoco model="walker">
  <compiler angle="degree"/>
  <asset><mesh name="shell" file="nowhere.stl"/><texture name="t" type="2d" file="nowhere.png"/><material name="m" texture="t"/></asset>
  <default><joint axis="0 1 0" range="-90 90"/></default>
  <worldbody>
    <geom type="plane" size="1 1 1" material="m"/>
    <body name="ball" pos="3 0 1"><freejoint/><geom size="0.1"/></body>
    <body name="trunk" pos="0 0 1" euler="0 0 0"><freejoint/><geom type="mesh" mesh="shell" material="m"/>
      <body name="thigh" pos="0 0.1 -0.1" euler="10 20 30">
        <joint name="pitch" pos="0 0 0.05"/><joint name="roll" axis="1 0 0" range="-20 45" pos="0.01 0.02 0.03"/>
        <body name="shin" pos="0 0 -0.4" quat="0.9 0.1 0 0.2"><joint name="knee" axis="1 2 2" limited="false" pos="0 0.02 0"/>
          <body name="sole" pos="0.05 0 -0.4"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

ARM = """
<robot name="arm">
  <link name="plate"/>
  <link name="upper"><visual><geometry><mesh filename="missing.dae"/></geometry></visual></link>
  <link name="lower"/><link name="tool"/>
  <joint name="shoulder" type="revolute"><parent link="plate"/><child link="upper"/><origin xyz="0 0 0.2" rpy="0.1 0.2 0.3"/>
    <axis xyz="0 0 1"/><limit lower="-1.5" upper="2" effort="1" velocity="1"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="0.3 0 -0.5"/><axis xyz="0 1 0"/></joint>
  <joint name="flange" type="fixed"><parent link="lower"/><child link="tool"/><origin xyz="0.1 0 0"/></joint>
</robot>
"""


def load_text(tmp_path: Path, text: str, suffix: str = ".xml") -> Skeleton:
    (tmp_path / f"robot{suffix}").write_text(text)
    return load_robot(tmp_path / f"robot{suffix}")


def kinematics(model: Any, qpos: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """MuJoCo's body positions, body turns and hinge anchors, in our axes."""
    data = mujoco.MjData(model)
    p, R, anchors = [], [], []
    for row in qpos.double().numpy():
        data.qpos[:] = row
        mujoco.mj_kinematics(model, data)
        p.append(data.xpos.copy())
        R.append(data.xmat.reshape(-1, 3, 3).copy())
        anchors.append(data.xanchor.copy())
    frame = Frame.Z_UP_X_FORWARD
    return (
        vectors_from(frame, torch.from_numpy(np.stack(p))),
        rotations_from(frame, torch.from_numpy(np.stack(R))),
        vectors_from(frame, torch.from_numpy(np.stack(anchors))),
    )


def random_qpos(robot: Skeleton, frames: int = 25) -> torch.Tensor:
    h = robot.hinges
    lower, upper = h.lower.clamp(-3, 3), h.upper.clamp(-3, 3)
    quats = torch.nn.functional.normalize(torch.randn(frames, 4), dim=-1)
    return torch.cat([torch.randn(frames, 3), quats, lower + (upper - lower) * torch.rand(frames, len(h.joints))], dim=-1).double()


def test_every_body_is_where_mujoco_puts_it(tmp_path: Path) -> None:
    robot = load_text(tmp_path, WALKER)
    assert robot.name == "walker"
    assert robot.joints == ("trunk", "pitch", "thigh", "shin", "sole")
    assert robot.hinges.joints == ("pitch", "thigh", "shin")
    assert torch.allclose(robot.hinges.lower, torch.tensor([-90, -20, -torch.inf]).deg2rad())
    assert torch.allclose(robot.hinges.upper, torch.tensor([90, 45, torch.inf]).deg2rad())

    spec = mujoco.MjSpec.from_string(WALKER.replace('type="mesh" mesh="shell" material="m"', 'size="0.1"').replace(' material="m"', ""))
    for element in [*spec.meshes, *spec.materials, *spec.textures]:
        spec.delete(element)
    spec.delete(spec.body("ball"))
    spec.body("shin").add_geom(size=[0.1, 0, 0])
    spec.body("thigh").add_geom(size=[0.1, 0, 0])
    model = spec.compile()
    qpos = random_qpos(robot)
    p_body, R_body, anchors = kinematics(model, qpos)
    motion = motion_from_qpos(robot, qpos, 30.0)
    poses = forward_kinematics(motion)
    bodies = [model.body(name).id for name in ("trunk", "thigh", "shin", "sole")]
    ours = [robot.index[name] for name in ("trunk", "thigh", "shin", "sole")]
    assert float((poses.R_world_joint[:, ours] - R_body[:, bodies]).abs().max()) < 1e-6
    hinged = [robot.index[name] for name in robot.hinges.joints]
    assert float((poses.p_world_joint[:, hinged] - anchors[:, 1:]).norm(dim=-1).max()) < 1e-6  # joints sit at the hinges' anchors
    still = [robot.index[name] for name in ("trunk", "sole")]
    assert float((poses.p_world_joint[:, still] - p_body[:, [bodies[0], bodies[3]]]).norm(dim=-1).max()) < 1e-6
    back, off_axis = hinge_angles(motion)
    assert float((torch.remainder(back - qpos[:, 7:] + 1, 2 * torch.pi) - 1).abs().max()) < 1e-6
    assert float(off_axis.max()) < 1e-6


def test_a_urdf_without_its_meshes(tmp_path: Path) -> None:
    robot = load_text(tmp_path, ARM, ".urdf")
    assert robot.joints == ("plate", "upper", "lower", "tool")
    assert robot.hinges.joints == ("upper", "lower")
    assert robot.hinges.lower.tolist() == [-1.5, -float("inf")]
    assert torch.allclose(robot.hinges.axes, torch.tensor([[0.0, 1, 0], [1, 0, 0]]), atol=1e-6)  # their z is our y, their y our x
    assert float(rest_poses(robot).p_world_joint[:, 1].min()) == pytest.approx(0, abs=1e-6)


def test_a_first_link_that_turns_hangs_from_a_base(tmp_path: Path) -> None:
    robot = load_text(tmp_path, '<mujoco><worldbody><body name="a" pos="0 0 1"><joint axis="0 0 1"/><geom size="0.1"/></body></worldbody></mujoco>')
    assert robot.joints == ("a_base", "a")
    assert robot.hinges.joints == ("a",)


def test_hinges_and_bodies_may_share_names(tmp_path: Path) -> None:
    body = '<body name="hip"><freejoint/><geom size="1"/><body name="leg"><joint name="hip"/><joint axis="1 0 0"/><geom size="1"/></body></body>'
    assert load_text(tmp_path, f"<mujoco><worldbody>{body}</worldbody></mujoco>").joints == ("hip", "hip_hinge", "leg")


def test_roles_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "robot.xml").write_text(WALKER)
    robot = load_robot(tmp_path / "robot.xml", roles={"left_foot": "sole"})
    assert robot.joints[robot.role("left_foot")] == "sole"
    (tmp_path / "roles.json").write_text('{"left_knee": "shin"}')
    assert load_robot(tmp_path / "robot.xml", roles=tmp_path / "roles.json").role("left_knee") == 3


def test_our_own_g1_plays_in_mujoco() -> None:
    model = mujoco.MjModel.from_xml_string(mjcf_from_skeleton(G1))
    assert (model.nq, model.nv) == (36, 35)
    assert np.allclose(model.jnt_range[1:, 0], G1.hinges.lower)
    assert np.allclose(model.jnt_range[1:, 1], G1.hinges.upper)
    qpos = random_qpos(G1)
    p_body, R_body, _ = kinematics(model, qpos)
    poses = forward_kinematics(motion_from_qpos(G1, qpos, 30.0))
    bodies = [model.body(name).id for name in G1.joints]
    assert float((poses.p_world_joint - p_body[:, bodies]).norm(dim=-1).max()) < 1e-6
    assert float((poses.R_world_joint - R_body[:, bodies]).abs().max()) < 1e-6


def test_a_robot_survives_writing_and_reading(tmp_path: Path) -> None:
    for robot in (G1, load_text(tmp_path, WALKER)):
        (tmp_path / "again.xml").write_text(mjcf_from_skeleton(robot))
        back = load_robot(tmp_path / "again.xml")
        assert back.name == robot.name
        assert set(back.joints) == set(robot.joints)
        assert back.hinges.joints == robot.hinges.joints
        assert torch.allclose(back.hinges.axes, robot.hinges.axes, atol=1e-6)
        assert torch.equal(torch.isfinite(back.hinges.lower), torch.isfinite(robot.hinges.lower))
        order = [back.index[name] for name in robot.joints]
        assert torch.allclose(back.offsets[order], robot.offsets, atol=1e-6)


BROKEN = {
    "slide": ('<body><joint type="slide" name="rail"/><geom size="1"/><body><joint/><geom size="1"/></body></body>', "'rail' is a slide joint"),
    "ball": ('<body><geom size="1"/><joint type="ball" name="hip"/><body><joint/><geom size="1"/></body></body>', "'hip' is a ball joint"),
    "ref": ('<body><freejoint/><geom size="1"/><body><joint name="hip" ref="0.3"/><geom size="1"/></body></body>', "'hip' has ref"),
    "no hinge": ('<body><freejoint/><geom size="1"/></body>', "no hinge joint"),
    "two robots": ('<body name="a"><joint/><geom size="1"/></body><body name="b"><joint/><geom size="1"/></body>', "2 jointed trees"),
    "copies": ('<replicate count="99999" offset="0 0 1"><body><joint/><geom size="1"/></body></replicate>', "1e\\+05 copies"),
    "two names": ('<body name="a"><joint/><geom size="1"/></body><body name="a"/>', "MuJoCo cannot read"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    body, sentence = BROKEN[name]
    with pytest.raises(FormatProblem, match=sentence):
        load_text(tmp_path, f'<mujoco><compiler angle="radian"/><worldbody>{body}</worldbody></mujoco>')


@pytest.mark.parametrize("text", ["", "no XML", WALKER[: len(WALKER) // 2], "<svg/>"])
def test_what_is_no_robot_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(FormatProblem, match="MuJoCo cannot read"):
        load_text(tmp_path, text)


def test_doubts_about_dynamics_are_not_told(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """MuJoCo warns of a singular inertia where links lie far apart; places and axes are all that is asked for."""
    hinged = '<joint axis="0 1 0"/><geom size=".1"/>'
    inner = f'<body name="a" pos="1e8 0 0">{hinged}<body name="b" pos="0 0 .1">{hinged}</body></body>'
    robot = load_text(tmp_path, f'<mujoco><worldbody><body name="base"><freejoint/><geom size=".1"/>{inner}</body></worldbody></mujoco>')
    assert len(robot) == 3
    assert not recwarn.list


@pytest.mark.parametrize("place", ['pos="0 0 nan"', 'pos="0 0 1" gravcomp="NaN"'])
def test_a_nan_is_refused_without_a_log_file(tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """MuJoCo writes MUJOCO_LOG.TXT into the current folder and prints, unless its warnings are taken from it."""
    monkeypatch.chdir(tmp_path)
    before = mujoco.get_mju_user_warning()
    with pytest.raises(FormatProblem, match=r"holds a NaN|MuJoCo cannot read"):
        load_text(tmp_path, f"<mujoco><worldbody><body {place}><joint/><geom size='1'/></body></worldbody></mujoco>")
    assert [file.name for file in tmp_path.iterdir()] == ["robot.xml"]
    assert capfd.readouterr() == ("", "")
    assert mujoco.get_mju_user_warning() is before


def test_names_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "robot.xml").write_bytes(WALKER.encode().replace(b"thigh", b"th\xe9gh"))
    with pytest.raises(FormatProblem, match="not UTF-8"):
        load_robot(tmp_path / "robot.xml")


def test_other_refusals(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="there is no file"):
        load_robot(tmp_path / "nothing.xml")
    with pytest.raises(SkeletonMismatch, match="no hinges"):
        mjcf_from_skeleton(skeleton("soma30"))


@pytest.mark.parametrize("file", ["g1.xml", "g1_29dof_rev_1_0.urdf"])
def test_the_makers_g1_is_the_librarys(shared: Path, file: str) -> None:
    robot = load_robot(shared / "data" / "unitree_g1" / file)
    ours = [joint.removesuffix("_skel") for joint in G1.hinges.joints]
    theirs = [joint.removesuffix("_link").replace("torso", "waist_pitch") for joint in robot.hinges.joints]
    assert theirs == ours
    assert float((robot.hinges.axes - G1.hinges.axes).abs().max()) < 1e-4
    assert float((robot.hinges.lower - G1.hinges.lower).abs().max()) < 1e-4
    assert float((robot.hinges.upper - G1.hinges.upper).abs().max()) < 1e-4
    assert robot.has("hips", "left_foot", "right_foot", "left_hand", "right_hand", "left_knee", "right_elbow")


def test_a_csv_plays_in_the_makers_model_as_it_does_here(shared: Path, tmp_path: Path) -> None:
    model = mujoco.MjModel.from_xml_path(str(shared / "data" / "unitree_g1" / "g1.xml"))
    shipped = load_npz(shared / "data" / "kimodo-examples" / "g1-02_multi_text_ee_constraint" / "motion.npz")
    save_qpos_csv(shipped, tmp_path / "shipped.csv")
    np.savetxt(tmp_path / "random.csv", random_qpos(G1).numpy(), delimiter=",")
    bodies = ["pelvis", *(f"{name.removesuffix('_skel')}_link" for name in G1.hinges.joints)]
    bodies = [model.body(name.replace("waist_pitch_link", "torso_link")).id for name in bodies]
    joints = [0, *(G1.index[name] for name in G1.hinges.joints)]
    assert sorted(bodies) == list(range(1, model.nbody))
    for name in ("random.csv", "shipped.csv"):
        p_body, R_body, _ = kinematics(model, torch.from_numpy(np.loadtxt(tmp_path / name, delimiter=",")))
        poses = forward_kinematics(load_qpos_csv(tmp_path / name))
        assert float((poses.p_world_joint[:, joints] - p_body[:, bodies]).norm(dim=-1).max()) < 1e-4
        assert float((poses.R_world_joint[:, joints] - R_body[:, bodies]).abs().max()) < 1e-4
