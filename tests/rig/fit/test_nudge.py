"""Joints moved by hand: what is written is read again, what is changed moves that joint alone, and mistakes get a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bunraku.errors import BadValue, FileProblem, FormatProblem
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.library import skeleton
from bunraku.rig.fit import nudged, read_nudges, write_nudges

BODY = skeleton("soma30")


@pytest.mark.parametrize("unit", [1.0, 1e-4, 1e4])
def test_round_trip(unit: float, tmp_path: Path) -> None:
    body = type(BODY)(name="b", joints=BODY.joints, parents=BODY.parents, offsets=BODY.offsets * unit, rest_quats=BODY.rest_quats, roles=BODY.roles)
    write_nudges(body, tmp_path / "joints.json")
    places = read_nudges(tmp_path / "joints.json")
    assert tuple(places) == body.joints
    again = nudged(body, places)
    torch.testing.assert_close(rest_poses(again).p_world_joint, rest_poses(body).p_world_joint, atol=2e-5 * unit, rtol=1e-5)
    assert again.roles == body.roles


def test_one_joint_moves_alone() -> None:
    joint, place = BODY.role("left_knee"), (0.2, 0.5, 0.1)
    moved = nudged(BODY, {BODY.joints[joint]: place})
    before, after = rest_poses(BODY), rest_poses(moved)
    others = torch.arange(len(BODY)) != joint
    torch.testing.assert_close(after.p_world_joint[joint], torch.tensor(place))
    torch.testing.assert_close(after.p_world_joint[others], before.p_world_joint[others], atol=1e-5, rtol=0)
    torch.testing.assert_close(after.R_world_joint, before.R_world_joint, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("{", FormatProblem, "is not JSON"),
        ("[1, 2]", FormatProblem, "holds list, not joints"),
        ('{"Hips": [1, 2]}', BadValue, r"'Hips' is put at \[1, 2\]; a place is three finite numbers"),
        ('{"Hips": [1, 2, NaN]}', BadValue, "three finite numbers"),
        ('{"Hips": "up"}', BadValue, "three finite numbers"),
    ],
)
def test_bad_files(text: str, kind: type[Exception], message: str, tmp_path: Path) -> None:
    (tmp_path / "n.json").write_text(text)
    with pytest.raises(kind, match=message):
        read_nudges(tmp_path / "n.json")


def test_bad_names_and_paths(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match=r"no joint 'Hipps' to move in skeleton 'soma30'.* did you mean 'Hips'"):
        nudged(BODY, {"Hipps": (0.0, 0.0, 0.0)})
    with pytest.raises(FileProblem, match="cannot be read"):
        read_nudges(tmp_path / "missing.json")
    with pytest.raises(FileProblem, match="cannot be written"):
        write_nudges(BODY, tmp_path / "no" / "folder.json")
