"""The command that replays recorded runs of the release: on the recordings where they are, and on a folder of our own making."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from bunraku.diffusion.guidance import Guidance
from bunraku.generator.checkpoint import load_model
from bunraku.generator.conditioning import observe
from bunraku.generator.denoiser import Condition
from bunraku.generator.features import decode, encode
from bunraku.generator.parity import main
from bunraku.generator.sample import Request, Sampling, sample
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.soma import expand_soma
from bunraku.math.rotations import quat_to_matrix
from bunraku.timeline import RootPath, load_constraints, save_constraints
from tests.generator.test_checkpoint import released
from tests.generator.tiny import denoiser_of, walking

FOLDERS = ("soma30", "soma30-mixed", "g1-mixed")
CLASSES = {"soma30": "SOMASkeleton30", "g1": "G1Skeleton34", "smplx22": "SMPLXSkeleton22"}


@pytest.mark.parametrize("name", FOLDERS)
def test_recorded_runs_of_the_release_are_repeated(shared: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(shared / "golden" / "kimodo" / name)]) == 0
    assert "35 of 35 agree" in capsys.readouterr().out


@pytest.mark.parametrize("name", FOLDERS)
def test_places_agree_without_any_allowance_and_so_does_all_that_is_well_conditioned(shared: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(shared / "golden" / "kimodo" / name), "--strict"])
    wrong = [line for line in capsys.readouterr().out.splitlines()[:-1] if not line.endswith("  ok")]
    assert all("rot_mats" in line and "magnify" in line for line in wrong)
    assert not wrong or name != "g1-mixed"


def clip_of(motion: Motion) -> dict[str, torch.Tensor]:
    """What the release writes of a clip."""
    poses, turns = forward_kinematics(motion), quat_to_matrix(motion.quats)
    return {"posed_joints": poses.p_world_joint, "global_rot_mats": poses.R_world_joint, "local_rot_mats": turns, "root_positions": motion.root_position}


def recorded(folder: Path, name: str, lengths: tuple[int, ...]) -> Path:
    """A folder as the golden ones, of a random network, recorded with our own sampling in float32 where that is another way than parity's."""
    released(folder, CLASSES[name], of=denoiser_of(name))
    model = load_model(folder)
    layout, spread = model.layout, model.denoiser.stats.features
    torch.manual_seed(1)
    sampling = Sampling(solver="ddim", steps=4, guidance=Guidance(text=1.5, constraint=1.2))
    (folder / "run.json").write_text(json.dumps({"lengths": lengths, "ddim_steps": 4, "guidance_text": 1.5, "guidance_constraint": 1.2}))
    frames, text = max(lengths), torch.randn(len(lengths), 24)
    path = [RootPath(frames=torch.tensor([0]), xz=torch.tensor([[0.2, 0.1]]), heading=torch.tensor([0.3]))]
    save_constraints(path, folder / "constraints.json", form="kimodo")
    path = load_constraints(folder / "constraints.json", layout.skeleton)
    seen = observe(layout, path, lengths[0])

    def drawn(requests: list[Request]) -> dict[str, torch.Tensor]:
        noise = torch.zeros(len(requests), frames, layout.width)
        rows: dict[str, list[torch.Tensor]] = {}
        for number, features in enumerate(sample(model.denoiser, requests, sampling)):
            noise[number, : len(features)] = torch.randn(features.shape, generator=torch.Generator().manual_seed(requests[number].seed))
            got = decode(layout, features)
            whole = expand_soma(got.motion) if name == "soma30" else got.motion
            contacts = whole.contacts.float() if whole.contacts is not None else torch.zeros(0)
            said = clip_of(whole) | {"smooth_root_pos": got.smooth_root, "global_root_heading": got.heading, "foot_contacts": contacts}
            for key, value in said.items():
                rows.setdefault(f"sample_{key}", []).append(torch.cat([value, torch.zeros(frames - len(value), *value.shape[1:])]))
        return {"sample_noise": noise, **{key: torch.stack(values) for key, values in rows.items()}}

    requests = [Request(frames=length, text=text[row : row + 1], seed=row, heading=0.3) for row, length in enumerate(lengths)]
    x, level, heading = torch.randn(len(lengths), frames, layout.width), torch.tensor([500.0] * len(lengths)), torch.full((len(lengths),), 0.3)
    valid = (torch.arange(frames) < torch.tensor(lengths)[:, None]).float()
    mask = (torch.rand(x.shape) > 0.8).float()
    plain = Condition(text=text[:, None], heading=heading, valid=valid > 0.5)
    told = replace(plain, observed=torch.ones_like(x), mask=mask > 0.5)
    calls = {"x": x, "t": level, "text": text, "first_heading": heading, "valid": valid, "observed": torch.ones_like(x), "observed_mask": mask}
    outs = {key: model.denoiser(x, level.long(), each) for key, each in (("out_unconditioned", plain), ("out_conditioned", told))}
    save_file({k: v.clone(memory_format=torch.contiguous_format) for k, v in {**calls, **outs, **drawn(requests)}.items()}, folder / "denoiser.safetensors")
    values = ((seen.values - spread.mean) / spread.scale)[None] * seen.mask
    one = {"text": text[:1], "first_heading": heading[:1], "observed_motion": values, "observed_mask": seen.mask[None].float()}
    frames = lengths[0]
    asked = drawn([Request(frames=lengths[0], text=text[:1], seed=7, heading=0.3, observation=seen)])
    save_file({k: v.clone(memory_format=torch.contiguous_format) for k, v in {**one, **asked}.items()}, folder / "constrained.safetensors")
    clip = replace(walking(layout)[: lengths[0]], contacts=None)
    features = encode(layout, clip)
    got = decode(layout, features)
    contacts = got.motion.contacts.float() if got.motion.contacts is not None else torch.zeros(0)
    said = clip_of(got.motion) | {"smooth_root_pos": got.smooth_root, "global_root_heading": got.heading, "foot_contacts": contacts}
    inputs = {"local_rot_mats": quat_to_matrix(clip.quats), "root_positions": clip.root_position}
    both = {"features": features, "features_normalised": (features - spread.mean) / spread.scale, **{f"decoded_{k}": v for k, v in said.items()}}
    save_file({k: v.clone(memory_format=torch.contiguous_format) for k, v in {**inputs, **both}.items()}, folder / "representation.safetensors")
    return folder


@pytest.mark.parametrize(("name", "lengths"), [("smplx22", (7, 4)), ("g1", (1, 3)), ("soma30", (12, 1, 5))])
def test_other_networks_skeletons_and_short_clips(tmp_path: Path, name: str, lengths: tuple[int, ...], capsys: pytest.CaptureFixture[str]) -> None:
    folder = recorded(tmp_path / "any name", name, lengths)
    assert main([str(folder)]) == 0
    assert "DIFFERS" not in capsys.readouterr().out
    tensors = load_file(folder / "denoiser.safetensors")
    last = len(lengths) - 1
    tensors["sample_root_positions"][last, lengths[last] - 1] += 2e-4
    save_file(tensors, folder / "denoiser.safetensors")
    assert main([str(folder)]) == 1
    assert f"sample_root_positions[{last}]" in next(line for line in capsys.readouterr().out.splitlines() if "DIFFERS" in line)


def copied(source: Path, target: Path) -> Path:
    """A copy that may be written to."""
    for path in source.rglob("*"):
        if path.is_file():
            (target / path.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
            (target / path.relative_to(source)).write_bytes(path.read_bytes())
    return target


@pytest.mark.parametrize("recording", ["representation", "denoiser", "constrained"])
def test_what_differs_is_found(shared: Path, tmp_path: Path, recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copied(shared / "golden" / "kimodo" / "g1-mixed", tmp_path)
    tensors = load_file(folder / f"{recording}.safetensors")
    name = next(name for name in tensors if name.endswith("root_positions") and name != "root_positions")
    save_file({**tensors, name: tensors[name] + 2e-4}, folder / f"{recording}.safetensors")
    assert main([str(folder)]) == 1
    assert "DIFFERS" in capsys.readouterr().out


def test_a_wrong_weight_is_found(shared: Path, tmp_path: Path) -> None:
    folder = copied(shared / "golden" / "kimodo" / "g1-mixed", tmp_path)
    tensors = load_file(folder / "model.safetensors")
    tensors["denoiser.backbone.body_model.output_linear.bias"] += 1e-3
    save_file(tensors, folder / "model.safetensors")
    assert main([str(folder)]) == 1


def test_a_folder_without_recordings_and_a_recording_without_tensors_get_a_sentence(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copied(shared / "golden" / "kimodo" / "g1-mixed", tmp_path)
    for path in folder.glob("*.safetensors"):
        if path.name != "model.safetensors":
            path.unlink()
    assert main([str(folder)]) == 2
    assert "no recording" in capsys.readouterr().err
    save_file({"x": torch.zeros(1)}, folder / "denoiser.safetensors")
    assert main([str(folder)]) == 2
    assert "lacks the tensor" in capsys.readouterr().err
    (folder / "run.json").write_text(json.dumps({"lengths": [3]}))
    assert main([str(folder)]) == 2
    assert "ddim_steps" in capsys.readouterr().err


def test_a_recording_of_another_network_gets_a_sentence(shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copied(shared / "golden" / "kimodo" / "g1-mixed", tmp_path)
    (folder / "denoiser.safetensors").write_bytes((shared / "golden" / "kimodo" / "soma30" / "denoiser.safetensors").read_bytes())
    assert main([str(folder)]) == 2
    assert "does not fit the model" in capsys.readouterr().err


def test_usage() -> None:
    assert main([]) == 2
