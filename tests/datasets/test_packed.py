"""A packed dataset opens like its folder, within the rounding that it states, and with few libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from bunraku.datasets.build import build
from bunraku.datasets.packed import PLACE_STEP, measure_packed, pack
from bunraku.datasets.store import Dataset, open_dataset
from bunraku.errors import FormatProblem
from tests.datasets.some_source import Walks


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("walks")
    pack(build(Walks(5), path / "d", workers=1), path / "walks.pack")
    return path


def test_it_opens_like_its_folder(folder: Path) -> None:
    original, packed = open_dataset(folder / "d"), open_dataset(folder / "walks.pack")
    assert isinstance(packed, Dataset)
    assert packed.clips == original.clips
    assert packed.about == original.about
    assert packed.left_out == original.left_out
    assert torch.equal(packed.stats.features.mean, original.stats.features.mean)
    for clip in range(5):
        a, b = original.rows(clip), packed.rows(clip)
        assert (a.root_position - b.root_position).abs().max() <= PLACE_STEP * 0.51
        assert (a.smooth_xz - b.smooth_xz).abs().max() <= PLACE_STEP * 0.51
        assert torch.equal(a.contacts, b.contacts)
    mean, worst = measure_packed(original, packed, range(5))
    assert mean < 0.00015
    assert worst < 0.0006
    assert (folder / "walks.pack").stat().st_size < 0.45 * (folder / "d" / "shards" / "0000.frames").stat().st_size


def test_packing_what_was_packed_changes_nothing_more(folder: Path) -> None:
    packed = open_dataset(folder / "walks.pack")
    pack(packed, folder / "again.pack")
    again = open_dataset(folder / "again.pack")
    mean, worst = measure_packed(packed, again, range(5))
    assert worst < 0.0002
    assert mean < 0.00002


def test_damage_is_one_sentence(folder: Path) -> None:
    data = (folder / "walks.pack").read_bytes()
    (folder / "half.pack").write_bytes(data[: len(data) // 2])
    with pytest.raises(FormatProblem, match="no whole packed dataset"):
        open_dataset(folder / "half.pack")
    (folder / "text.pack").write_text("hello")
    with pytest.raises(FormatProblem, match="no whole packed dataset"):
        open_dataset(folder / "text.pack")


def test_training_needs_no_more_than_torch_and_numpy(folder: Path) -> None:
    script = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('scipy', 'PIL', 'rich', 'yaml', 'tokenizers', 'threadpoolctl', 'huggingface_hub', 'mujoco'):
            raise ImportError('not on this machine: ' + name)
sys.meta_path.insert(0, Refuse())
import torch
from bunraku.datasets.store import open_dataset
from bunraku.datasets.features import mirror_features, random_heading
from bunraku.datasets.windows import caption_windows, sampling_weights
from bunraku.datasets.paraphrase import paraphrase
from bunraku.datasets.sides import mirrored_text
for path in sys.argv[1:]:
    data = open_dataset(path)
    windows = caption_windows(data, 'train')
    weights = sampling_weights(data, windows)
    crop = data.features(windows[0].clip, windows[0].frames)
    crop = random_heading(data.layout, mirror_features(data.layout, crop), torch.Generator().manual_seed(0))
    assert torch.isfinite((crop - data.stats.features.mean) / data.stats.features.scale).all()
    print(len(windows), float(weights.mean()), paraphrase(mirrored_text(windows[0].captions[0].text), torch.Generator()))
"""
    run = subprocess.run([sys.executable, "-c", script, str(folder / "d"), str(folder / "walks.pack")], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert len(run.stdout.splitlines()) == 2
