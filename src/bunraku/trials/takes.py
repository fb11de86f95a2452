"""Takes of cases, drawn once and kept: an evaluation that was killed goes on where it was.

A take is kept as the model drew it and as clean-up left it, one small file a case below the report's folder `takes`. It counts only
for the same case, model and way of drawing; anything else is drawn anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch
from torch import Tensor

from bunraku.errors import BunrakuError
from bunraku.files.disk import write_bytes
from bunraku.generator.finish import Rough, clean
from bunraku.generator.generate import Job, Options, generate_jobs
from bunraku.generator.ready import Generator
from bunraku.generator.sample import Sampling
from bunraku.generator.surroundings import on_body
from bunraku.generator.text.tensors import read_tensors
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.trials.cases import Case

AT_ONCE = {"cpu": 4, "cuda": 64}  # cases drawn together: few where that is no faster, so that little is lost


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """One case as drawn, on the model's skeleton."""

    raw: Motion
    cleaned: Motion


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """Where takes of one model and one way of drawing are kept."""

    folder: Path
    model: str  # `model_print`
    sampling: Sampling

    def path(self, case: Case) -> Path:
        return self.folder / f"{case.name}.safetensors"

    def key(self, case: Case) -> str:
        """What a kept take must have been drawn from."""
        return hashlib.sha256(f"{self.model}|{json.dumps(asdict(self.sampling), sort_keys=True)}|{case_print(case)}".encode()).hexdigest()

    def find(self, case: Case, skeleton: Skeleton, fps: float) -> Drawn | None:
        if not self.path(case).is_file():
            return None
        try:
            tensors, about = read_tensors(self.path(case))
        except BunrakuError:  # cut short: drawn anew
            return None
        if about.get("key") != self.key(case):
            return None
        return Drawn(**{kind: _motion(tensors, kind, skeleton, fps) for kind in ("raw", "cleaned")})

    def keep(self, case: Case, drawn: Drawn) -> None:
        from safetensors.torch import save

        tensors = {}
        for kind in ("raw", "cleaned"):
            motion: Motion = getattr(drawn, kind)
            assert motion.contacts is not None
            tensors |= {f"{kind}.root": motion.root_position, f"{kind}.quats": motion.quats, f"{kind}.contacts": motion.contacts}
        path = self.path(case)
        path.parent.mkdir(parents=True, exist_ok=True)
        plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        write_bytes(path, save(plain, metadata={"key": self.key(case)}))


def draw_missing(generator: Generator, cases: Sequence[Case], shelf: Shelf, on_progress: Callable[[float], None] | None = None) -> int:
    """Draws every case whose take is not on the shelf yet, and puts it there; returns how many were drawn."""
    skeleton, fps = generator.skeleton, generator.model.layout.fps
    waiting = [case for case in cases if shelf.find(case, skeleton, fps) is None]
    step = AT_ONCE.get(generator.model.denoiser.device.type, 16)
    for start in range(0, len(waiting), step):
        some = waiting[start : start + step]
        for case, drawn in zip(some, _draw(generator, some, shelf.sampling), strict=True):
            shelf.keep(case, drawn)
        if on_progress is not None:
            on_progress((len(cases) - len(waiting) + start + len(some)) / len(cases))
    return len(waiting)


def _draw(generator: Generator, cases: Sequence[Case], sampling: Sampling) -> list[Drawn]:
    jobs = [Job(timeline=case.timeline) for case in cases]
    takes = generate_jobs(generator, jobs, sampling=sampling, options=Options(cleanup=False))
    raw = [on_body(take.motion, generator.skeleton) for (take,) in takes]
    # clean-up works on what was drawn, as it does when a take is made: nothing is drawn twice
    cleaned = clean([Rough(motion=motion, constraints=case.timeline.constraints) for motion, case in zip(raw, cases, strict=True)])
    return [Drawn(raw=a, cleaned=b) for a, b in zip(raw, cleaned, strict=True)]


def _motion(tensors: dict[str, Tensor], kind: str, skeleton: Skeleton, fps: float) -> Motion:
    contacts = tensors[f"{kind}.contacts"]
    return Motion(skeleton=skeleton, fps=fps, root_position=tensors[f"{kind}.root"], quats=tensors[f"{kind}.quats"], contacts=contacts)


# --- what a take depends on ------------------------------------------------------------------------------------------


def model_print(generator: Generator) -> str:
    """A fingerprint of the weights, their statistics and the text encoder."""
    digest = hashlib.sha256(f"{generator.model.name}|{generator.text_encoder}|{generator.model.layout.skeleton.name}".encode())
    spread = generator.model.denoiser.stats.features
    for value in (*generator.model.denoiser.state_dict().values(), spread.mean, spread.std):
        digest.update(value.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def case_print(case: Case) -> str:
    """A fingerprint of all that is asked."""
    digest = hashlib.sha256()
    timeline = case.timeline
    digest.update(repr((timeline.prompts, timeline.fps, timeline.heading, timeline.seed, timeline.loop)).encode())
    for constraint in timeline.constraints:
        digest.update(type(constraint).__name__.encode())
        for field in fields(constraint):
            value = getattr(constraint, field.name)
            for part in (value.root_position, value.quats) if isinstance(value, Motion) else (value,):
                digest.update(part.detach().cpu().contiguous().numpy().tobytes() if isinstance(part, torch.Tensor) else repr(part).encode())
    return digest.hexdigest()
