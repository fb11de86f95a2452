"""Batches of generator training: clean features of the data, noised, with their sentences, the same whoever draws them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from made_up import MadeUp
from small_training import SMALL, task_of, with_loop

from bunraku.datasets.store import Dataset
from bunraku.errors import BadValue
from bunraku.generator.checkpoint import load_model, save_model
from bunraku.generator.features import decode, encode
from bunraku.kinematics.edit import mirror, place
from bunraku.training.ema import Ema
from bunraku.training.ranks import Ranks

PHASE2 = replace(SMALL, text_only=0.0)


def test_clean_features_are_those_of_the_clip_turned_and_mirrored(walks: Dataset) -> None:
    task = task_of(walks)
    draw = task.windows.draw(3)
    clean = task.batch(3, range(8)).clean * task.scale + task.mean
    for row in range(8):
        motion = walks.motion(int(draw.clip[row]), range(int(draw.first[row]), int(draw.first[row]) + draw.frames))
        motion = place(mirror(motion) if draw.mirrored[row] else motion, (0.0, 0.0), float(draw.yaw[row]))
        expected = encode(task.layout, motion)
        same = [task.layout.joint_rotations, task.layout.joint_velocities, task.layout.heading, task.layout.contacts]
        for columns in same:
            torch.testing.assert_close(clean[row][:, columns], expected[:, columns], atol=2e-3, rtol=0)
        assert clean[row][0, [0, 2]].abs().max() < 1e-5  # the smoothed root starts above the origin


def test_what_is_told_of_the_heading_and_the_noise_is_true(walks: Dataset) -> None:
    task = task_of(walks)
    batch = task.batch(0, range(8))
    facing = decode(task.layout, (batch.clean * task.scale + task.mean)[0]).heading[0]
    assert torch.allclose(torch.stack([batch.heading[0].cos(), batch.heading[0].sin()]), facing, atol=1e-3)
    kept = task.schedule.alpha_bar[batch.level][:, None, None].float()
    noise = (batch.noisy - kept.sqrt() * batch.clean) / (1 - kept).sqrt()
    assert abs(float(noise.std()) - 1) < 0.05


def test_the_first_phase_tells_nothing_and_the_second_tells_patterns(walks: Dataset) -> None:
    assert task_of(walks).batch(0, range(8)).mask is None
    late = task_of(walks).batch(3, range(8))
    assert late.mask is not None
    assert late.mask.any()
    told_less = task_of(walks, replace(PHASE2, constrained=0.0)).batch(0, range(8)).mask
    assert told_less is not None
    assert not told_less.any()


def test_rows_are_the_same_whoever_draws_the_others(walks: Dataset) -> None:
    task = task_of(walks, with_loop(PHASE2, batch=40))
    whole, parts = task.batch(5, range(40)), [task.batch(5, range(20)), task.batch(5, range(20, 40))]
    for name in ("noisy", "level", "clean", "text", "heading", "mask"):
        torch.testing.assert_close(getattr(whole, name), torch.cat([getattr(part, name) for part in parts]), msg=name)


def test_one_sentence_in_ten_is_left_out(walks: Dataset) -> None:
    task = task_of(walks, with_loop(replace(SMALL, text_drop=0.3), batch=2000))
    silent = (task.batch(0, range(2000)).text == 0).all(dim=2).all(dim=1)
    assert float(silent.float().mean()) == pytest.approx(0.3, abs=0.04)


def test_sentences_of_mirrored_clips_have_their_sides_swapped(walks: Dataset) -> None:
    task = task_of(walks, with_loop(replace(SMALL, text_drop=0.0), batch=200))
    draw, batch, encoder = task.windows.draw(1), task.batch(1, range(200)), MadeUp()
    said = {text: encoder.encode([text]).tokens[0] for text in task.windows.texts}
    assert {"A man strides to the left.", "A man strides to the right."} <= set(said)
    for row in range(200):
        text = task.windows.texts[int(draw.text[row])]
        torch.testing.assert_close(batch.text[row, :2], said[text], atol=2e-3, rtol=0)
        if "strides" in text:
            assert draw.mirrored[row] == ("right" in text)


def test_dropout_belongs_to_the_first_phase(walks: Dataset) -> None:
    task = task_of(walks)
    rates = []
    for step in (0, 3):
        task.before(step)
        rates.append({module.drop_rate for module in task.net.modules() if hasattr(module, "drop_rate")})
    assert rates == [{0.1}, {0.0}]


def test_what_is_exported_is_the_mean_of_the_weights_ready_to_use(walks: Dataset, tmp_path: Path) -> None:
    task = task_of(walks)
    ema = Ema(task.net, 0.5, 1)
    task.export(ema.weights(), tmp_path)
    model = load_model(tmp_path)
    assert model.layout.skeleton.name == "soma30"
    for name, value in model.denoiser.state_dict().items():
        torch.testing.assert_close(value, task.net.state_dict()[name], atol=1e-3, rtol=1e-3)
    assert model.denoiser.config.path_smoothing == 3.0


def test_a_run_can_begin_with_another_model(walks: Dataset, tmp_path: Path) -> None:
    first = task_of(walks, with_loop(seed=5))
    save_model(replace(first.model, denoiser=first.net), tmp_path)  # type: ignore[arg-type]
    second = task_of(walks, begin_with=tmp_path)
    for name, value in second.net.state_dict().items():
        torch.testing.assert_close(value, first.net.state_dict()[name])
    wider = replace(SMALL, denoiser=replace(SMALL.denoiser, backbone=replace(SMALL.denoiser.backbone, feed_width=96)))
    with pytest.raises(BadValue, match=r"training cannot begin with .* of shape \[96, 32\]"):
        task_of(walks, wider, begin_with=tmp_path)


def test_a_dataset_without_a_train_split_is_refused(walks: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(walks), "of_split", lambda self, split: [])
    with pytest.raises(BadValue, match="no clip in its split 'train'"):
        task_of(walks)


@pytest.mark.parametrize(("world", "expected"), [(1, range(8)), (4, range(2, 4))])
def test_ranks_share_a_batch(world: int, expected: range) -> None:
    assert Ranks(rank=1 if world > 1 else 0, world=world).share(8) == expected


def test_a_batch_that_cannot_be_shared_is_refused() -> None:
    with pytest.raises(BadValue, match="a batch of 9 cannot be shared by 2 processes; choose a multiple of 2"):
        Ranks(world=2).share(9)


def test_numbers_of_steps_are_well_mixed(walks: Dataset) -> None:
    levels = np.concatenate([task_of(walks).batch(step, range(8)).level.numpy() for step in range(40)])
    assert len(set(levels.tolist())) > 200


def test_without_the_smoothed_root_the_root_is_the_hips(walks: Dataset) -> None:
    task = task_of(walks, replace(SMALL, smooth_root=False))
    clean = task.batch(0, range(8)).clean * task.scale + task.mean
    assert clean[..., task.layout.position_columns(0)][..., [0, 2]].abs().max() < 1e-5
    assert float(task_of(walks).stats.body.std[0]) > 0.005  # of the hips around the smoothed root
    assert float(task.stats.body.std[0]) < 1e-4
