"""The door to distillation: a character and words, or a video of it, in; motion on its own rig out. `bunraku.api` offers it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np
import torch
from PIL import Image

from bunraku.distill.bone_boxes import bone_boxes
from bunraku.distill.limb_search import search_limbs
from bunraku.distill.optimise import Progress, optimise
from bunraku.distill.settings import DistillSettings
from bunraku.distill.stage import Shot, Stage, set_stage
from bunraku.distill.take import AnimateProvenance, AnimateTake
from bunraku.distill.teachers import PriorTeacher, Teacher, VideoTeacher
from bunraku.distill.trajectory import Timing, Trajectory
from bunraku.errors import BadValue
from bunraku.evaluate.quality import check
from bunraku.files import formats
from bunraku.files.disk import require_writable, write_atomically, write_text
from bunraku.files.video_read import load_video
from bunraku.kinematics.motion import Provenance
from bunraku.priors.choose import KNOWN, open_prior, rate_of
from bunraku.priors.prior import VideoPrior
from bunraku.recipes.animate import RECIPES, from_video
from bunraku.rig.character import Character
from bunraku.splats.baked_light import lit_at_rest
from bunraku.splats.from_a_mesh import from_mesh
from bunraku.splats.splats import Splats
from bunraku.training.run_folder import RunFolder
from bunraku.version import VERSION

PathLike = str | os.PathLike[str]
SIZE = (256, 256)  # [px] of clips where nothing else decides
SECONDS, FPS = 2.0, 8.0
_PREVIEWED = 8  # frames on a preview
_SEARCHED_SPLATS, _SEARCHED_SIDE = 1200, 64  # what limbs are looked for with
_MOST_SECONDS = 60.0


class Clips(TypedDict, total=False):
    """The clips that are looked at. A prior decides what is not said."""

    seconds: float | None
    fps: float | None
    size: tuple[int, int] | None  # width, height [px]


def animate(
    character: Character | PathLike,
    text: str = "",
    *,
    prior: VideoPrior | str | None = None,
    video: PathLike | None = None,
    recipe: DistillSettings | str | None = None,
    run: PathLike | None = None,
    resume: bool = False,
    device: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    **clips: Unpack[Clips],
) -> AnimateTake:
    """Motion for a character, from a video model and words, or from a video that shows the character move on `stage_picture`'s stage.

    `prior` is a VideoPrior of your own, a known name or a folder. `run` is a folder for checkpoints, log and previews, which `resume`
    goes on from.
    """
    seconds, fps, size = (clips.get(name) for name in ("seconds", "fps", "size"))
    body = _character(character)
    settings = settings_of(recipe, matching=video is not None)
    if (prior is None) == (video is None):
        raise BadValue(f"a motion comes from a prior or from a video: name one of them. Priors are {', '.join(KNOWN)}, or a folder in diffusers' layout.")
    where = torch.device("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else torch.device(device)
    if video is not None:
        timing = _timing(seconds, fps)
        teacher: Teacher = VideoTeacher(load_video(video).at(timing.frames, timing.fps, size or SIZE).to(where))
        name = os.fspath(video)
    else:
        assert prior is not None
        judge = prior if isinstance(prior, VideoPrior) else _opened(prior, seconds, fps, size, where)
        timing, teacher, name = Timing(frames=judge.spec.frames, fps=judge.spec.fps), PriorTeacher(judge, text, settings), judge.spec.name
    provenance = AnimateProvenance(
        text=text, teacher=name, timing=timing, size=(teacher.width, teacher.height), settings=settings, version=VERSION
    )
    kept = None if run is None else RunFolder.start(Path(run), {"kind": "animate", "character": body.name, **_settings_first(provenance)}, resume=resume)
    stage = _stage(body, timing.fps, settings).to(where)
    trajectory = Trajectory(body.rig, timing, basis=settings.basis, knots_per_second=settings.knots_per_second, speed=settings.speed).to(where)
    preview = None if kept is None else _previewer(kept.folder, stage, teacher)
    try:
        if isinstance(teacher, VideoTeacher) and settings.search is not None and not (kept and kept.checkpoints()):
            coarse = _stage(replace(body, splats=None), timing.fps, replace(settings, splats=_SEARCHED_SPLATS)).to(where)
            search_limbs(trajectory, coarse, teacher.smaller(_SEARCHED_SIDE), settings.search, _search_teller(settings, on_progress))
        optimise(trajectory, stage, bone_boxes(body, _ground(stage)), teacher, settings, run=kept, on_progress=on_progress, preview=preview)
    except torch.OutOfMemoryError as error:
        raise BadValue("the GPU's memory is not enough for clips of that size; ask for a smaller --size, fewer --seconds, or a smaller prior.") from error
    made = Provenance(prompt=text or None, seed=settings.seed, model=name, version=VERSION)
    motion = replace(trajectory.to("cpu").motion(), provenance=made)
    return AnimateTake(motion=motion, report=check(motion, ground=_ground(stage)), provenance=provenance)


def settings_of(recipe: DistillSettings | str | None, *, matching: bool) -> DistillSettings:
    """A recipe by name; None is the usual one."""
    if isinstance(recipe, DistillSettings):
        return recipe
    if recipe is None:
        return from_video() if matching else RECIPES["fast"]()
    if recipe not in RECIPES:
        raise BadValue(f"there is no recipe '{recipe}'; choose {' or '.join(RECIPES)}.")
    return RECIPES[recipe]()


def stage_picture(character: Character | PathLike, path: PathLike, *, size: tuple[int, int] | None = None, shot: Shot | None = None) -> None:
    """Writes the first frame that `animate` would see, the character at rest on its stage, for video models that begin with a picture."""
    require_writable(path)
    body = _character(character)
    settings = from_video() if shot is None else replace(from_video(), shot=shot)
    stage = _stage(body, FPS, settings)
    with torch.no_grad():
        frame = stage.film(Trajectory(body.rig, Timing(frames=2, fps=FPS)).poses(), *(size or SIZE))[0]
    picture = Image.fromarray((frame * 255).round().byte().numpy())
    write_atomically(path, lambda temporary: picture.save(temporary, format="PNG"))


def save_animation(take: AnimateTake, character: Character | PathLike, path: PathLike, *, clip: str | None = None) -> None:
    """The motion in the character's own document (or any motion format), and beside it a JSON with every setting."""
    body = _character(character)
    if formats.keeps_character(path):
        formats.save_character(body, path, take.motion, clip=clip)
    else:
        formats.save_motion(take.motion, path)
    write_text(Path(path).with_suffix(".animate.json"), json.dumps(take.provenance.as_json(), indent=1) + "\n")


def _character(character: Character | PathLike) -> Character:
    return character if isinstance(character, Character) else formats.load_character(character)


def _timing(seconds: float | None, fps: float | None) -> Timing:
    seconds, fps = SECONDS if seconds is None else seconds, FPS if fps is None else fps
    if not 0 < seconds <= _MOST_SECONDS or not 1 <= fps <= 120:
        raise BadValue(f"{seconds:g} s at {fps:g} frames per second cannot be animated; ask for up to {_MOST_SECONDS:g} s at 1 to 120 frames per second.")
    return Timing(frames=max(round(seconds * fps), 2), fps=fps)


def _opened(name: str, seconds: float | None, fps: float | None, size: tuple[int, int] | None, device: torch.device) -> VideoPrior:
    """A prior by name. Its rate is its own; asked for seconds, it takes the nearest number of frames that all models know."""
    if fps is not None:
        raise BadValue("a prior sees clips at the rate it was trained on; leave --fps out, and resample the result with `bunraku convert --fps`.")
    frames = None if seconds is None else 1 + 8 * max(round((seconds * rate_of(name) - 1) / 8), 1)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    return open_prior(name, frames=frames, size=size, device=device, dtype=dtype)


def _stage(body: Character, fps: float, settings: DistillSettings) -> Stage:
    splats = body.splats if isinstance(body.splats, Splats) else from_mesh(lit_at_rest(body), views=0, count=settings.splats, seed=settings.seed)
    return set_stage(body, splats, fps, settings.shot)


def _ground(stage: Stage) -> float:
    return stage.scene.ground.height if stage.scene.ground is not None else 0.0


def _settings_first(provenance: AnimateProvenance) -> dict[str, object]:
    about = json.loads(json.dumps(asdict(provenance)))  # as it will be read back
    return {name: about[name] for name in ("text", "teacher", "timing", "size", "settings")}


def _search_teller(settings: DistillSettings, on_progress: Callable[[Progress], None] | None) -> Callable[[float], None] | None:
    """The search told as what it is: work before the first iteration."""
    if on_progress is None:
        return None
    return lambda share: on_progress(Progress(iteration=0, iterations=settings.iterations, terms={"searched": share}, seconds_left=math.nan))


def _previewer(folder: Path, stage: Stage, teacher: Teacher) -> Callable[[int, Trajectory], None]:
    def draw(iteration: int, trajectory: Trajectory) -> None:
        with torch.no_grad():
            film = stage.film(trajectory.poses(), teacher.width, teacher.height).cpu()
        chosen = np.unique(np.linspace(0, len(film) - 1, _PREVIEWED).round().astype(int))
        strip = (torch.cat(list(film[chosen]), dim=1) * 255).round().byte().numpy()
        (folder / "previews").mkdir(exist_ok=True)
        write_atomically(folder / "previews" / f"step_{iteration:06d}.png", lambda temporary: Image.fromarray(strip).save(temporary, format="PNG"))

    return draw
