"""From a source to a dataset: what comes out, what is left out and said, and what happens when it is stopped in the middle."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from bunraku.datasets import draft as drafts
from bunraku.datasets.build import build
from bunraku.datasets.describe import describe_dataset
from bunraku.datasets.sources.folder import MotionFolder
from bunraku.datasets.store import open_dataset
from bunraku.errors import BunrakuError, FileProblem, FormatProblem
from bunraku.files.formats import save_motion
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.smooth_root import smoothed_root
from bunraku.kinematics.walk import walk
from bunraku.math.rotations import quat_distance
from tests.datasets.some_source import Walks


def test_a_source_becomes_a_dataset(tmp_path: Path) -> None:
    shares: list[float] = []
    built = build(Walks(4), tmp_path / "d", workers=1, on_progress=shares.append)
    opened = open_dataset(tmp_path / "d")
    assert [clip.name for clip in opened.clips] == ["walk-0", "walk-1", "walk-2", "walk-3"] == [clip.name for clip in built.clips]
    assert (opened.of_split("train"), opened.of_split("val"), opened.of_split("test")) == ([0, 1], [2], [3])
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    clip = opened.clips[0]
    assert [(c.start, c.stop, c.mirrored) for c in clip.captions] == [(0, 60, False), (15, 45, True)]
    source = Walks(4).load(Walks(4).recordings()[1])
    kept = opened.motion(1)
    assert (kept.root_position[:, [0, 2]] - source.root_position[:, [0, 2]]).abs().max() < 1e-6
    assert quat_distance(kept.quats, source.quats).max() < 1e-4
    assert (opened.rows(1).smooth_xz - smoothed_root(kept.root_position)[:, [0, 2]]).abs().max() < 1e-5
    assert 0.2 < float(opened.rows(1).contacts.float().mean()) < 0.9


def test_a_crop_is_part_of_its_clip(tmp_path: Path) -> None:
    dataset = build(Walks(2), tmp_path / "d", workers=1)
    whole, part = dataset.rows(1), dataset.rows(1, range(10, 40))
    for name in ("root_position", "smooth_xz", "quats", "contacts"):
        assert torch.equal(getattr(whole, name)[10:40], getattr(part, name))
    again = pickle.loads(pickle.dumps(dataset))
    assert torch.equal(again.rows(1).quats, whole.quats)
    with pytest.raises(BunrakuError, match="range 50:70"):
        dataset.rows(1, range(50, 70))
    with pytest.raises(BunrakuError, match="no clip 9"):
        dataset.rows(9)


def test_what_cannot_be_used_is_left_out_and_said(tmp_path: Path) -> None:
    dataset = build(Walks(3, broken=True), tmp_path / "d", workers=1)
    assert [clip.name for clip in dataset.clips] == ["walk-0", "walk-2"]
    assert dict(dataset.left_out)["walk-1"].startswith("its numbers are not finite, first at frame 7")
    assert "no motion" in dict(dataset.left_out)["ghost"]
    assert describe_dataset(dataset)["empty splits"] == ["test"]


def test_nothing_usable_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FormatProblem, match="nothing of 'walks' could be converted"):
        build(Walks(0), tmp_path / "d", workers=1)


def test_a_build_goes_on_where_it_was(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        build(Walks(4, fail_at=2), tmp_path / "d", workers=1)
    with pytest.raises(FileProblem, match="not finished"):
        open_dataset(tmp_path / "d")
    shard = tmp_path / "d" / "shards" / "0000.frames"
    before = shard.read_bytes()
    shard.write_bytes(before + b"half a clip")  # killed while a clip was written, and while its line was
    with (tmp_path / "d" / "journal.jsonl").open("ab") as stream:
        stream.write(b'{"recording": "walk-2", "cl')
    resumed = build(Walks(4), tmp_path / "d", workers=1)
    assert shard.read_bytes()[: len(before)] == before  # what was done was not done again
    straight = build(Walks(4), tmp_path / "straight", workers=1)
    assert resumed.clips == straight.clips
    for clip in range(4):
        assert torch.equal(resumed.rows(clip).quats, straight.rows(clip).quats)
    assert torch.equal(resumed.stats.body.mean, straight.stats.body.mean)


def test_another_build_is_not_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        build(Walks(4, fail_at=2), tmp_path / "d", workers=1)
    with pytest.raises(FileProblem, match="recordings: 4 there, 5 now"):
        build(Walks(5), tmp_path / "d", workers=1)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(FileProblem, match="not empty"):
        build(Walks(2), tmp_path / "mine", workers=1)
    build(Walks(2), tmp_path / "done", workers=1)
    with pytest.raises(FileProblem, match="already holds a finished dataset"):
        build(Walks(2), tmp_path / "done", workers=1)


def test_a_full_disk_is_one_sentence_and_no_broken_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def full(stream: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise OSError(28, "No space left on device")
        real(stream)  # type: ignore[arg-type]

    real = drafts._sync
    monkeypatch.setattr(drafts, "_sync", full)
    with pytest.raises(FileProblem, match=r"No space left on device.*run the same command again"):
        build(Walks(4), tmp_path / "d", workers=1)
    monkeypatch.setattr(drafts, "_sync", real)
    assert len(build(Walks(4), tmp_path / "d", workers=1)) == 4


def test_damage_is_seen(tmp_path: Path) -> None:
    build(Walks(2), tmp_path / "d", workers=1)
    shard = tmp_path / "d" / "shards" / "0000.frames"
    shard.write_bytes(shard.read_bytes()[:-300])
    with pytest.raises(FormatProblem, match="shorter than the"):
        open_dataset(tmp_path / "d")
    (tmp_path / "d" / "clips.jsonl").write_text('{"name": 3}\n')
    with pytest.raises(FormatProblem, match=r"line 1"):
        open_dataset(tmp_path / "d")
    (tmp_path / "d" / "dataset.json").write_text("{}")
    with pytest.raises(FormatProblem, match="no manifest"):
        open_dataset(tmp_path / "d")
    with pytest.raises(FileProblem, match="there is no dataset"):
        open_dataset(tmp_path / "nowhere")


def test_a_killed_build_with_workers_leaves_no_process_and_can_go_on(tmp_path: Path) -> None:
    takes = tmp_path / "takes"
    takes.mkdir()
    long = walk(skeleton("soma30"), seconds=4.0)
    for n in range(6):
        save_motion(long[: 45 + 15 * n], takes / f"{n}.npz")
    (tmp_path / "takes.csv").write_text("file,text\n" + "".join(f"{n}.npz,A person walks.\n" for n in range(6)))
    command = [sys.executable, "-m", "bunraku.cli", "data", "build", "folder", str(takes), "--captions", str(tmp_path / "takes.csv")]
    command += ["-o", str(tmp_path / "d"), "--workers", "2"]
    child = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    journal = tmp_path / "d" / "journal.jsonl"
    until = time.monotonic() + 60
    while time.monotonic() < until and child.poll() is None and not (journal.exists() and journal.stat().st_size):
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    until = time.monotonic() + 30
    while time.monotonic() < until and _alive(child.pid):
        time.sleep(0.1)
    assert not _alive(child.pid), "workers outlive their parent"
    build(MotionFolder.of(takes, tmp_path / "takes.csv"), tmp_path / "d", workers=1)
    assert len(open_dataset(tmp_path / "d")) == 6
    assert not journal.exists()
    assert json.loads((tmp_path / "d" / "dataset.json").read_text())["shards"]


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
