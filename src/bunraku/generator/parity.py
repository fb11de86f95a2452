"""Replays recorded runs of the released Kimodo from a folder's files alone and compares: `python -m bunraku.generator.parity FOLDER`.

The folder is a checkpoint as released, with three recordings beside it (any may be missing):

    representation.safetensors   a clip → features → the clip again
    denoiser.safetensors         single calls of the denoiser, and a run without constraints
    constrained.safetensors      a run under `constraints.json`, and what the JSON turns into

Prints the largest absolute difference of every tensor; exits with 1 if one is above its tolerance.

Single calls are repeated in float32, as recorded. Whole runs are repeated in float64: ten guided steps of a random network carry
rounding errors on and on, and so the differences hold those of one run, the record's, and not of two. One magnification remains: where
the network gives two nearly parallel columns for a rotation, orthonormalising them multiplies the record's rounding error by
1 / (sine of their angle). There the tolerance grows by that factor, for that joint and frame and what hangs on it alone; every line
that needs it says so beside its plain difference, and with `--strict` it counts as a failure.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

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
from bunraku.kinematics.skeleton import Skeleton
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
    excess: float  # largest difference / tolerance of its entry, which is larger where a degenerate rotation magnified errors
    magnification: float = 1.0  # of the tolerance of the entry that differs most

    @property
    def holds(self) -> bool:
        return self.excess <= 1.0

    @property
    def holds_plainly(self) -> bool:
        return self.error <= self.tolerance


def compare(folder: Path) -> list[Comparison]:
    """Everything that the folder records, replayed."""
    model = load_model(folder)
    parts = {"representation": _representation, "denoiser": _denoiser, "constrained": _constrained}
    found = {name: folder / f"{name}.safetensors" for name in parts if (folder / f"{name}.safetensors").is_file()}
    if not found:
        raise FileProblem(f"'{folder}' holds no recording: {', '.join(f'{name}.safetensors' for name in parts)}.")
    return [line for name, path in found.items() for line in parts[name](model, folder, _Recording(path))]


class _Recording(dict[str, Tensor]):
    """The tensors of a recording by name."""

    def __init__(self, path: Path) -> None:
        super().__init__(read_tensors(path))
        self._path = path

    def __missing__(self, name: str) -> NoReturn:
        raise FormatProblem(f"'{self._path}' lacks the tensor '{name}'.")


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
    told = replace(plain, observed=recorded["observed"], mask=recorded["observed_mask"] > 0.5)
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
    """A whole DDIM run with separated guidance from the recorded noise, in float64."""
    guidance = Guidance(text=run["guidance_text"], constraint=run["guidance_constraint"])
    wanted = branches(guidance, has_text=True, has_constraints=condition.mask is not None)
    exact = replace(
        condition,
        text=condition.text.double(),
        heading=condition.heading.double(),
        observed=None if condition.observed is None else condition.observed.double(),
    )
    guided = GuidedDenoiser(model.denoiser.double(), exact, wanted)
    x = solve(ddim_steps(CosineSchedule(), run["ddim_steps"]), guided, recorded["sample_noise"].double())
    model.denoiser.float()  # loses nothing: it came from there
    spread = model.denoiser.stats.features
    for clip, frames in enumerate(lengths):
        features = x[clip, :frames] * spread.scale + spread.mean
        of_clip = {name: value[clip, :frames] for name, value in recorded.items() if name.startswith("sample_")}
        lines = _compare_clip("sample_", model.layout, decode(model.layout, features), features, of_clip, expand=True)
        for line in lines:
            yield replace(line, name=f"{prefix}{line.name}[{clip}]")


# --- one clip --------------------------------------------------------------------------------------------------------


def _compare_clip(
    prefix: str, layout: FeatureLayout, ours: Decoded, features: Tensor, recorded: Mapping[str, Tensor], *, expand: bool
) -> Iterator[Comparison]:
    motion = ours.motion
    if expand and layout.skeleton.name == "soma30":  # the release writes SOMA with all its joints, and each toe contact twice
        motion = expand_soma(motion)
    turned = _magnification(layout, features, motion.skeleton)
    poses = forward_kinematics(motion)
    contacts = motion.contacts.float() if motion.contacts is not None else torch.zeros(len(motion), 4)
    if recorded[f"{prefix}foot_contacts"].shape[-1] == 6:
        contacts = contacts[:, [0, 1, 1, 2, 3, 3]]
    parents = [max(parent, 0) for parent in motion.skeleton.parents]
    local, placed = torch.maximum(turned, turned[:, parents]), _along_bones(turned, motion.skeleton)
    yield _line(f"{prefix}posed_joints", poses.p_world_joint, recorded[f"{prefix}posed_joints"], growth=placed[..., None])
    yield _line(f"{prefix}global_rot_mats", poses.R_world_joint, recorded[f"{prefix}global_rot_mats"], growth=turned[..., None, None])
    yield _line(f"{prefix}local_rot_mats", quat_to_matrix(motion.quats), recorded[f"{prefix}local_rot_mats"], growth=local[..., None, None])
    yield _line(f"{prefix}root_positions", motion.root_position, recorded[f"{prefix}root_positions"])
    yield _line(f"{prefix}smooth_root_pos", ours.smooth_root, recorded[f"{prefix}smooth_root_pos"])
    yield _line(f"{prefix}global_root_heading", ours.heading, recorded[f"{prefix}global_root_heading"])
    yield _line(f"{prefix}foot_contacts", contacts, recorded[f"{prefix}foot_contacts"])


def _magnification(layout: FeatureLayout, features: Float[Tensor, "F D"], skeleton: Skeleton) -> Float[Tensor, "F K"]:
    """By how much orthonormalising magnifies errors of a joint's two columns: 1 / the shorter of the first and the second's part across it.

    Joints that the network does not know (SOMA's fingers) turn with the nearest joint above that it knows.
    """
    first, second = features[:, layout.joint_rotations].unflatten(-1, (layout.joints, 2, 3)).unbind(-2)
    length = first.norm(dim=-1)
    across = torch.linalg.cross(first / length.clamp_min(1e-12)[..., None], second).norm(dim=-1)
    known = (1 / torch.minimum(length, across).clamp_min(1e-12)).clamp_min(1.0)
    columns: list[Tensor] = []
    for joint, parent in zip(skeleton.joints, skeleton.parents, strict=True):
        row = layout.skeleton.index.get(joint)
        columns.append(columns[parent] if row is None else known[:, row])
    return torch.stack(columns, dim=1)


def _along_bones(turned: Float[Tensor, "F K"], skeleton: Skeleton) -> Float[Tensor, "F K"]:
    """What magnified turns add to the places of the joints that hang on them: each by the length of its bone [m]."""
    added: list[Tensor] = []
    for parent, length in zip(skeleton.parents, skeleton.offsets.norm(dim=-1).tolist(), strict=True):
        added.append(torch.zeros_like(turned[:, 0]) if parent < 0 else added[parent] + (turned[:, parent] - 1) * length)
    return 1 + torch.stack(added, dim=1)


def _line(name: str, ours: Tensor, recorded: Tensor, tolerance: float = TOLERANCE, growth: Tensor | None = None) -> Comparison:
    if ours.shape != recorded.shape:
        raise FormatProblem(f"'{name}' was recorded with shape {list(recorded.shape)}; ours is {list(ours.shape)}.")
    away = (ours - recorded).abs().double()
    if not torch.isfinite(away).all():
        return Comparison(name=name, error=float("nan"), tolerance=tolerance, excess=float("inf"))
    grown = torch.ones_like(away) if growth is None else growth.double().expand_as(away)
    worst = int(away.argmax())
    return Comparison(
        name=name,
        error=float(away.flatten()[worst]),
        tolerance=tolerance,
        excess=float((away / (tolerance * grown)).max()),
        magnification=float(grown.flatten()[worst]),
    )


def _run(folder: Path) -> dict[str, Any]:
    run = read_json(folder / "run.json")
    missing = [key for key in ("lengths", "ddim_steps", "guidance_text", "guidance_constraint") if key not in run]
    if missing:
        raise FormatProblem(f"'{folder / 'run.json'}' lacks {', '.join(missing)}.")
    return run


# --- the command -----------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    strict = "--strict" in arguments
    folders = [argument for argument in arguments if argument != "--strict"]
    if len(folders) != 1:
        print("usage: python -m bunraku.generator.parity [--strict] FOLDER", file=sys.stderr)
        return 2
    try:
        lines = compare(Path(folders[0]))
    except BunrakuError as error:
        print(f"parity: {error}", file=sys.stderr)
        return 2
    except (RuntimeError, IndexError) as error:  # torch's words for tensors that do not fit the network, or each other
        print(f"parity: a recording in '{folders[0]}' does not fit the model beside it: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    width = max(len(line.name) for line in lines)
    for line in lines:
        print(f"{line.name:<{width}}  {line.error:9.2e}  tolerance {line.tolerance:.0e}  {_verdict(line)}")
    failed = sum(not (line.holds_plainly if strict else line.holds) for line in lines)
    magnified = sum(line.holds and not line.holds_plainly for line in lines)
    note = f", {magnified} of them where a rotation's two columns are nearly parallel" if magnified and not strict else ""
    print(f"{len(lines) - failed} of {len(lines)} agree{note}")
    return 1 if failed else 0


def _verdict(line: Comparison) -> str:
    if line.holds_plainly:
        return "ok"
    if not line.holds:
        return "DIFFERS"
    return f"above it where nearly parallel columns magnify rounding {line.magnification:.0f} ×; at most {line.excess:.2f} of what that explains"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
