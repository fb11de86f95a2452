"""Replays recorded runs of the released Kimodo from a folder's files alone and compares: `python -m bunraku.generator.parity FOLDER`.

The folder is a checkpoint as released, with three recordings beside it (any may be missing):

    representation.safetensors   a clip → features → the clip again
    denoiser.safetensors         single calls of the denoiser, and a run without constraints
    constrained.safetensors      a run under `constraints.json`, and what the JSON turns into

Prints the largest absolute difference of every tensor; exits with 1 if one is above its tolerance. Where a network gives two
nearly parallel columns for a rotation, orthonormalising them magnifies its rounding errors: there the tolerance grows in
proportion, and the magnification is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.diffusion.guidance import Guidance, branches
from bunraku.diffusion.schedule import CosineSchedule
from bunraku.diffusion.solvers import ddim_steps, solve
from bunraku.errors import BunrakuError, FileProblem, FormatProblem
from bunraku.generator.checkpoint import Model, load_model, read_json, read_tensors
from bunraku.generator.conditioning import observe
from bunraku.generator.denoiser import Condition
from bunraku.generator.features import Decoded, FeatureLayout, decode, encode
from bunraku.generator.sample import GuidedDenoiser
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.soma import expand_soma
from bunraku.math.rotations import matrix_to_quat, quat_to_matrix
from bunraku.timeline import load_constraints

TOLERANCE = 1e-4  # features, metres, entries of rotation matrices
SMOOTHED_TOLERANCE = 1e-3  # [m] and what follows from them: whatever the smoothed root touches


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One recorded tensor against ours."""

    name: str
    error: float  # largest absolute difference
    tolerance: float
    excess: float  # largest difference / tolerance of its entry
    magnification: float = 1.0  # by which a degenerate rotation magnified errors, at most

    @property
    def holds(self) -> bool:
        return self.excess <= 1.0


def compare(folder: Path) -> list[Comparison]:
    """Everything that the folder records, replayed."""
    model = load_model(folder)
    parts = {"representation": _representation, "denoiser": _denoiser, "constrained": _constrained}
    found = {name: folder / f"{name}.safetensors" for name in parts if (folder / f"{name}.safetensors").is_file()}
    if not found:
        raise FileProblem(f"'{folder}' holds no recording: {', '.join(f'{name}.safetensors' for name in parts)}.")
    return [line for name, path in found.items() for line in parts[name](model, folder, read_tensors(path))]


# --- the three recordings --------------------------------------------------------------------------------------------


def _representation(model: Model, folder: Path, recorded: Mapping[str, Tensor]) -> Iterator[Comparison]:
    layout, spread = model.layout, model.denoiser.stats.features
    clip = Motion(
        skeleton=layout.skeleton,
        fps=layout.fps,
        root_position=recorded["root_positions"],
        quats=matrix_to_quat(recorded["local_rot_mats"]),
    )
    features = encode(layout, clip)
    # positions and velocities of joints are counted from the smoothed root, so it touches all features but rotations and contacts
    yield _line("features", features, recorded["features"], SMOOTHED_TOLERANCE)
    rotations = layout.joint_rotations
    yield _line("features: rotations", features[:, rotations], recorded["features"][:, rotations])
    yield _line("features_normalised", (recorded["features"] - spread.mean) / spread.scale, recorded["features_normalised"])
    yield from _compare_clip("decoded_", layout, decode(layout, recorded["features"]), recorded["features"], recorded, expand=False)


def _denoiser(model: Model, folder: Path, recorded: Mapping[str, Tensor]) -> Iterator[Comparison]:
    run, valid = _run(folder), recorded["valid"] > 0.5
    plain = Condition(text=recorded["text"][:, None], heading=recorded["first_heading"], valid=valid)
    told = Condition(**{**vars(plain), "observed": recorded["observed"], "mask": recorded["observed_mask"] > 0.5})
    with torch.no_grad():
        for name, condition in (("out_unconditioned", plain), ("out_conditioned", told)):
            out = model.denoiser(recorded["x"], recorded["t"].long(), condition)
            yield _line(name, out[valid], recorded[name][valid])
    yield from _replay(model, run, plain, recorded, run["lengths"])


def _constrained(model: Model, folder: Path, recorded: Mapping[str, Tensor]) -> Iterator[Comparison]:
    run, spread = _run(folder), model.denoiser.stats.features
    frames = run["lengths"][0]
    seen = observe(model.layout, load_constraints(folder / "constraints.json", model.layout.skeleton), frames)
    mask = recorded["observed_mask"] > 0.5
    values = (seen.values - spread.mean) / spread.scale
    yield _line("observed_mask", seen.mask[None].float(), recorded["observed_mask"])
    yield _line("observed_motion", values[None] * mask, recorded["observed_motion"] * mask)
    condition = Condition(text=recorded["text"][:, None], heading=recorded["first_heading"], observed=values[None], mask=seen.mask[None])
    yield from _replay(model, run, condition, recorded, [frames], prefix="constrained ")


def _replay(
    model: Model, run: Mapping[str, Any], condition: Condition, recorded: Mapping[str, Tensor], lengths: Sequence[int], prefix: str = ""
) -> Iterator[Comparison]:
    """A whole DDIM run with separated guidance from the recorded noise."""
    guidance = Guidance(text=run["guidance_text"], constraint=run["guidance_constraint"])
    wanted = branches(guidance, has_text=True, has_constraints=condition.mask is not None)
    guided = GuidedDenoiser(model.denoiser, condition, wanted)
    x = solve(ddim_steps(CosineSchedule(), run["ddim_steps"]), guided, recorded["sample_noise"])
    spread = model.denoiser.stats.features
    for clip, frames in enumerate(lengths):
        features = x[clip, :frames] * spread.scale + spread.mean
        of_clip = {name: value[clip, :frames] for name, value in recorded.items() if name.startswith("sample_")}
        lines = _compare_clip("sample_", model.layout, decode(model.layout, features), features, of_clip, expand=True)
        for line in lines:
            yield Comparison(**{**vars(line), "name": f"{prefix}{line.name}[{clip}]"})


# --- one clip --------------------------------------------------------------------------------------------------------


def _compare_clip(
    prefix: str, layout: FeatureLayout, ours: Decoded, features: Tensor, recorded: Mapping[str, Tensor], *, expand: bool
) -> Iterator[Comparison]:
    magnified = _magnification(layout, features)
    motion = ours.motion
    if expand and layout.skeleton.name == "soma30":  # the release writes SOMA with all its joints, and each toe contact twice
        motion = expand_soma(motion)
        magnified = _for_all_joints(magnified, layout, motion)
    poses = forward_kinematics(motion)
    contacts = motion.contacts.float() if motion.contacts is not None else torch.zeros(len(motion), 4)
    if recorded[f"{prefix}foot_contacts"].shape[-1] == 6:
        contacts = contacts[:, [0, 1, 1, 2, 3, 3]]
    worst = magnified.amax(dim=1, keepdim=True)  # along a chain of joints an error travels on
    yield _line(f"{prefix}posed_joints", poses.p_world_joint, recorded[f"{prefix}posed_joints"], growth=worst[..., None])
    yield _line(f"{prefix}global_rot_mats", poses.R_world_joint, recorded[f"{prefix}global_rot_mats"], growth=worst[..., None, None])
    yield _line(f"{prefix}local_rot_mats", quat_to_matrix(motion.quats), recorded[f"{prefix}local_rot_mats"], growth=worst[..., None, None])
    yield _line(f"{prefix}root_positions", motion.root_position, recorded[f"{prefix}root_positions"])
    yield _line(f"{prefix}smooth_root_pos", ours.smooth_root, recorded[f"{prefix}smooth_root_pos"])
    yield _line(f"{prefix}global_root_heading", ours.heading, recorded[f"{prefix}global_root_heading"])
    yield _line(f"{prefix}foot_contacts", contacts, recorded[f"{prefix}foot_contacts"])


def _magnification(layout: FeatureLayout, features: Float[Tensor, "F D"]) -> Float[Tensor, "F J"]:
    """By how much orthonormalising magnifies errors of the two columns: 1 / the shorter of the first column and the second's part across it."""
    first, second = features[:, layout.joint_rotations].unflatten(-1, (layout.joints, 2, 3)).unbind(-2)
    length = first.norm(dim=-1)
    across = torch.linalg.cross(first / length.clamp_min(1e-12)[..., None], second).norm(dim=-1)
    return (1 / torch.minimum(length, across).clamp_min(1e-12)).clamp_min(1.0)


def _for_all_joints(magnified: Float[Tensor, "F J"], layout: FeatureLayout, motion: Motion) -> Float[Tensor, "F K"]:
    rows = [layout.skeleton.index.get(name) for name in motion.skeleton.joints]
    ones = torch.ones(len(magnified))
    return torch.stack([ones if row is None else magnified[:, row] for row in rows], dim=1)


def _line(name: str, ours: Tensor, recorded: Tensor, tolerance: float = TOLERANCE, growth: Tensor | None = None) -> Comparison:
    if ours.shape != recorded.shape:
        raise FormatProblem(f"'{name}' was recorded with shape {list(recorded.shape)}; ours is {list(ours.shape)}.")
    away = (ours - recorded).abs()
    allowed = torch.full_like(away, tolerance) if growth is None else tolerance * growth.expand_as(away)
    return Comparison(
        name=name,
        error=float(away.max()),
        tolerance=tolerance,
        excess=float((away / allowed).max()) if torch.isfinite(away).all() else float("inf"),
        magnification=1.0 if growth is None else float(growth.max()),
    )


def _run(folder: Path) -> dict[str, Any]:
    run = read_json(folder / "run.json")
    missing = [key for key in ("lengths", "ddim_steps", "guidance_text", "guidance_constraint") if key not in run]
    if missing:
        raise FormatProblem(f"'{folder / 'run.json'}' lacks {', '.join(missing)}.")
    return run


# --- the command -----------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m bunraku.generator.parity FOLDER", file=sys.stderr)
        return 2
    torch.manual_seed(0)
    try:
        lines = compare(Path(arguments[0]))
    except KeyError as error:
        print(f"parity: a recording in '{arguments[0]}' lacks the tensor {error}.", file=sys.stderr)
        return 2
    except BunrakuError as error:
        print(f"parity: {error}", file=sys.stderr)
        return 2
    width = max(len(line.name) for line in lines)
    for line in lines:
        note = f"   magnified ≤ {line.magnification:.0f} ×" if line.magnification > 1.5 else ""
        print(f"{line.name:<{width}}  {line.error:9.2e}  tolerance {line.tolerance:.0e}  {'ok' if line.holds else 'DIFFERS'}{note}")
    failed = sum(not line.holds for line in lines)
    print(f"{len(lines) - failed} of {len(lines)} agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
