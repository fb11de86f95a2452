"""Readers of sources, on small trees made here in the layouts that are public, and on the real packs where they are there."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from bunraku.datasets.build import build
from bunraku.datasets.sources.amass import AmassWithTexts
from bunraku.datasets.sources.bones_seed import BonesSeed
from bunraku.datasets.sources.choose import source_of
from bunraku.datasets.sources.cmu import CmuPack
from bunraku.datasets.sources.folder import MotionFolder, drawn_split
from bunraku.datasets.sources.style100 import Style100Pack
from bunraku.datasets.uniform import convert
from bunraku.errors import BadValue, FileProblem, FormatProblem
from bunraku.files.formats import save_motion
from bunraku.kinematics.edit import resample
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.soma import expand_soma
from bunraku.kinematics.walk import walk
from tests.cmu import load_cmu


@pytest.fixture(scope="module")
def steps() -> Motion:
    return walk(skeleton("soma30"), seconds=3.0)


# --- a folder and a CSV ------------------------------------------------------------------------------------------------


def test_a_folder_of_different_skeletons_becomes_one(tmp_path: Path, steps: Motion) -> None:
    takes = tmp_path / "takes" / "deep"
    takes.mkdir(parents=True)
    save_motion(steps, takes / "a.bvh")
    save_motion(walk(skeleton("smplx22"), seconds=2.0), takes / "b.npz")
    save_motion(walk(skeleton("cmu23"), seconds=2.0, fps=60.0), takes / "c.glb")
    save_motion(steps, takes / "silent.bvh")
    captions = tmp_path / "captions.csv"
    captions.write_text(
        "File,Text,start,end,split,category\n"
        'deep/a.bvh,"A person walks, slowly.",,,train,walk\ndeep/a.bvh,a step,1.0,2.0,,\n'
        "deep/b.npz,walks,,,val,\ndeep/c.glb,goes,0.5,,test,\ndeep/ghost.bvh,boo,,,,\n"
    )
    dataset = build(MotionFolder.of(tmp_path / "takes", captions), tmp_path / "d", workers=1)
    assert [(c.name, c.split, c.frames, len(c.captions)) for c in dataset.clips] == [
        ("deep/a.bvh", "train", 90, 2),
        ("deep/b.npz", "val", 60, 1),
        ("deep/c.glb", "test", 60, 1),
    ]
    assert (dataset.clips[0].captions[1].start, dataset.clips[0].captions[1].stop) == (30, 60)
    assert (dataset.clips[2].captions[0].start, dataset.clips[2].captions[0].stop) == (15, 60)
    left = dict(dataset.left_out)
    assert left == {"deep/ghost.bvh": "1 captions, but no such file.", "deep/silent.bvh": "a motion without captions."}
    for clip in range(3):
        p = forward_kinematics(dataset.motion(clip)).p_world_joint
        assert -0.01 < float(p[..., 1].min()) < 0.05
        assert 1.4 < float(p[0, :, 1].max()) < 1.8  # one body, whatever they were


def test_a_csv_is_read_with_care(tmp_path: Path, steps: Motion) -> None:
    save_motion(steps, tmp_path / "a.npz")
    captions = tmp_path / "c.csv"

    def of(text: str) -> MotionFolder:
        captions.write_text(text)
        return MotionFolder.of(tmp_path, captions)

    with pytest.raises(FormatProblem, match="no column 'text'"):
        of("file,words\na.npz,x\n").recordings()
    with pytest.raises(FormatProblem, match="line 2: 'soon' is no time"):
        of("file,text,start\na.npz,x,soon\n").recordings()
    with pytest.raises(FormatProblem, match="ends at 1 s, before it starts at 2 s"):
        of("file,text,start,end\na.npz,x,2,1\n").recordings()
    with pytest.raises(FormatProblem, match="split holdout"):
        of("file,text,split\na.npz,x,holdout\n").recordings()
    with pytest.raises(FormatProblem, match="none of the files"):
        of("file,text\nb.npz,x\n").recordings()
    with pytest.raises(FileProblem, match="no folder"):
        MotionFolder.of(tmp_path / "none", captions)


def test_drawn_splits_are_fixed_and_eight_in_ten_train() -> None:
    drawn = [drawn_split(f"take {n}") for n in range(2000)]
    assert drawn == [drawn_split(f"take {n}") for n in range(2000)]
    assert 0.77 < drawn.count("train") / 2000 < 0.83
    assert 0.08 < drawn.count("test") / 2000 < 0.12


def test_sources_are_chosen_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="cmu, style100, folder"):
        source_of("mixamo", tmp_path)
    with pytest.raises(BadValue, match="needs captions"):
        source_of("folder", tmp_path)
    with pytest.raises(BadValue, match="brings its own captions"):
        source_of("cmu", tmp_path, "x.csv")
    for kind in ("cmu", "style100", "bones-seed"):
        with pytest.raises(FileProblem):
            source_of(kind, tmp_path)


# --- AMASS with HumanML3D ----------------------------------------------------------------------------------------------


@cache
def smplx_walk() -> Motion:
    return walk(skeleton("smplx22"), seconds=6.0, fps=120.0)


@pytest.fixture
def amass(tmp_path: Path) -> AmassWithTexts:
    for name, fps in (("KIT/3/walk01_poses", 100.0), ("TotalCapture/s1/run_poses", 60.0)):
        path = tmp_path / "amass" / f"{name}.npz"
        path.parent.mkdir(parents=True)
        save_motion(resample(smplx_walk(), fps), path.with_suffix(".amass.npz"))
        path.with_suffix(".amass.npz").rename(path)
    texts = tmp_path / "HumanML3D" / "texts"
    texts.mkdir(parents=True)
    rows = "./pose_data/KIT/3/walk01_poses.npy,20,60,000001.npy\n./pose_data/TotalCapture/s1/run_poses.npy,0,40,000002.npy\n"
    rows += "./pose_data/KIT/3/walk01_poses.npy,20,60,M000001.npy\n./pose_data/humanact12/x.npy,0,9,000003.npy\n"
    rows += "./pose_data/KIT/9/gone_poses.npy,0,9,000004.npy\n"
    (texts.parent / "index.csv").write_text("source_path,start_frame,end_frame,new_name\n" + rows)
    (texts / "000001.txt").write_text("a person walks#a/DET person/NOUN walk/VERB#0.0#0.0\nthen stops#stop/VERB#0.5#1.5\nodd#odd/ADJ#nan#nan\n")
    (texts / "000002.txt").write_text("runs#run/VERB#0.0#0.0\n")
    (texts.parent / "test.txt").write_text("000002\n")
    return AmassWithTexts(tmp_path / "amass", texts.parent)


def test_windows_of_humanml3d_are_found_in_amass(amass: AmassWithTexts) -> None:
    walks, runs = amass.recordings()
    assert (walks.name, runs.name, runs.split) == ("KIT/3/walk01_poses", "TotalCapture/s1/run_poses", "test")
    assert [(h.text, h.start, h.stop) for h in walks.captions] == [("a person walks", 1.0, 3.0), ("then stops", 1.5, 2.5), ("odd", 1.0, 3.0)]
    assert [(h.start, h.stop) for h in runs.captions] == [(1.0, 3.0)]  # the first second of TotalCapture is cut off before frames are counted
    assert [name for name, _ in amass.unusable()] == ["KIT/9/gone_poses"]
    ((info, _),) = convert(walks, amass.load(walks), "amass").clips
    assert info.frames == 180
    assert (info.captions[0].start, info.captions[0].stop) == (30, 90)


def test_broken_texts_are_one_sentence(amass: AmassWithTexts) -> None:
    (amass.texts / "texts" / "000002.txt").write_text("runs\n")
    with pytest.raises(FormatProblem, match="line 1: 'caption#tokens#start#end'"):
        amass.recordings()


# --- BONES-SEED --------------------------------------------------------------------------------------------------------


@pytest.fixture
def seed(tmp_path: Path, steps: Motion) -> Path:
    for name in ("230101/walk_001__A1", "230101/walk_001__A1_M", "230102/wave__A2"):
        path = tmp_path / "soma_uniform" / "bvh" / f"{name}.bvh"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_motion(expand_soma(steps), path)
        Path(f"{path}.json").unlink(missing_ok=True)
    (tmp_path / "metadata").mkdir()
    rows = [
        "filename,take_date,is_mirror,move_soma_uniform_path,content_natural_desc_1,content_natural_desc_2,content_short_description,category,take_actor,move_duration_frames",
        "walk_001__A1,230101,0,soma_uniform/bvh/230101/walk_001__A1.bvh,A person walks.,Someone walks ahead.,walk,Locomotion,A1,360",
        "walk_001__A1_M,230101,1,soma_uniform/bvh/230101/walk_001__A1_M.bvh,A person walks.,,walk,Locomotion,A1,360",
        "wave__A2,230102,False,soma_uniform/bvh/230102/wave__A2.bvh,A person waves.,,,Gestures,A2,360",
        "lost,230102,0,soma_uniform/bvh/230102/lost.bvh,A person is lost.,,,Gestures,A2,360",
    ]
    (tmp_path / "metadata" / "seed_metadata_v003.csv").write_text("filename\n")
    (tmp_path / "metadata" / "seed_metadata_v004.csv").write_text("\n".join(rows))
    events = [{"start_time": 0.0, "end_time": 1.0, "description": "starts"}, {"start_time": 1.0, "end_time": 3.0, "description": "walks on"}]
    lines = [{"filename": "walk_001__A1", "num_events": 2, "events": events}, {"filename": "unknown", "events": []}]
    (tmp_path / "metadata" / "seed_metadata_v002_temporal_labels.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "splits").mkdir()
    (tmp_path / "splits" / "test_content_split_paths.txt").write_text("230102/wave__A2\n")
    return tmp_path


def test_bones_seed_is_read_with_its_tables(seed: Path, steps: Motion) -> None:
    source = BonesSeed(seed)
    first, second = source.recordings()
    assert (first.name, first.split, first.category, second.split) == ("walk_001__A1", "train", "Locomotion", "test")
    weights = {"A person walks.": 1.0, "Someone walks ahead.": 1.0, "walk": 0.25, "starts": 1.0, "walks on": 1.0}
    assert {h.text: h.weight for h in first.captions} == weights
    left = dict(source.unusable())
    assert left["mirrored copies"].startswith("1 motions")
    assert set(left) == {"mirrored copies", "lost", "unknown"}
    ((info, rows),) = convert(first, source.load(first), "seed").clips
    assert [(c.start, c.stop) for c in info.captions][-1] == (30, 90)
    p, q = (forward_kinematics(m).p_world_joint for m in (rows.motion(skeleton("soma30"), 30.0), steps))
    assert (p - q).abs().max() < 0.002  # its own body: nothing is retargeted


def test_what_bones_seed_lacks_is_said(seed: Path) -> None:
    (seed / "metadata" / "seed_metadata_v003.csv").unlink()
    (seed / "metadata" / "seed_metadata_v004.csv").rename(seed / "metadata" / "seed_metadata_v004.parquet")
    with pytest.raises(FileProblem, match="the CSV beside it"):
        BonesSeed(seed)
    (seed / "soma_uniform").rename(seed / "other")
    (seed / "soma_uniform.tar").write_bytes(b"")
    with pytest.raises(FileProblem, match=r"unpack 'soma_uniform\.tar'"):
        BonesSeed(seed)


# --- the real packs ----------------------------------------------------------------------------------------------------


def test_cmu_is_read_as_packed(shared: Path) -> None:
    source = CmuPack(shared / "data" / "cmu_mocap")
    recordings = {recording.name: recording for recording in source.recordings()}
    assert len(recordings) == 2057
    assert {split: sum(r.split == split for r in recordings.values()) for split in ("train", "val", "test")} == {"train": 1461, "val": 111, "test": 485}
    motion, expected = source.load(recordings["09_01"]), load_cmu(shared, "09_01")
    assert torch.equal(motion.root_position, expected.root_position)
    assert (motion.quats - expected.quats).abs().max() < 1e-6
    assert any(h.source == "kitml" for h in recordings["128_06"].captions)
    spans = [h for h in recordings["75_04"].captions if h.mirrored and h.stop - h.start < 1]
    assert [(h.start, h.stop) for h in spans] == [(0.0, 0.5)]
    ((info, rows),) = convert(recordings["09_01"], motion, "cmu").clips
    assert np.isclose(rows.root_position[:, 1].mean(), 0.95, atol=0.08)
    assert info.notes["ground"].startswith("lowered by 2.8 cm")


def test_style100_is_read_as_packed(shared: Path) -> None:
    source = Style100Pack(shared / "data" / "style100_subset")
    angry = next(r for r in source.recordings() if r.name == "Angry_FW")
    assert angry.captions[0].text == "A person walks forward angrily."
    motion = source.load(angry)[:120]
    ((_, rows),) = convert(angry, motion, "style100").clips
    assert 0.75 < float(rows.root_position[:, 1].mean()) < 1.1
    assert rows.contacts.any(dim=1).float().mean() > 0.7
