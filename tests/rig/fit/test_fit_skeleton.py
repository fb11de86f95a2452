"""Fitted skeletons: joints where they are known to be, the right template, the same answer in any unit and direction, and bad meshes refused."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.api import load_character
from bunraku.errors import BadValue
from bunraku.geometry.mesh import Mesh
from bunraku.geometry.primitives import box, ellipsoid, merge
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.skeleton import ROLES
from bunraku.rig.fit import Fit, fit_skeleton, templates
from tests.rig.fit import bodies
from tests.rig.fit.bodies import Points

MAIN = [role for role in ROLES if not role.endswith(("collar", "toe"))]


def places(fit: Fit) -> Float[Tensor, "J 3"]:
    return rest_poses(fit.skeleton).p_world_joint


def misses(fit: Fit, truth: Points, height: float) -> dict[str, float]:
    """How far each main joint is from where it should be, as a share of the height."""
    found = places(fit)
    return {role: float((found[fit.skeleton.role(role)] - truth[role]).norm()) / height for role in MAIN if role in truth and fit.skeleton.has(role)}


def height_of(mesh: Mesh) -> float:
    return float(mesh.vertices[:, 1].max() - mesh.vertices[:, 1].min())


def moved(mesh: Mesh, vertices: Float[Tensor, "V 3"]) -> Mesh:
    return Mesh(vertices=vertices, faces=mesh.faces)


def turned(points: Float[Tensor, "N 3"], degrees: float) -> Float[Tensor, "N 3"]:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return points @ torch.tensor([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]).T


@cache
def fitted_human() -> tuple[Mesh, Points, Fit]:
    mesh, truth = bodies.human("soma30")
    return mesh, truth, fit_skeleton(mesh)


def test_a_human_gets_its_joints_back() -> None:
    mesh, truth, fit = fitted_human()
    assert fit.template == "biped"
    assert fit.confidence > 0.8
    assert next(iter(fit.scores)) == "biped"
    assert fit.notes[0].startswith("chose the template biped")
    errors = misses(fit, truth, height_of(mesh))
    assert len(errors) == 17
    assert sum(errors.values()) / len(errors) < 0.045
    assert max(errors.values()) < 0.10, errors
    assert (places(fit)[fit.skeleton.role("left_hand")] > 0)[0]


def test_arms_may_hang() -> None:
    mesh, truth = bodies.human("soma30", arms_down=70.0)
    errors = misses(fit_skeleton(mesh, "biped"), truth, height_of(mesh))
    assert sum(errors.values()) / len(errors) < 0.05, errors
    assert max(errors[role] for role in ("left_elbow", "left_hand", "right_elbow", "right_hand")) < 0.08, errors


def test_a_dog_gets_its_joints_back() -> None:
    mesh, truth = bodies.dog()
    fit = fit_skeleton(mesh)
    assert fit.template == "quadruped"
    errors = misses(fit, truth, height_of(mesh))
    assert sum(errors.values()) / len(errors) < 0.06, errors
    assert {"tail_1", "tail_end"} <= set(fit.skeleton.joints)


def test_what_a_dog_carries_does_not_lift_its_spine() -> None:
    mesh, _ = bodies.dog()
    pack = ellipsoid(torch.tensor([0.0, 0.85, 0.0]), torch.tensor([0.15, 0.2, 0.2]))
    bare, laden = fit_skeleton(mesh, "quadruped"), fit_skeleton(merge([mesh, pack]), "quadruped")
    for role in ("spine", "chest"):
        rise = (places(laden)[laden.skeleton.role(role)] - places(bare)[bare.skeleton.role(role)])[1]
        assert abs(float(rise)) < 0.04, (role, rise)


def test_joints_of_a_dog_are_in_order() -> None:
    fit = fit_skeleton(bodies.dog()[0], "quadruped")
    found = {name: place.tolist() for name, place in zip(fit.skeleton.joints, places(fit), strict=True)}
    ahead = [found[name][2] for name in ("hips", "spine", "chest", "neck", "head")]
    assert ahead == sorted(ahead)
    for leg in (("hip", "knee", "hock", "foot", "toe"), ("shoulder", "elbow", "hand", "hand_end")):
        down = [found[f"left_{joint}"][1] for joint in leg]
        assert down == sorted(down, reverse=True), leg
    assert found["left_knee"][2] > found["left_hock"][2]


@pytest.mark.parametrize("kind", ["spider", "snake", "fish", "hen"])
def test_the_template_is_chosen(kind: str) -> None:
    mesh = getattr(bodies, kind)()
    told: list[str] = []
    fit = fit_skeleton(mesh, on_progress=told.append)
    assert told == ["looking for the mirror plane", "measuring the body", "placing joints"]
    assert fit.template == {"hen": "bird"}.get(kind, kind), fit.scores
    assert 0.4 < fit.confidence <= 1
    low, high = mesh.vertices.amin(0), mesh.vertices.amax(0)
    assert ((places(fit) >= low - 0.05) & (places(fit) <= high + 0.05)).all()
    assert fit.skeleton.joints[0] in ("hips", "body")


@pytest.mark.parametrize(("degrees", "facing", "unit"), [(180.0, "−Z", 1e3), (-90.0, "−X", 1e-4), (40.0, "40° from +Z towards +X", 1.0)])
def test_a_body_may_face_any_way_in_any_unit(degrees: float, facing: str, unit: float) -> None:
    mesh, _, fit = fitted_human()
    again = fit_skeleton(moved(mesh, turned(mesh.vertices, degrees) * unit))
    assert again.template == fit.template
    assert float((places(again) / unit - turned(places(fit), degrees)).norm(dim=1).max()) < 0.03 * height_of(mesh)
    assert any(f"face {facing}, not +Z" in note for note in again.notes), again.notes


def test_noise_holes_and_flipped_faces_do_little() -> None:
    mesh, truth, _ = fitted_human()
    generator = torch.Generator().manual_seed(0)
    keep = torch.rand(len(mesh.faces), generator=generator) > 0.15
    faces = torch.where((torch.rand(len(mesh.faces), 1, generator=generator) > 0.5), mesh.faces, mesh.faces.flip(1))[keep]
    rough = Mesh(vertices=mesh.vertices + 0.003 * torch.randn(mesh.vertices.shape, generator=generator), faces=faces)
    fit = fit_skeleton(rough, "biped")
    errors = misses(fit, truth, height_of(mesh))
    assert sum(errors.values()) / len(errors) < 0.06, errors
    assert "the mesh is open; what lies inside it was estimated" in fit.notes


def test_what_is_no_body_is_refused() -> None:
    corner = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    sheet = Mesh(vertices=corner, faces=torch.tensor([[0, 1, 2]]))
    with pytest.raises(BadValue, match="3 vertices and no faces, so it has no inside; give a mesh with triangles"):
        fit_skeleton(replace(sheet, faces=torch.zeros(0, 3, dtype=torch.long)))
    with pytest.raises(BadValue, match="no volume to put bones into; give a body, not a sheet"):
        fit_skeleton(sheet)
    with pytest.raises(BadValue, match="no surface to put bones into"):
        fit_skeleton(moved(sheet, torch.ones(3, 3)))
    with pytest.raises(BadValue, match="no template 'unicorn'; choose one of biped, bird, fish, quadruped, snake, spider, theropod"):
        fit_skeleton(sheet, "unicorn")
    pill = ellipsoid(torch.tensor([0.0, 0.3, 0.0]), torch.tensor([0.3, 0.3, 1.0]))
    with pytest.raises(BadValue, match="no ends that could be the limbs of 'quadruped'; choose another of"):
        fit_skeleton(pill, "quadruped")


def test_a_block_gets_some_skeleton_and_little_trust() -> None:
    fit = fit_skeleton(box(torch.tensor([0.0, 0.5, 0.0]), torch.tensor([0.3, 1.0, 0.6]), grid=2), "quadruped")
    assert fit.confidence < 0.8


KNOWN = {  # and how many % of the height the main joints may be off on average
    "humanoids/Woman_Casual": ("biped", 5.0),
    "humanoids/Enemy_Large": ("biped", 5.0),
    "animals/Alpaca": ("quadruped", 4.0),
    "animals/Husky": ("quadruped", 5.0),
    "animals/Pug": ("quadruped", 6.0),
    "animals/Wolf": ("quadruped", 6.0),
    "animals/Spider": ("spider", 0.0),
    "animals/Snake": ("snake", 0.0),
    "animals/Whale": ("fish", 0.0),
    "animals/Chicken": ("bird", 0.0),
}


@pytest.mark.parametrize("name", KNOWN)
def test_artists_put_their_joints_there_too(name: str, shared: Path) -> None:
    template, limit = KNOWN[name]
    character = load_character(shared / "data" / "rigged_assets" / f"{name}.glb")
    fit = fit_skeleton(character.mesh)
    assert fit.template == template, fit.scores
    if limit:
        rest = rest_poses(character.skeleton).p_world_joint
        errors = misses(fit, {role: rest[joint] for role, joint in character.skeleton.roles.items()}, height_of(character.mesh))
        assert 100 * sum(errors.values()) / len(errors) < limit, errors


def test_templates_are_whole() -> None:
    assert list(templates()) == ["biped", "bird", "fish", "quadruped", "snake", "spider", "theropod"]
    for template in templates().values():
        names = [joint.name for joint in template.joints]
        limbs = {limb.name for limb in template.limbs}
        assert template.joints[0].parent is None
        for number, joint in enumerate(template.joints[1:], 1):
            assert joint.parent in names[:number], (template.name, joint.name)
            assert joint.on == "trunk" or joint.on in limbs
            assert ("{side}" in joint.name) == (joint.on != "trunk" and template.limb(joint.on).pair)
            assert joint.role is None or joint.role.replace("{side}", "left") in ROLES
        for names_of_anchor in template.trunk:
            assert set(names_of_anchor) <= limbs
