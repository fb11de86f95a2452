"""From a timeline to takes: checks what is asked, encodes the prompts, draws all samples together, cleans them up and reports.

    Timeline ─► check ─► text slots ─► draw (stitch.py) ─► decode ─► clean up ─► between what was kept ─► check ─► Take
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from jaxtyping import Float
from torch import Tensor

from bunraku.diffusion.guidance import Guidance
from bunraku.diffusion.schedule import BASE_STEPS
from bunraku.diffusion.solvers import Solver
from bunraku.errors import BadValue
from bunraku.evaluate.quality import check
from bunraku.generator.features import FeatureLayout, decode
from bunraku.generator.finish import Rough, clean
from bunraku.generator.pieces import Stitching, Strand, start_of
from bunraku.generator.ready import Generator
from bunraku.generator.sample import Sampling
from bunraku.generator.stitch import draw
from bunraku.generator.surroundings import Surroundings, enclose, on_body, on_result_body, surround
from bunraku.generator.take import Take, TakeProvenance
from bunraku.kinematics.motion import Motion, Provenance
from bunraku.timeline import Timeline, check_constraints
from bunraku.timeline.constraints import Constraint, PoseKey
from bunraku.version import VERSION

DEFAULT_STEPS = {"ddim": 100, "dpm": 20}  # as released; where the second-order solver has caught up with it
MOST_SECONDS = 3600.0  # of one clip
MOST_SAMPLES = 1000
MOST_FRAMES = 5_000_000  # of all samples together: 7 GB of features
HEADING_TOLERANCE = math.radians(5)  # a heading in words and one of a pose may differ by so much
_DRAWN, _CLEANED = 0.85, 0.95  # shares of the time that have passed by then, about


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """One timeline, and the motion that it goes on from or changes, if any."""

    timeline: Timeline
    existing: Motion | None = None
    replaced: range | None = None  # frames of `existing` whose place the timeline takes; None: it goes on after the last


@dataclass(frozen=True, kw_only=True)
class Options:
    """How takes are made, whatever they are of."""

    cleanup: bool = True
    stitching: Stitching = field(default_factory=Stitching)


def sampling_of(
    timeline: Timeline, solver: Solver = "dpm", *, steps: int | None = None, text: float | None = None, constraint: float | None = None
) -> Sampling:
    """How a timeline wants to be drawn, with the defaults for what it leaves open; steps and weights given here outweigh it."""
    released = Guidance()
    weights = [
        next((float(value) for value in (given, asked) if value is not None), default)
        for given, asked, default in ((text, timeline.guidance_text, released.text), (constraint, timeline.guidance_constraint, released.constraint))
    ]
    guided = timeline.guided or text is not None or constraint is not None
    guidance = Guidance(kind="separated" if guided else "none", text=weights[0], constraint=weights[1])
    taken = next((value for value in (steps, timeline.steps) if value is not None), DEFAULT_STEPS.get(solver, 0))
    sampling = Sampling(solver=solver, steps=taken, guidance=guidance)
    check_sampling(sampling)
    return sampling


def generate_timeline(
    generator: Generator,
    timeline: Timeline,
    *,
    existing: Motion | None = None,
    replaced: range | None = None,
    sampling: Sampling | None = None,
    options: Options = Options(),
    on_progress: Callable[[float], None] | None = None,
) -> list[Take]:
    """The samples of one timeline (`timeline.samples`, 1 if it does not say): number i has the seed `timeline.seed` + i."""
    job = Job(timeline=timeline, existing=existing, replaced=replaced)
    return generate_jobs(generator, [job], sampling=sampling or sampling_of(timeline), options=options, on_progress=on_progress)[0]


def generate_jobs(
    generator: Generator,
    jobs: Sequence[Job],
    *,
    sampling: Sampling | None = None,
    options: Options = Options(),
    on_progress: Callable[[float], None] | None = None,
) -> list[list[Take]]:
    """The samples of every job, all drawn together."""
    if not jobs:
        return []
    sampling = Sampling() if sampling is None else sampling
    check_sampling(sampling)
    layout = generator.model.layout
    scenes = [_scene(layout, job) for job in jobs]
    if sum(scene.frames * scene.samples for scene in scenes) > MOST_FRAMES:
        raise BadValue(f"all samples together have more than {MOST_FRAMES:,} frames; ask for fewer, or shorter ones, at a time.")
    texts = [prompt.text for scene in scenes for prompt in scene.timeline.prompts]
    rows, cut = generator.text_rows(texts)
    strands = [scene.strand(rows, sample) for scene in scenes for sample in range(scene.samples)]
    reach = _stretch(on_progress, 0.0, _DRAWN)
    drawn = draw(generator.model.denoiser, strands, sampling, most=generator.longest_run, stitching=options.stitching, on_progress=reach)
    owners = [scene for scene in scenes for _ in range(scene.samples)]
    motions = _finished(layout, drawn, owners, options, _stretch(on_progress, _DRAWN, _CLEANED))
    takes = []
    for row in zip(motions, owners, strands, strict=True):
        takes.append(_take(generator, sampling, *row, cut, options))
        if on_progress is not None:
            on_progress(_CLEANED + (1 - _CLEANED) * len(takes) / len(motions))
    following = iter(takes)
    return [[next(following) for _ in range(scene.samples)] for scene in scenes]


def check_sampling(sampling: Sampling) -> None:
    """Raises at numbers with which nothing can be drawn."""
    if sampling.solver not in DEFAULT_STEPS:
        raise BadValue(f"there is no solver '{sampling.solver}'; choose {' or '.join(DEFAULT_STEPS)}.")
    if isinstance(sampling.steps, bool) or not isinstance(sampling.steps, int) or not 1 <= sampling.steps <= BASE_STEPS:
        raise BadValue(f"{sampling.steps} steps cannot be taken; 1 to {BASE_STEPS} are possible ({DEFAULT_STEPS['dpm']} are enough for dpm).")
    for name, weight in (("text", sampling.guidance.text), ("constraint", sampling.guidance.constraint)):
        if not (math.isfinite(weight) and abs(weight) <= 1000):
            raise BadValue(f"the guidance weight of the {name} is {weight:g}; a number such as 2 is needed (0: ignored, 1: no more than learnt).")


# --- what is asked, checked ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class _Scene:
    """A job whose timeline was checked, at the model's frame rate and on its skeleton."""

    timeline: Timeline
    frames: int
    around: Surroundings | None
    notes: dict[str, str]

    @property
    def samples(self) -> int:
        return 1 if self.timeline.samples is None else self.timeline.samples

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        return self.timeline.constraints

    def strand(self, rows: dict[str, Float[Tensor, "S W"]], sample: int) -> Strand:
        timeline, around = self.timeline, self.around
        return Strand(
            prompt_frames=tuple(timeline.prompt_frames()),
            text=tuple(rows[prompt.text] for prompt in timeline.prompts),
            seed=((timeline.seed or 0) + sample) % 2**63,
            constraints=timeline.constraints,
            heading=timeline.heading if timeline.heading is not None or around is None else around.heading,
            start_xz=None if around is None else around.start_xz,
            before=None if around is None else around.features_before,
            after=None if around is None else around.features_after,
            loop=timeline.loop,
        )


def _scene(layout: FeatureLayout, job: Job) -> _Scene:
    timeline = job.timeline
    if timeline.samples is not None and timeline.samples > MOST_SAMPLES:
        raise BadValue(f"{timeline.samples} samples are too many; at most {MOST_SAMPLES} can be drawn at a time.")
    if timeline.seconds > MOST_SECONDS:
        raise BadValue(f"{timeline.seconds:.0f} seconds are too long for one clip; at most {MOST_SECONDS:.0f} are possible. Continue it with another.")
    timeline = timeline.at(layout.fps)
    frames = timeline.frames()  # says what is wrong with a timeline without prompts
    timeline = replace(timeline, constraints=tuple(_on_body(constraint, layout) for constraint in timeline.constraints))
    lost = check_constraints(timeline.constraints, skeleton=layout.skeleton, frames=frames, fps=layout.fps, first_wins=timeline.first_wins)
    more = f" And {len(lost) - 1} more." if len(lost) > 1 else ""
    notes = {"constraints": f"where two ask for the same, the first counts: {lost[0]}{more}"} if lost else {}
    around = None if job.existing is None else surround(layout, job.existing, job.replaced)
    if timeline.loop and around is not None and around.after is not None:
        raise BadValue("a stretch within a motion cannot be a loop: it must lead to the frames after it. Leave loop out.")
    _check_heading(timeline, around)
    return _Scene(timeline=timeline, frames=frames, around=around, notes=notes | ({} if around is None else around.notes))


def _on_body(constraint: Constraint, layout: FeatureLayout) -> Constraint:
    """Poses on SOMA's other skeleton, such as those of a take, are carried over; others are left for the check to refuse."""
    if isinstance(constraint, PoseKey) and {constraint.poses.skeleton.name, layout.skeleton.name} == {"soma30", "soma77"}:
        return replace(constraint, poses=on_body(constraint.poses, layout.skeleton))
    return constraint


def _check_heading(timeline: Timeline, around: Surroundings | None) -> None:
    if timeline.heading is None:
        return
    if around is not None and around.before is not None:
        raise BadValue("a heading is for the first frame of a clip; one that goes on from another faces as that does. Leave the heading out.")
    constrained, _ = start_of(Strand(prompt_frames=(), text=(), seed=0, constraints=timeline.constraints, heading=timeline.heading))
    between = math.remainder(constrained - timeline.heading, math.tau)
    if abs(between) > HEADING_TOLERANCE:
        wanted, given = math.degrees(timeline.heading), math.degrees(constrained)
        raise BadValue(f"the heading is to be {wanted:.0f}°, but a constraint has the body face {given:.0f}° in the first frame. Leave one of them out.")


# --- what was drawn, finished ----------------------------------------------------------------------------------------


def _finished(
    layout: FeatureLayout, drawn: Sequence[Tensor], scenes: Sequence[_Scene], options: Options, on_progress: Callable[[float], None] | None
) -> list[Motion]:
    """The new frames of every sample on the model's skeleton."""
    rough = [
        Rough(motion=decode(layout, features).motion, constraints=scene.constraints, around=scene.around, loop=scene.timeline.loop)
        for features, scene in zip(drawn, scenes, strict=True)
    ]
    return clean(rough, on_progress) if options.cleanup else [clip.motion for clip in rough]


def _take(generator: Generator, sampling: Sampling, motion: Motion, scene: _Scene, strand: Strand, cut: dict[str, str], options: Options) -> Take:
    prompts = scene.timeline.prompts
    notes = scene.notes | dict(motion.provenance.notes)
    unread = [cut[prompt.text] for prompt in prompts if prompt.text in cut]
    if unread:
        notes["text" if generator.text_encoder == "none" else "cut text"] = unread[0]
    about = TakeProvenance(
        prompts=prompts,
        seed=strand.seed,
        model=generator.model.name,
        text_encoder=generator.text_encoder,
        version=VERSION,
        sampling=sampling,
        constraints=len(scene.constraints),
        notes=notes,
    )
    typed = {"prompts": " ".join(f'"{prompt.text}"@{prompt.seconds:g}' for prompt in prompts)} if len(prompts) > 1 else {}
    asked = {"constraints used": str(about.constraints)} if about.constraints else {}
    raw = {} if options.cleanup else {"clean-up": "none"}
    made = Provenance(
        prompt=" ".join(prompt.text for prompt in prompts if prompt.text) or None,
        seed=about.seed,
        model=about.model,
        version=about.version,
        notes={**notes, "sampling": about.sentence(), **typed, **asked, **raw},
    )
    whole = enclose(replace(on_result_body(motion), provenance=made), scene.around)
    return Take(motion=whole, report=check(whole), provenance=about)


def _stretch(on_progress: Callable[[float], None] | None, start: float, stop: float) -> Callable[[float], None] | None:
    """Progress of a part as progress of the whole."""
    return None if on_progress is None else lambda share: on_progress(start + (stop - start) * share)
