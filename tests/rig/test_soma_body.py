"""The human body for SOMA: its skin fits the skeleton, its two sides match, and it bends like a body."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree

from bunraku.geometry.mesh import Mesh
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import rest_motion
from bunraku.kinematics.soma import expand_soma
from bunraku.kinematics.walk import walk
from bunraku.rig.character import Character
from bunraku.rig.rig import Rig
from bunraku.rig.skinning import skin_vertices
from bunraku.rig.soma_body import soma_body

BODY = soma_body()


def test_it_is_small_and_says_where_it_comes_from() -> None:
    folder = files("bunraku.rig") / "data"
    assert len((folder / "soma_body.npz").read_bytes()) < 1_000_000
    assert "CC0" in (folder / "README.md").read_text()


def test_it_stands_on_the_ground_as_tall_as_its_skeleton() -> None:
    low, high = BODY.mesh.vertices.amin(0), BODY.mesh.vertices.amax(0)
    assert abs(float(low[1])) < 0.015
    head = rest_poses(BODY.skeleton).p_world_joint[BODY.skeleton.index["HeadEnd"]]
    assert 0 < float(high[1] - head[1]) < 0.05
    tips = [rest_poses(BODY.skeleton).p_world_joint[BODY.skeleton.index[f"{side}HandMiddleEnd"], 0] for side in ("Left", "Right")]
    assert float(high[0]) == pytest.approx(float(tips[0]), abs=0.02)
    assert float(low[0]) == pytest.approx(float(tips[1]), abs=0.02)


def test_every_joint_lies_within_the_skin_that_follows_it() -> None:
    """Its distance from the middle of its own skin's nearest ring is small: measured where limbs are slender."""
    joints = rest_poses(BODY.skeleton).p_world_joint
    for name, reach in (("LeftForeArm", 0.02), ("RightHand", 0.035), ("LeftShin", 0.035), ("RightFoot", 0.04), ("Neck2", 0.04)):
        joint = joints[BODY.skeleton.index[name]]
        ring = BODY.mesh.vertices[(BODY.mesh.vertices - joint).norm(dim=-1) < 0.08]
        assert float((ring.mean(0) - joint).norm()) < reach, name


def test_weights_are_rows_of_at_most_four_that_sum_to_1() -> None:
    weights = BODY.rig.weights
    assert torch.allclose(weights.sum(1), torch.ones(len(weights)), atol=1e-6)
    assert int((weights > 0).sum(1).max()) <= 4
    left, right = (weights[:, [j for j, name in enumerate(BODY.skeleton.joints) if name.startswith(side)]].sum(1) for side in ("LeftFoot", "RightFoot"))
    assert float((left * right).max()) == 0
    assert float(BODY.mesh.vertices[left > 0.5, 0].min()) > 0


def test_it_is_closed_and_its_normals_point_outwards() -> None:
    faces = BODY.mesh.faces
    edges = torch.cat([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    forward = {(int(a), int(b)) for a, b in edges}
    assert len(forward) == len(edges)
    assert all((b, a) in forward for a, b in forward)
    a, b, c = BODY.mesh.vertices[faces].double().unbind(1)
    volume = float((a * torch.linalg.cross(b, c)).sum() / 6)
    assert 0.055 < volume < 0.095  # [m³] of an adult


def test_at_rest_and_walking_it_keeps_its_shape() -> None:
    assert torch.allclose(skin_vertices(BODY, rest_motion(BODY.skeleton))[0], BODY.mesh.vertices, atol=1e-5)
    moved = skin_vertices(BODY, expand_soma(walk(skeleton("soma30"), seconds=1.2, fps=5)))
    a, b, c = (BODY.mesh.faces[:, k] for k in range(3))
    before = torch.linalg.cross(BODY.mesh.vertices[b] - BODY.mesh.vertices[a], BODY.mesh.vertices[c] - BODY.mesh.vertices[a]).norm(dim=-1).sum()
    after = torch.linalg.cross(moved[:, b] - moved[:, a], moved[:, c] - moved[:, a]).norm(dim=-1).sum(-1)
    assert bool(((after / before - 1).abs() < 0.06).all())  # of its surface


def test_it_agrees_with_the_standard_skin_of_soma(shared: Path) -> None:
    """Another body on the same skeleton, in the same poses: their surfaces lie within a centimetre of each other."""
    stored = np.load(shared / "data" / "soma_body" / "skin_standard.npz", allow_pickle=False)
    order = [list(stored["rig_joint_names"]).index(name) for name in BODY.skeleton.joints]
    weights = np.zeros((len(stored["bind_vertices"]), 77), dtype=np.float32)
    np.add.at(weights, (np.arange(len(weights))[:, None], stored["lbs_indices"]), stored["lbs_weights"])
    rest = torch.from_numpy(stored["bind_rig_transform"][order]).float()
    rig = Rig(skeleton=BODY.skeleton, weights=torch.from_numpy(weights[:, order]), T_world_joint_rest=rest)
    mesh = Mesh(vertices=torch.from_numpy(stored["bind_vertices"]).float(), faces=torch.from_numpy(stored["faces"].astype(np.int64)))
    standard = Character(name="standard", mesh=mesh, rig=rig)
    for motion in (rest_motion(BODY.skeleton), expand_soma(walk(skeleton("soma30"), seconds=0.5, fps=4))):
        for ours, theirs in zip(skin_vertices(BODY, motion), skin_vertices(standard, motion), strict=True):
            away = cKDTree(theirs.numpy()).query(ours.numpy())[0]
            assert away.mean() < 0.007
            assert away.max() < 0.05
