"""Splats that follow bones: identity at rest, rigid where the motion is, the skin's own gradient, and gradients to every joint."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bunraku.errors import BadValue, SkeletonMismatch
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.math.rigid import rigid
from bunraku.math.rotations import exp_matrix, exp_quat, quat_multiply
from bunraku.rig.rig import Rig
from bunraku.rig.skinning import rest_to_posed, skin_vertices
from bunraku.splats import Camera, Splats, carry_rig, deform, random_splats, render
from bunraku.splats.carry import SplatRig
from bunraku.splats.deformation import skin_gradients, turned_harmonics
from bunraku.splats.harmonics import basis
from tests.splats.puppet import bent, puppet

DOUBLE = torch.float64


def scene(count: int = 12) -> tuple[Splats, SplatRig]:
    splats = random_splats(count, 3).to(dtype=DOUBLE)
    splats = replace(splats, means=splats.means * 0.4 + torch.tensor([0.0, 0.7, 0.0], dtype=DOUBLE))
    return splats, carry_rig(splats, puppet(DOUBLE))


def test_at_rest_nothing_changes() -> None:
    splats, rig = scene()
    still = deform(splats, rig, rest_motion(rig.skeleton, 2))
    assert still.batch == (2,)
    torch.testing.assert_close(still.means, splats.means.expand(2, -1, -1))
    torch.testing.assert_close(still.factors, splats.factors.expand(2, -1, -1, -1))


@settings(max_examples=10)
@given(seed=st.integers(0, 1000))
def test_a_rigid_motion_is_a_rigid_change_of_the_picture(seed: int) -> None:
    """What a camera sees of the moved body is what the camera, moved back, sees of the body at rest."""
    splats, rig = scene()
    generator = torch.Generator().manual_seed(seed)
    R, t = exp_matrix(2 * torch.randn(3, generator=generator, dtype=DOUBLE)), torch.randn(3, generator=generator, dtype=DOUBLE)
    rest = forward_kinematics(rest_motion(rig.skeleton))
    poses = replace(rest, p_world_joint=rest.p_world_joint @ R.T + t, R_world_joint=R @ rest.R_world_joint)
    camera = Camera.look_at(torch.tensor([0.3, 0.5, 3.0], dtype=DOUBLE), torch.tensor([0.0, 0.7, 0.0], dtype=DOUBLE), 20, 16)
    moved_camera = replace(camera, T_world_camera=rigid(R, t) @ camera.T_world_camera)
    before, after = render(splats, camera, "torch"), render(deform(splats, rig, poses), moved_camera, "torch")
    torch.testing.assert_close(after.color[0], before.color, atol=1e-9, rtol=0)
    torch.testing.assert_close(after.depth[0], before.depth, atol=1e-9, rtol=0)


def test_splats_on_vertices_go_with_them() -> None:
    body = puppet(DOUBLE)
    splats = random_splats(len(body.mesh.vertices), 0).to(dtype=DOUBLE)
    splats = replace(splats, means=body.mesh.vertices)
    motion = bent(body)
    torch.testing.assert_close(deform(splats, body.rig, motion).means, skin_vertices(body, motion))
    torch.testing.assert_close(deform(splats, body, motion).means, skin_vertices(body, motion))


def test_a_motion_in_single_precision_is_the_same() -> None:
    splats, rig = scene()
    motion = bent(puppet(DOUBLE))
    single = replace(rig, weights=rig.weights.float(), T_world_joint_rest=rig.T_world_joint_rest.float())
    torch.testing.assert_close(deform(splats.to(dtype=torch.float32), single, motion).means, deform(splats, rig, motion).means.float())


def test_splats_on_faces_ride_on_them() -> None:
    """Also on long faces whose corners follow different joints, where blended weights alone would bend what is flat."""
    body = puppet(DOUBLE)
    tall = body.mesh.faces[(body.rig.weights[body.mesh.faces].std(dim=1) > 0.05).any(1)]
    share = torch.rand(len(tall), 3, dtype=DOUBLE)
    share = (share / share.sum(1, keepdim=True))[:, :, None]
    splats = replace(random_splats(len(tall), 0).to(dtype=DOUBLE), means=(share * body.mesh.vertices[tall]).sum(1))
    motion, rig = bent(body), carry_rig(splats, body)
    expected = (share * skin_vertices(body, motion)[:, tall]).sum(2)
    torch.testing.assert_close(deform(splats, rig, motion).means, expected, atol=1e-7, rtol=0)
    plain = Rig(skeleton=rig.skeleton, weights=rig.weights, T_world_joint_rest=rig.T_world_joint_rest)
    by_formula = torch.zeros(3, len(tall), 3, dtype=DOUBLE)
    for joint, T in enumerate(rest_to_posed(plain, motion).unbind(1)):
        by_formula += rig.weights[:, joint, None] * (splats.means @ T[:, :, :3].transpose(-1, -2) + T[:, None, :, 3])
    torch.testing.assert_close(deform(splats, plain, motion).means, by_formula)
    assert (by_formula - expected).norm(dim=-1).max() > 1e-3


def test_factors_are_carried_by_the_gradient_of_the_map() -> None:
    splats, rig = scene(3)
    motion = bent(puppet(DOUBLE))

    def moved(means: torch.Tensor) -> torch.Tensor:
        return deform(replace(splats, means=means), rig, motion).means

    jacobian = torch.autograd.functional.jacobian(moved, splats.means)
    for number in range(3):
        G = jacobian[:, number, :, number]
        torch.testing.assert_close(deform(splats, rig, motion).factors[:, number], G @ splats.factors[number])
        torch.testing.assert_close(skin_gradients(rig, motion)[:, number], G)


def test_gradients_to_joint_angles_and_root() -> None:
    splats, rig = scene(4)
    rest = rest_motion(rig.skeleton, 2)

    def deformed(rotvec: torch.Tensor, root: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        motion = replace(rest, quats=quat_multiply(rest.quats, exp_quat(rotvec)), root_position=root)
        moved = deform(splats, rig, motion)
        return moved.means, moved.factors

    rotvec = (0.7 * torch.randn(2, 2, 3, dtype=DOUBLE)).requires_grad_()
    root = torch.randn(2, 3, dtype=DOUBLE, requires_grad=True)
    assert torch.autograd.gradcheck(deformed, (rotvec, root))


def test_gradients_from_a_picture_to_joint_angles_and_root() -> None:
    splats, rig = scene(6)
    rest = rest_motion(rig.skeleton, 2)
    camera = Camera.look_at(torch.tensor([0.0, 0.7, 2.5], dtype=DOUBLE), torch.tensor([0.0, 0.7, 0.0], dtype=DOUBLE), 5, 4)

    def picture(rotvec: torch.Tensor, root: torch.Tensor) -> torch.Tensor:
        motion = replace(rest, quats=quat_multiply(rest.quats, exp_quat(rotvec)), root_position=root)
        return render(deform(splats, rig, motion), camera, "torch").color

    rotvec = (0.3 * torch.randn(2, 2, 3, dtype=DOUBLE)).requires_grad_()
    root = (rest.root_position + 0.05 * torch.randn(2, 3, dtype=DOUBLE)).requires_grad_()
    assert torch.autograd.gradcheck(picture, (rotvec, root), eps=1e-7, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_turned_colours_are_seen_in_turned_directions(degree: int) -> None:
    sh = torch.randn(5, (degree + 1) ** 2, 3, dtype=DOUBLE)
    R = exp_matrix(torch.randn(2, 5, 3, dtype=DOUBLE))
    direction = torch.nn.functional.normalize(torch.randn(7, 3, dtype=DOUBLE), dim=-1)
    before = basis(direction, degree) @ sh  # N M 3
    after = basis(direction @ R.transpose(-1, -2), degree) @ turned_harmonics(sh, R)
    torch.testing.assert_close(after, before.expand(2, -1, -1, -1))


def test_colours_that_turn_make_a_rigid_motion_invisible() -> None:
    """A camera that moves along sees the same, which it does not while colours are held in the world."""
    splats, rig = scene()
    splats = replace(splats, sh=torch.cat([splats.sh, 0.5 * torch.randn(len(splats), 15, 3, dtype=DOUBLE)], dim=1))
    R = exp_matrix(torch.tensor([0.4, 1.1, -0.3], dtype=DOUBLE))
    rest = forward_kinematics(rest_motion(rig.skeleton))
    poses = replace(rest, p_world_joint=rest.p_world_joint @ R.T, R_world_joint=R @ rest.R_world_joint)
    camera = Camera.look_at(torch.tensor([0.3, 0.5, 3.0], dtype=DOUBLE), torch.tensor([0.0, 0.7, 0.0], dtype=DOUBLE), 20, 16)
    along = replace(camera, T_world_camera=rigid(R, torch.zeros(3, dtype=DOUBLE)) @ camera.T_world_camera)
    before = render(splats, camera, "torch").color
    turned, held = (render(deform(splats, rig, poses, turn_colours=turn), along, "torch").color[0] for turn in (True, False))
    torch.testing.assert_close(turned, before, atol=1e-9, rtol=0)
    assert (held - before).abs().max() > 0.01
    with pytest.raises(BadValue, match="one at a time"):
        deform(splats, rig, bent(puppet(DOUBLE)), turn_colours=True)


def test_what_cannot_be_deformed() -> None:
    splats, rig = scene()
    motion: Motion = bent(puppet(DOUBLE))
    with pytest.raises(BadValue, match="deformed already"):
        deform(deform(splats, rig, motion), rig, motion)
    with pytest.raises(BadValue, match="carry_rig"):
        deform(random_splats(3, 0).to(dtype=DOUBLE), rig, motion)
    with pytest.raises(SkeletonMismatch, match="retarget"):
        deform(splats, rig, rest_motion(skeleton("soma30")))
