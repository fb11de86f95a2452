"""The side-car gives back what BVH and CSV cannot hold, and never outlives the file it belongs to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bunraku.errors import FormatProblem
from bunraku.files.formats import load_motion, save_motion
from bunraku.files.sidecar import sidecar_path
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, Provenance, rest_motion


def told(name: str) -> Motion:
    return replace(
        rest_motion(skeleton(name), 5, fps=24.0),
        contacts=torch.tensor([[True, False, True, True]]).repeat(5, 1),
        provenance=Provenance(prompt="Он машет рукой.", seed=7, model="none", version="0.1.0", notes={"unit": "metres"}),
    )


@pytest.mark.parametrize(("name", "suffix"), [("cmu23", "bvh"), ("soma77", "bvh"), ("g1", "csv")])
def test_everything_comes_back(tmp_path: Path, name: str, suffix: str) -> None:
    motion, path = told(name), tmp_path / f"a b.{suffix}"
    save_motion(motion, path)
    back = load_motion(path)
    assert back.fps == 24.0
    assert back.skeleton.name == name
    assert dict(back.skeleton.roles) == {role: back.skeleton.index[motion.skeleton.joints[j]] for role, j in motion.skeleton.roles.items()}
    assert back.contacts is not None
    assert torch.equal(back.contacts, motion.contacts)
    assert (back.provenance.prompt, back.provenance.seed, back.provenance.model) == ("Он машет рукой.", 7, "none")
    assert "fps" not in back.provenance.notes


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_a_bvh_of_ours_keeps_its_size_without_a_guess(tmp_path: Path, size: float) -> None:
    body = skeleton("smplx22")
    figure = replace(body, name="figure", joints=tuple(f"{joint}_" for joint in body.joints), offsets=body.offsets * size)
    save_motion(rest_motion(figure), tmp_path / "a.bvh")
    back = load_motion(tmp_path / "a.bvh")
    order = [back.skeleton.index[joint] for joint in figure.joints]
    torch.testing.assert_close(back.skeleton.offsets[order], figure.offsets, atol=1e-6, rtol=0)
    assert "unit" not in back.provenance.notes


def test_a_frame_rate_that_is_asked_for_wins(tmp_path: Path) -> None:
    save_motion(told("g1"), tmp_path / "a.csv")
    assert load_motion(tmp_path / "a.csv", fps=50.0).fps == 50.0


def test_a_changed_file_leaves_its_sidecar_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    save_motion(told("g1"), path)
    path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")
    back = load_motion(path)
    assert len(back) == 6
    assert back.provenance.prompt is None
    assert "another version" in back.provenance.notes["sidecar"]


def test_somebody_elses_json_is_left_alone_and_broken_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.bvh"
    save_motion(told("cmu23"), path)
    sidecar_path(path).write_text('{"takes": 3}')
    assert load_motion(path).provenance.prompt is None
    sidecar_path(path).write_text('{"takes": ')
    with pytest.raises(FormatProblem, match=r"a\.bvh\.json"):
        load_motion(path)


@pytest.mark.parametrize("joint", [[], {}, 3, None])
def test_a_role_played_by_no_name_is_passed_over(tmp_path: Path, joint: object) -> None:
    path = tmp_path / "m.bvh"
    save_motion(told("cmu23"), path)
    data = json.loads(sidecar_path(path).read_text())
    sidecar_path(path).write_text(json.dumps({**data, "roles": {**data["roles"], "hips": joint}}))
    assert set(load_motion(path).skeleton.roles) == set(data["roles"]) - {"hips"}
