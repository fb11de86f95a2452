"""Features of crops, batches and mirrored motion, against the generator's own encoding."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bunraku.datasets.build import build
from bunraku.datasets.features import batch_features, crop_features, mirror_features, random_heading, rows_features
from bunraku.datasets.rows import PoseRows
from bunraku.datasets.statistics import statistics_of
from bunraku.datasets.store import Dataset
from bunraku.generator.features import FeatureLayout, encode
from bunraku.kinematics.contacts import detect_contacts
from bunraku.kinematics.edit import mirror
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.smooth_root import smoothed_root
from bunraku.kinematics.walk import walk
from bunraku.math.rotations import exp_quat, quat_multiply
from tests.datasets.some_source import Walks

LAYOUT = FeatureLayout(skeleton=skeleton("soma30"), fps=30.0)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return build(Walks(3), tmp_path_factory.mktemp("walks") / "d", workers=1)


def lively(seed: int, frames: int = 50) -> Motion:
    """A walk in which every joint is turned anyhow, so that no symmetry hides a mistake."""
    generator = torch.Generator().manual_seed(seed)
    motion = walk(LAYOUT.skeleton, seconds=frames / 30)
    turns = exp_quat(0.6 * torch.randn(1, 30, 3, generator=generator).expand(frames, -1, -1) * torch.linspace(0, 1, frames)[:, None, None])
    motion = replace(motion, quats=quat_multiply(motion.quats, turns))
    return replace(motion, contacts=detect_contacts(motion))


def rows_of(motion: Motion) -> PoseRows:
    smooth = smoothed_root(motion.root_position)[:, [0, 2]]
    assert motion.contacts is not None
    return PoseRows(root_position=motion.root_position, smooth_xz=smooth, quats=motion.quats, contacts=motion.contacts)


@pytest.mark.parametrize("seed", range(3))
def test_rows_encode_as_the_generator_does(seed: int) -> None:
    motion = lively(seed)
    assert (rows_features(LAYOUT, rows_of(motion)) - encode(LAYOUT, motion)).abs().max() < 1e-5


@pytest.mark.parametrize("seed", range(5))
def test_mirrored_features_are_the_features_of_the_mirrored_motion(seed: int) -> None:
    motion = lively(seed)
    mirrored = mirror_features(LAYOUT, encode(LAYOUT, motion))
    expected = encode(LAYOUT, mirror(motion))
    away = (mirrored - expected).abs()
    assert away[:, LAYOUT.joint_velocities].max() < 3e-4  # m/s: differences of positions, times 30
    away[:, LAYOUT.joint_velocities] = 0
    assert away.max() < 1e-5
    twice = mirror_features(LAYOUT, mirrored)
    assert (twice - encode(LAYOUT, motion)).abs().max() < 5e-4


def test_mirroring_turns_left_into_right(dataset: Dataset) -> None:
    features = crop_features(dataset, 1, range(60))
    mirrored = mirror_features(LAYOUT, features)
    left, right = (LAYOUT.position_columns(LAYOUT.skeleton.role(f"{side}_hand")) for side in ("left", "right"))
    S = torch.tensor([-1.0, 1.0, 1.0])
    assert (mirrored[:, left] - features[:, right] * S).abs().max() < 0.01
    assert torch.equal(mirrored[:, LAYOUT.contacts], features[:, LAYOUT.contacts][:, [2, 3, 0, 1]])


def test_a_crop_keeps_the_smoothed_root_of_its_clip(dataset: Dataset) -> None:
    whole, crop = dataset.features(0), crop_features(dataset, 0, range(20, 50))
    assert (crop[:-1] - whole[20:49]).abs().max() < 1e-5
    assert (crop[-1, LAYOUT.root] - whole[49, LAYOUT.root]).abs().max() < 1e-6
    assert torch.equal(crop[-1, LAYOUT.joint_velocities], crop[-2, LAYOUT.joint_velocities])


def test_a_padded_batch_gives_each_crop_its_own_features(dataset: Dataset) -> None:
    crops = [dataset.rows(0, range(5, 45)), dataset.rows(1, range(25))]

    def padded(name: str) -> torch.Tensor:
        return torch.nn.utils.rnn.pad_sequence([getattr(rows, name) for rows in crops], batch_first=True)

    names = ("root_position", "smooth_xz", "quats", "contacts")
    batch = batch_features(LAYOUT, *(padded(name) for name in names), lengths=torch.tensor([40, 25]))
    for row, crop in zip(batch, crops, strict=True):
        assert (row[: len(crop)] - rows_features(LAYOUT, crop)).abs().max() < 1e-6
    mirrored = mirror_features(LAYOUT, batch, torch.tensor([40, 25]))
    assert (mirrored[1, :25] - mirror_features(LAYOUT, rows_features(LAYOUT, crops[1]))).abs().max() < 1e-5


def test_random_headings_start_above_the_origin_and_face_everywhere(dataset: Dataset) -> None:
    generator = torch.Generator().manual_seed(0)
    turned = [random_heading(LAYOUT, dataset.features(1), generator) for _ in range(40)]
    assert max(float(f[0, [0, 2]].abs().max()) for f in turned) < 1e-6
    headings = torch.stack([torch.atan2(f[0, 4], f[0, 3]) for f in turned])
    assert headings.cos().mean().abs() < 0.4
    assert headings.sin().mean().abs() < 0.4


def test_statistics_are_those_of_the_train_split(dataset: Dataset, tmp_path: Path) -> None:
    stats = statistics_of(dataset)
    assert torch.equal(stats.body.mean, dataset.stats.body.mean)
    heights = torch.cat([dataset.rows(clip).root_position[:, 1] for clip in dataset.of_split("train")])
    assert float(stats.global_root.mean[1]) == pytest.approx(float(heights.mean()), abs=1e-3)
    left, right = (LAYOUT.position_columns(LAYOUT.skeleton.role(f"{side}_hand")).start + 1 - 5 for side in ("left", "right"))
    assert abs(float(stats.body.mean[left] - stats.body.mean[right])) < 0.01  # mirrored copies are in it
    assert all(torch.isfinite(spread.std).all() for spread in vars(stats).values())
