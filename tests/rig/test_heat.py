"""Heat weights: the laws of their equation, and meshes as bad as they come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from limbs import Body, arm, legs, solid, soup, together

from bunraku.errors import BadValue
from bunraku.rig import heat_weights

ROUNDING = 1e-6  # what 1e-6 of welding and Embree's float32 may change in a weight


def random_turn(seed: int) -> np.ndarray:
    q = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    return q * np.linalg.det(q)


def moved(body: Body, R: np.ndarray, scale: float, shift: np.ndarray) -> Body:
    vertices, faces, heads, tails = body
    return vertices @ R.T * scale + shift, faces, heads @ R.T * scale + shift, tails @ R.T * scale + shift


def require_weights(weights: np.ndarray, shape: tuple[int, int]) -> None:
    assert weights.shape == shape
    assert np.isfinite(weights).all()
    assert weights.min() >= 0
    assert weights.max() <= 1
    assert np.abs(weights.sum(1) - 1).max() < 1e-12


# --- laws ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bones", [1, 2, 5])
def test_rows_sum_to_one_between_zero_and_one(bones: int) -> None:
    vertices, faces, heads, tails = arm(bones)
    weights, report = heat_weights(vertices, faces, heads, tails)
    require_weights(weights, (len(vertices), bones))
    assert report.lines == ()
    assert report.idle_bones == ()
    assert report.warmed == report.vertices == len(vertices)


@given(seed=st.integers(0, 1000), scale=st.sampled_from([1e-4, 1.0, 30.0, 1e4]))
def test_moving_and_scaling_changes_nothing(seed: int, scale: float) -> None:
    body = arm(3, spans=5)
    shift = np.random.default_rng(seed).normal(size=3) * scale
    weights = heat_weights(*moved(body, random_turn(seed), scale, shift))[0]
    assert np.abs(weights - heat_weights(*body)[0]).max() < ROUNDING


@given(seed=st.integers(0, 1000))
def test_the_order_of_bones_and_vertices_does_not_matter(seed: int) -> None:
    vertices, faces, heads, tails = arm(4, spans=5)
    rng = np.random.default_rng(seed)
    bones, rows = rng.permutation(4), rng.permutation(len(vertices))
    weights = heat_weights(vertices, faces, heads, tails)[0]
    shuffled = heat_weights(vertices[rows], np.argsort(rows)[faces][rng.permutation(len(faces))], heads[bones], tails[bones])[0]
    assert np.abs(shuffled - weights[rows][:, bones]).max() < ROUNDING


def test_a_mirrored_body_has_mirrored_weights() -> None:
    vertices, faces, heads, tails = legs()
    flip = np.array([-1.0, 1.0, 1.0])
    mirrored = heat_weights(vertices * flip, faces[:, ::-1], heads * flip, tails * flip)[0]
    assert np.abs(mirrored - heat_weights(vertices, faces, heads, tails)[0]).max() < ROUNDING


def test_a_bent_limb_changes_hands_smoothly_at_its_joint() -> None:
    vertices, faces, heads, tails = arm(2, spans=40)
    weights = heat_weights(vertices, faces, heads, tails)[0]
    order = np.argsort(vertices[:, 0], kind="stable")
    places = np.unique(vertices[:, 0].round(6))
    profile = np.array([weights[np.abs(vertices[:, 0] - x) < 1e-5, 1].mean() for x in places])
    assert (np.diff(profile) > -1e-3).all()  # monotone
    assert np.diff(profile).max() < 0.3  # no jump from one ring to the next
    assert weights[order[0], 1] < 0.01
    assert weights[order[-1], 1] > 0.99
    assert abs(np.interp(1.0, places, profile) - 0.5) < 0.02


def test_left_does_not_follow_right() -> None:
    vertices, faces, heads, tails = legs()
    weights = heat_weights(vertices, faces, heads, tails)[0]
    assert np.abs(weights[vertices[:, 0] < 0, 1]).max() < 1e-6
    assert np.abs(weights[vertices[:, 0] > 0, 0]).max() < 1e-6


def test_bones_on_one_spot_share() -> None:
    vertices, faces, heads, tails = arm(1)
    weights = heat_weights(vertices, faces, np.concatenate([heads, heads]), np.concatenate([tails, tails]))[0]
    assert np.abs(weights - 0.5).max() < 1e-9


def test_torch_in_torch_out() -> None:
    given_ = [torch.from_numpy(value) for value in arm(2)]
    weights, report = heat_weights(*given_)
    assert isinstance(weights, torch.Tensor)
    assert weights.dtype == torch.float64
    assert np.array_equal(weights.numpy(), heat_weights(*arm(2))[0])
    assert heat_weights(given_[0].float(), *given_[1:])[0].dtype == torch.float32
    assert report.bones == 2


def test_the_solution_solves_the_equation() -> None:
    """Against dense linear algebra on a Laplacian built edge by edge."""
    vertices, faces, heads, tails = arm(2, spans=4)
    from bunraku.geometry.components import shells
    from bunraku.geometry.laplacian import surface_laplacian
    from bunraku.geometry.weld import weld
    from bunraku.rig.heat_sources import heat_sources

    welded = weld(vertices, faces)
    L, area = surface_laplacian(welded.points, welded.faces)
    sources = heat_sources(welded.points, welded.faces, welded.to_unit(heads), welded.to_unit(tails), shells(welded.faces, len(welded.points))[1])
    dense = np.linalg.solve(L.toarray() + np.diag(area * sources.total), area[:, None] * sources.heat.toarray())
    assert np.abs(dense[welded.of_vertex] - heat_weights(vertices, faces, heads, tails)[0]).max() < 1e-7


# --- bad meshes ---------------------------------------------------------------------------------------------------------


def broken(kind: str, rng: np.random.Generator) -> Body:
    vertices, faces, heads, tails = arm(3, spans=6)
    if kind == "deleted faces":
        faces = faces[rng.random(len(faces)) < 0.6]
    elif kind == "flipped faces":
        faces = np.where((rng.random(len(faces)) < 0.5)[:, None], faces[:, ::-1], faces)
    elif kind == "inside out":
        faces = faces[:, ::-1]
    elif kind == "doubled faces":
        faces = np.concatenate([faces, faces[:, ::-1], faces[::3]])
    elif kind == "soup":
        vertices, faces = soup(vertices, faces)
    elif kind == "flipped soup":
        vertices, faces = soup(vertices, np.where((rng.random(len(faces)) < 0.5)[:, None], faces[:, ::-1], faces))
    elif kind == "torn soup":
        vertices, faces = soup(vertices, faces)
        vertices = vertices + 0.004 * rng.normal(size=vertices.shape)
    elif kind == "flat faces":
        faces = np.concatenate([faces, rng.integers(0, len(vertices), (20, 1)).repeat(3, 1), faces[:5][:, [0, 0, 1]]])
    elif kind == "non-manifold":
        faces = np.concatenate([faces, rng.integers(0, len(vertices), (30, 3))])
    elif kind == "loose vertices":
        vertices = np.concatenate([vertices, rng.normal(size=(7, 3))])
    elif kind == "many shells":
        extra = [solid(tuple(c), tuple(c + 0.02), 0.02, segments=4, spans=1) for c in rng.normal(size=(9, 3))]
        vertices, faces = together((vertices, faces), *((mesh.vertices.numpy(), mesh.faces.numpy()) for mesh in extra))
    elif kind == "flat sheet":
        vertices = vertices * np.array([1.0, 1.0, 0.0])
    elif kind == "needles":
        vertices = vertices * np.array([1.0, 1e-5, 1e-5])
    elif kind == "one triangle":
        faces = faces[:1]
    elif kind == "no faces":
        faces = faces[:0]
    elif kind == "bones without length":
        tails = heads.copy()
    elif kind == "bones elsewhere":
        heads, tails = heads + 50.0, tails + 50.0
    return vertices, faces, heads, tails


KINDS = [
    *("deleted faces", "flipped faces", "inside out", "doubled faces", "soup", "flipped soup", "torn soup", "flat faces", "non-manifold", "loose vertices"),
    *("many shells", "flat sheet", "needles", "one triangle", "no faces", "bones without length", "bones elsewhere"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_broken_meshes_get_weights(kind: str, scale: float) -> None:
    rng = np.random.default_rng(len(kind))
    vertices, faces, heads, tails = broken(kind, rng)
    rows = rng.permutation(len(vertices))
    weights, _ = heat_weights(vertices[rows] * scale, np.argsort(rows)[faces], heads * scale, tails * scale)
    require_weights(weights, (len(vertices), len(heads)))


@pytest.mark.parametrize("kind", ["flipped faces", "inside out", "doubled faces", "soup", "flipped soup", "flat faces"])
def test_what_can_be_repaired_changes_nothing(kind: str) -> None:
    """A vertex weighs what it does on the clean mesh, wherever it went; and the report says what was done."""
    vertices, faces, heads, tails = broken(kind, np.random.default_rng(5))
    clean = arm(3, spans=6)
    nearest = np.linalg.norm(vertices[:, None] - clean[0], axis=-1).argmin(1)
    weights, report = heat_weights(vertices, faces, heads, tails)
    assert np.abs(weights - heat_weights(*clean)[0][nearest]).max() < ROUNDING
    assert report.lines


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("soup", "welded"),
        ("flat faces", "no area"),
        ("doubled faces", "repeat"),
        ("inside out", "turned"),
        ("loose vertices", "no face"),
        ("many shells", "hold no bone"),
        ("bones elsewhere", "inside the mesh"),
    ],
)
def test_the_report_says_what_was_repaired(kind: str, word: str) -> None:
    report = heat_weights(*broken(kind, np.random.default_rng(1)))[1]
    assert any(word in line for line in report.lines), report.lines
    assert replace(report, repeated=0) != report or kind != "soup"


@pytest.mark.parametrize("with_face", [True, False])
def test_a_stray_vertex_far_off_does_not_matter(with_face: bool) -> None:
    vertices, faces, heads, tails = arm(3)
    stray = np.array([[1e5, 0, 0]])
    more = np.concatenate([faces, [[0, 1, len(vertices)]]]) if with_face else faces
    weights = heat_weights(np.concatenate([vertices, stray]), more, heads, tails)[0]
    assert np.abs(weights[:-1] - heat_weights(vertices, faces, heads, tails)[0]).max() < (0.2 if with_face else ROUNDING)


def test_a_buckle_follows_the_body_under_it() -> None:
    """It lies on the first bone's skin. A third bone outside the body is nearer to the buckle than the first, but nearer still to the body."""
    vertices, faces, heads, tails = arm(2)
    buckle = solid((0.5, 0.24, 0.0), (0.52, 0.24, 0.0), 0.02, segments=6, spans=1)
    whole = together((vertices, faces), (buckle.vertices.numpy(), buckle.faces.numpy()))
    other = np.array([[0.5, 0.21, 0.12]])
    weights, report = heat_weights(*whole, np.concatenate([heads, other]), np.concatenate([tails, other + np.array([0.1, 0.0, 0.0])]))
    on_buckle = weights[len(vertices) :]
    below = weights[np.linalg.norm(vertices - np.array([0.5, 0.2, 0.0]), axis=1).argmin()]
    assert report.carried_shells == 1
    assert np.abs(on_buckle - below).max() < 0.1
    assert on_buckle[:, 2].max() < 0.05


def test_a_wing_follows_the_bone_that_runs_along_it() -> None:
    """An open sheet beside the body, its bone a little above it."""
    vertices, faces, heads, tails = arm(1)
    wing = np.array([[x, 0.25, z] for x in (0.8, 1.2) for z in np.linspace(0.0, 2.0, 11)])
    panels = np.array([[i, i + 1, i + 11] for i in range(10)] + [[i + 1, i + 12, i + 11] for i in range(10)])
    whole = together((vertices, faces), (wing, panels))
    bone = np.array([[1.0, 0.28, 0.3]])
    weights, report = heat_weights(*whole, np.concatenate([heads, bone]), np.concatenate([tails, bone + np.array([0.0, 0.0, 1.7])]))
    assert report.carried_shells == 0
    assert weights[len(vertices) :, 1].min() > 0.9
    assert weights[: len(vertices), 0].min() > 0.9


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda v, f, h, t: (v * np.nan, f, h, t), "not finite"),
        (lambda v, f, h, t: (v, f, h + np.array([np.inf, 0, 0]), t), "not finite"),
        (lambda v, f, h, t: (v[:0], f[:0], h, t), "0 vertices"),
        (lambda v, f, h, t: (v, f, h[:0], t[:0]), "0 bones"),
        (lambda v, f, h, t: (v, f, h, t[:1]), "head and a tail"),
        (lambda v, f, h, t: (v, f + 1, h, t), "names vertex"),
    ],
)
@pytest.mark.usefixtures("unchecked_shapes")
def test_what_makes_no_sense_is_refused_in_words(change: object, said: str) -> None:
    with pytest.raises(BadValue, match=said):
        heat_weights(*change(*arm(2)))  # type: ignore[operator]


def test_three_hundred_bones() -> None:
    vertices, faces, heads, tails = arm(300, spans=4)
    require_weights(heat_weights(vertices, faces, heads, tails)[0], (len(vertices), 300))
