"""SOMA with 30 and with 77 joints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bunraku.errors import SkeletonMismatch
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.soma import expand_soma, reduce_soma, relaxed_hands
from bunraku.math.rotations import exp_quat, matrix_to_quat, quat_to_matrix
from tests.golden import tensors


def random_soma30(frames: int = 5) -> Motion:
    body = skeleton("soma30")
    return Motion(skeleton=body, fps=30.0, root_position=torch.randn(frames, 3), quats=exp_quat(torch.randn(frames, len(body), 3)))


def test_thirty_joints_come_back_from_seventy_seven() -> None:
    motion = random_soma30()
    wide = expand_soma(motion)
    assert len(wide.skeleton) == 77
    assert torch.equal(reduce_soma(wide).quats, motion.quats)
    assert torch.equal(wide.root_position, motion.root_position)


def test_the_body_stands_where_it_stood() -> None:
    motion = random_soma30()
    wide = expand_soma(motion)
    narrow, broad = forward_kinematics(motion).p_world_joint, forward_kinematics(wide).p_world_joint
    below_hands = ("ThumbEnd", "MiddleEnd")  # these hang from the last finger joint in 77, from the wrist in 30
    shared = [name for name in motion.skeleton.joints if not name.endswith(below_hands)]
    here, there = [motion.skeleton.index[name] for name in shared], [wide.skeleton.index[name] for name in shared]
    assert float((narrow[:, here] - broad[:, there]).abs().max()) < 1e-4


def test_joints_that_thirty_lack_hold_the_relaxed_pose() -> None:
    wide = expand_soma(random_soma30())
    missing = [j for j, name in enumerate(wide.skeleton.joints) if name not in skeleton("soma30").index]
    assert len(missing) == 47
    assert torch.allclose(wide.quats[:, missing], relaxed_hands()[missing].expand(5, -1, -1))
    bent = [wide.skeleton.joints[j] for j in missing if float(wide.quats[0, j, 1:].norm()) > 0.01]
    assert all("Hand" in name for name in bent)
    assert len(bent) > 20


def test_stretching_bones_are_carried_where_the_parent_is_the_same() -> None:
    motion = random_soma30()
    motion = replace(motion, translations=torch.randn(5, 30, 3))
    wide = expand_soma(motion)
    elbow = skeleton("soma77").role("left_elbow")
    assert torch.equal(wide.translations[:, elbow], motion.translations[:, skeleton("soma30").role("left_elbow")])
    thumb = skeleton("soma77").index["LeftHandThumbEnd"]
    assert torch.allclose(wide.translations[:, thumb], skeleton("soma77").offsets[thumb].expand(5, -1))


def test_other_skeletons_are_refused() -> None:
    with pytest.raises(SkeletonMismatch, match="needs a motion on 'soma30', not on 'cmu23'"):
        expand_soma(rest_motion(skeleton("cmu23")))
    with pytest.raises(SkeletonMismatch, match="needs a motion on 'soma77', not on 'soma30'"):
        reduce_soma(random_soma30())


@pytest.mark.parametrize("file", ["soma30/denoiser", "soma30/constrained", "soma30-mixed/denoiser"])
def test_the_recorded_expansion_of_the_release_is_reproduced(shared: Path, file: str) -> None:
    recorded = tensors(shared / "golden" / "kimodo" / f"{file}.safetensors")
    wide, narrow = skeleton("soma77"), skeleton("soma30")
    columns = [wide.index[name] for name in narrow.joints]
    for R_local, p_root, p_joints in zip(*(recorded[f"sample_{key}"] for key in ("local_rot_mats", "root_positions", "posed_joints")), strict=True):
        motion = Motion(skeleton=narrow, fps=30.0, root_position=p_root, quats=matrix_to_quat(R_local[:, columns]))
        expanded = expand_soma(motion)
        assert float((quat_to_matrix(expanded.quats) - R_local).abs().max()) < 1e-4
        assert float((forward_kinematics(expanded).p_world_joint - p_joints).abs().max()) < 1e-4
