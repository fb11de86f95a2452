"""The mannequin: a proper rig on every skeleton, standing on the ground, left and right and front where they belong."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.library import skeleton, skeleton_names
from bunraku.kinematics.motion import rest_motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import exp_quat
from bunraku.rig.character import Character
from bunraku.rig.mannequin import mannequin
from bunraku.rig.proportions import measure
from bunraku.rig.skinning import skin_vertices

LIBRARY = skeleton_names()


def vertices_of(character: Character, tone: str) -> torch.Tensor:
    mesh = character.mesh
    assert mesh.face_materials is not None
    number = [material.name for material in mesh.materials].index(tone)
    return mesh.vertices[mesh.faces[mesh.face_materials == number].unique()]


def assert_is_a_rig(character: Character) -> None:
    weights = character.rig.weights
    assert torch.equal(weights.sum(1), torch.ones(len(weights)))
    assert weights.min() >= 0
    assert int((weights > 0).sum(1).max()) <= 4
    assert torch.isfinite(character.mesh.vertices).all()
    assert len(character.mesh.faces) >= 100


@pytest.mark.parametrize("name", LIBRARY)
def test_library_skeletons(name: str) -> None:
    body = skeleton(name)
    character = mannequin(body)
    assert_is_a_rig(character)
    assert len(character.mesh.faces) < 13_000
    assert measure(body).is_humanoid
    # stands on the ground and is as tall as the skeleton suggests
    p = rest_poses(body).p_world_joint
    assert abs(float(character.mesh.vertices[:, 1].min())) < 0.012
    assert 0.0 < float(character.mesh.vertices[:, 1].max() - p[:, 1].max()) < 0.35
    # left is +X, the visor and the lamp are in front
    assert vertices_of(character, "left")[:, 0].min() > -0.025
    assert vertices_of(character, "right")[:, 0].max() < 0.025
    assert vertices_of(character, "left")[:, 0].mean() > 0.1
    assert vertices_of(character, "mark")[:, 2].mean() > vertices_of(character, "trunk")[:, 2].mean() + 0.05


@pytest.mark.parametrize("name", [name for name in LIBRARY if name != "g1"])  # whose limbs have more joints and kinks
def test_flesh_lies_around_the_bones_of_the_limbs(name: str) -> None:
    body = skeleton(name)
    character, p = mannequin(body), rest_poses(body).p_world_joint
    tall = measure(body).stature
    for side in ("left", "right"):
        for part, thinnest, thickest in (("shoulder", 0.024, 0.034), ("elbow", 0.016, 0.026), ("hip", 0.033, 0.053), ("knee", 0.022, 0.035)):
            joint = body.role(f"{side}_{part}")
            middle = (p[joint] + p[body.children[joint][0]]) / 2
            nearest = float((character.mesh.vertices - middle).norm(dim=-1).min())
            assert thinnest * tall - 1e-4 < nearest < thickest * tall + 0.003


@pytest.mark.parametrize("name", LIBRARY)
def test_at_rest_the_skin_stays_where_it_is(name: str) -> None:
    character = mannequin(skeleton(name))
    skinned = skin_vertices(character, rest_motion(character.skeleton))[0]
    assert (skinned - character.mesh.vertices).abs().max() < 1e-5


def test_a_bent_elbow_moves_the_forearm_rigidly_and_nothing_of_the_legs() -> None:
    body = skeleton("smplx22")
    character, motion = mannequin(body), rest_motion(body)
    elbow = body.role("left_elbow")
    quats = motion.quats.clone()
    quats[0, elbow] = exp_quat(torch.tensor([0.0, -1.2, 0.0]))
    bent = skin_vertices(character, replace(motion, quats=quats))[0]
    forearm = (character.rig.weights[:, elbow] == 1).nonzero().flatten()
    assert len(forearm) > 20
    before, after = (torch.cdist(points[forearm], points[forearm]) for points in (character.mesh.vertices.double(), bent.double()))
    assert (before - after).abs().max() < 1e-5
    assert (bent[forearm] - character.mesh.vertices[forearm]).norm(dim=-1).max() > 0.1
    legs = character.mesh.vertices[:, 1] < 0.8
    assert torch.allclose(bent[legs], character.mesh.vertices[legs], atol=1e-6)


def test_skin_near_a_joint_is_shared_smoothly() -> None:
    """Along the leg, the knee's share grows from 0 to 1 without jumps."""
    body = skeleton("soma77")
    character = mannequin(body)
    hip, knee = body.role("left_hip"), body.role("left_knee")
    weights, y = character.rig.weights, character.mesh.vertices[:, 1]
    leg = ((weights[:, hip] + weights[:, knee]) > 0.999).nonzero().flatten()
    share, height = weights[leg, knee], y[leg]
    assert share[height > 0.60].max() < 0.01
    assert share[(height < 0.42) & (height > 0.2)].min() > 0.99
    near = (height - 0.509).abs() < 0.006
    assert float(share[near].min()) > 0.3
    assert float(share[near].max()) < 0.7


def test_a_taller_skeleton_gets_the_same_body_larger() -> None:
    body = skeleton("soma30")
    tall = replace(body, offsets=body.offsets * 3, tips={joint: tuple(3 * v for v in tip) for joint, tip in body.tips.items()})
    small, large = mannequin(body).mesh.vertices, mannequin(tall).mesh.vertices
    assert torch.allclose(3 * small, large, atol=1e-4)


def chain(count: int, step: tuple[float, float, float] = (0.0, 0.1, 0.0)) -> Skeleton:
    return Skeleton(name="chain", joints=tuple(f"j{i}" for i in range(count)), parents=tuple(range(-1, count - 1)), offsets=torch.tensor([step] * count))


@pytest.mark.parametrize("count", [1, 2, 3, 300])
def test_chains_of_any_length(count: int) -> None:
    assert_is_a_rig(mannequin(chain(count)))


def test_joints_all_at_one_place() -> None:
    assert_is_a_rig(mannequin(chain(5, (0.0, 0.0, 0.0))))


def test_without_roles_sides_come_from_the_rest_pose() -> None:
    body = replace(skeleton("cmu23"), roles={})
    character = mannequin(body)
    assert_is_a_rig(character)
    assert vertices_of(character, "left")[:, 0].mean() > 0.1
    assert vertices_of(character, "right")[:, 0].mean() < -0.1


def test_a_root_far_below_the_hips_is_not_drawn_as_a_bone() -> None:
    body = skeleton("smplx22")
    under = replace(
        body,
        joints=("ground", *body.joints),
        parents=(-1, *(parent + 1 for parent in body.parents)),
        offsets=torch.cat([torch.zeros(1, 3), body.offsets]),
        rest_quats=torch.cat([torch.tensor([[1.0, 0, 0, 0]]), body.rest_quats]),
        roles={role: joint + 1 for role, joint in body.roles.items()},
    )
    assert torch.allclose(mannequin(under).mesh.vertices, mannequin(body).mesh.vertices, atol=1e-6)


@settings(max_examples=25)
@given(data=st.data(), count=st.integers(1, 40))
def test_any_tree_of_joints(data: st.DataObject, count: int) -> None:
    parents = (-1, *(data.draw(st.integers(0, i - 1)) for i in range(1, count)))
    values = st.floats(-1, 1, width=32)
    offsets = torch.tensor([[data.draw(values) for _ in range(3)] for _ in range(count)])
    roles = data.draw(st.dictionaries(st.sampled_from(["hips", "head", "left_hip", "right_hip", "left_foot", "left_hand"]), st.integers(0, count - 1)))
    assert_is_a_rig(mannequin(Skeleton(name="any", joints=tuple(f"j{i}" for i in range(count)), parents=parents, offsets=offsets, roles=roles)))
