"""Everything Bunraku does, as functions of motions, characters and paths. The command line and later the studio only call these."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from bunraku.datasets.describe import describe_dataset
from bunraku.datasets.store import Dataset, open_dataset
from bunraku.errors import BadValue, BunrakuError, SkeletonMismatch
from bunraku.evaluate.quality import check
from bunraku.evaluate.report import parse_limits, report_rows
from bunraku.files import formats
from bunraku.files.formats import save_motion
from bunraku.files.image import save_picture
from bunraku.files.splat_ply import load_splats, save_splats
from bunraku.filming import Shot, render_motion
from bunraku.generating import generate, generate_many, load_model, output_paths, regenerate, require_format, sampling_of, timeline_of
from bunraku.generator.ready import Generator
from bunraku.generator.sample import Guidance, Sampling
from bunraku.generator.take import Take, best
from bunraku.kinematics import library
from bunraku.kinematics.edit import join, mirror, resample
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.retarget import retarget as _retarget
from bunraku.kinematics.roles import with_roles
from bunraku.kinematics.skeleton import Skeleton
from bunraku.kinematics.soma import expand_soma, reduce_soma
from bunraku.kinematics.walk import walk
from bunraku.rig.character import Character
from bunraku.rig.mannequin import mannequin
from bunraku.rig.rig import with_toe_tips
from bunraku.rigging import load_mesh, require_rig_paths, rig_character, save_joints, save_rig_report
from bunraku.teaching import recipe, train_model
from bunraku.timeline import Prompt, Timeline, load_constraints, load_timeline

if TYPE_CHECKING:
    from bunraku.distill.settings import DistillSettings
    from bunraku.distill.take import AnimateTake
    from bunraku.film.film import Film
    from bunraku.splats.splats import Splats
    from bunraku.trials.results import Evaluation

__all__ = [
    "BunrakuError",
    "Generator",
    "Guidance",
    "Prompt",
    "Sampling",
    "Take",
    "Timeline",
    "animate",
    "animate_settings",
    "best",
    "build_dataset",
    "check",
    "convert",
    "describe",
    "describe_dataset",
    "evaluate_model",
    "forward_kinematics",
    "generate",
    "generate_many",
    "join",
    "load_body",
    "load_character",
    "load_constraints",
    "load_mesh",
    "load_model",
    "load_motion",
    "load_robot",
    "load_splats",
    "load_timeline",
    "mannequin",
    "mirror",
    "open_dataset",
    "output_paths",
    "pack_dataset",
    "paraphrase_dataset",
    "parse_limits",
    "print_evaluation",
    "recipe",
    "regenerate",
    "render",
    "report_rows",
    "require_format",
    "require_rig_paths",
    "resample",
    "retarget",
    "retarget_file",
    "rig_character",
    "sampling_of",
    "save_animation",
    "save_character",
    "save_joints",
    "save_motion",
    "save_picture",
    "save_rig_report",
    "save_splats",
    "save_take",
    "skeleton",
    "splats_of",
    "stage_picture",
    "timeline_of",
    "train_model",
    "walk",
]

PathLike = str | os.PathLike[str]
Roles = PathLike | Mapping[str, str | None]  # a small JSON file, or what is in it: role → joint name


def skeleton(name: str) -> Skeleton:
    """A library skeleton: soma30, soma77, g1, smplx22 or cmu23."""
    return library.skeleton(name)


def load_motion(
    path: PathLike,
    *,
    clip: str | int | None = None,
    fps: float | None = None,
    unit: float | None = None,
    roles: Roles | None = None,
    robot: PathLike | None = None,
) -> Motion:
    """The motion in a file of any known format.

    `clip` chooses an animation by name or number; `unit` is the length of a .bvh's unit [m], where the guess is wrong; `roles`
    overrides joint roles; `robot` is the MJCF or URDF that a .csv belongs to.
    """
    motion = formats.load_motion(path, clip=clip, fps=fps, unit=unit, skeleton=None if robot is None else load_robot(robot))
    return motion if roles is None else replace(motion, skeleton=with_roles(motion.skeleton, roles))


def load_character(path: PathLike, *, roles: Roles | None = None) -> Character:
    """The rigged character in a .glb or .gltf. `roles` overrides what its joints are taken for."""
    character = formats.load_character(path)
    if roles is None:
        return character
    skeleton = with_toe_tips(with_roles(character.rig.skeleton, roles), character.mesh.vertices, character.rig.weights)
    return replace(character, rig=replace(character.rig, skeleton=skeleton))


def load_robot(path: PathLike, *, roles: Roles | None = None) -> Skeleton:
    """The skeleton, with hinges and limits, of any robot in an MJCF or URDF file (needs the extra `robot`)."""
    from bunraku.files import mjcf

    body = mjcf.load_robot(formats.existing_file(path))
    return body if roles is None else with_roles(body, roles)


def save_character(character: Character, path: PathLike, motion: Motion | None = None, *, clip: str | None = None) -> None:
    """Writes a character as .glb or .gltf, with a motion as one more animation; its own document is otherwise unchanged."""
    if motion is not None and motion.skeleton.joints != character.skeleton.joints:
        raise SkeletonMismatch(
            f"the motion is on '{motion.skeleton.name}' ({len(motion.skeleton)} joints), the character '{character.name}' has other joints "
            f"({len(character.skeleton)}). Use retarget(motion, character) first."
        )
    formats.save_character(character, path, motion, clip=clip)


def splats_of(
    character: Character | PathLike, *, views: int = 200, count: int = 20_000, seed: int = 0, on_progress: Callable[[float], None] | None = None
) -> Splats:
    """A character at rest as Gaussian splats, at most `count`, fitted to pictures of its mesh from all around; `views=0` fits nothing and is at once.

    `replace(character, splats=…)` keeps them with the character, `save_splats` writes a .ply that viewers open, and
    `bunraku.splats.deform(splats, bunraku.splats.carry_rig(splats, character), motion)` moves them.
    """
    from bunraku.splats.from_a_mesh import from_mesh

    return from_mesh(character if isinstance(character, Character) else load_character(character), views, count, seed=seed, on_progress=on_progress)


def retarget(motion: Motion, target: Skeleton | Character | PathLike, *, on_progress: Callable[[float], None] | None = None) -> Motion:
    """The motion on another body: a skeleton, a character, a library name, or a file that holds a character, motion or robot."""
    body = _skeleton_of(target if isinstance(target, Skeleton | Character) else load_body(target))
    names = (motion.skeleton.name, body.name)
    if names == ("soma30", "soma77"):
        return expand_soma(motion)
    if names == ("soma77", "soma30"):
        return reduce_soma(motion)
    return _retarget(motion, body, on_progress=on_progress)


def load_body(name: PathLike, roles: Roles | None = None) -> Skeleton | Character:
    """What a motion can be put on: a library skeleton, or what a character, motion or robot file holds."""
    name = os.fspath(name)
    if formats.is_character(name):
        return load_character(name, roles=roles)
    if name in library.skeleton_names():
        body = library.skeleton(name)
    elif formats.is_robot(name):
        return load_robot(name, roles=roles)
    elif not Path(name).suffix:
        raise BadValue(f"'{name}' is neither a library skeleton ({', '.join(library.skeleton_names())}) nor a file of a known format.")
    else:
        body = formats.load_motion(name).skeleton
    return body if roles is None else with_roles(body, roles)


def _skeleton_of(body: Skeleton | Character) -> Skeleton:
    return body if isinstance(body, Skeleton) else body.skeleton


def convert(
    source: PathLike,
    target: PathLike,
    *,
    to: str | None = None,
    to_fps: float | None = None,
    tpose: bool = False,
    on_progress: Callable[[float], None] | None = None,
    **reading: Any,
) -> tuple[Motion, Mapping[str, str]]:
    """One file as another, on another skeleton or at another frame rate if asked; `reading` is as for `load_motion`.

    Returns the motion that was written, and notes on what the file could not hold.
    """
    formats.suffix_of(target, "saves", "motion")  # before any work is done
    motion = load_motion(source, **reading)
    body: Skeleton | Character = motion.skeleton
    if to is not None and to != motion.skeleton.name:
        body = load_body(to)
        motion = retarget(motion, body, on_progress=on_progress)
    elif formats.is_character(source) and formats.keeps_character(target):
        body = load_character(source)
    if to_fps is not None:
        motion = resample(motion, to_fps)
    return motion, _save_on(body, motion, target, tpose)


def retarget_file(
    source: PathLike,
    target: PathLike,
    *,
    to: PathLike,
    to_roles: Roles | None = None,
    on_progress: Callable[[float], None] | None = None,
    **reading: Any,
) -> tuple[Motion, Mapping[str, str]]:
    """The motion of one file on the body `to`, written to another; a character's own document is written back into.

    `reading` is as for `load_motion`. Returns the motion that was written, and notes on what the file could not hold.
    """
    formats.suffix_of(target, "saves", "motion")
    body = load_body(to, to_roles)
    motion = retarget(load_motion(source, **reading), body, on_progress=on_progress)
    return motion, _save_on(body, motion, target, False)


def _save_on(body: Skeleton | Character, motion: Motion, path: PathLike, tpose: bool) -> Mapping[str, str]:
    character = body if isinstance(body, Character) and formats.keeps_character(path) else None
    return save_motion(motion, path, character=character, tpose=tpose)


def save_take(take: Take, path: PathLike, body: Skeleton | Character | None = None) -> tuple[Motion, Mapping[str, str]]:
    """Writes a take's motion, on another body if one is given; returns what was written, and notes on what the file could not hold."""
    motion = take.motion if body is None else retarget(take.motion, body)
    return motion, _save_on(motion.skeleton if body is None else body, motion, path, False)


def render(
    source: Motion | Character | PathLike,
    path: PathLike,
    character: Character | PathLike | None = None,
    *,
    reading: Mapping[str, Any] | None = None,
    on_progress: Callable[[float], None] | None = None,
    **shot: Unpack[Shot],
) -> Film:
    """A motion, or what any file holds, as a film (.mp4, .gif) or a contact sheet (.png): `bunraku.render(motion, "walk.mp4", camera="side")`.

    `character` performs it, retargeted where its skeleton is another one; without one a file's own character does, or else a human for
    SOMA and a mannequin for other skeletons. What does not move is seen from all around. `reading` is as for `load_motion`.
    """
    motion, own = _acted(source, dict(reading or {}))
    asked = character if character is None or isinstance(character, Character) else load_character(character)
    return render_motion(motion, path, asked or own, on_progress=on_progress, **shot)


def _acted(source: Motion | Character | PathLike, reading: dict[str, Any]) -> tuple[Motion, Character | None]:
    """The motion to show, and the character that the source itself brings."""
    if isinstance(source, Motion):
        return source, None
    if isinstance(source, Character):
        return rest_motion(source.skeleton), source
    if formats.is_robot(source):
        return rest_motion(load_robot(source, roles=reading.get("roles"))), None
    if not formats.is_character(source):
        return load_motion(source, **reading), None
    own = load_character(source, roles=reading.get("roles"))
    motion = load_motion(source, **reading) if own.clips or reading.get("clip") is not None else rest_motion(own.skeleton)
    return motion, own if len(own.mesh.faces) else None


def build_dataset(
    kind: str,
    source: PathLike,
    folder: PathLike,
    *,
    captions: PathLike | None = None,
    workers: int | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Dataset:
    """A source of motion with captions (cmu, style100, folder, amass, bones-seed) as a dataset in a new folder; see `bunraku data build`.

    Interrupted at any moment, the same call goes on where it was.
    """
    from bunraku.datasets.build import build
    from bunraku.datasets.sources.choose import source_of

    return build(source_of(kind, source, captions), folder, workers=workers, on_progress=on_progress)


def pack_dataset(dataset: Dataset | PathLike, path: PathLike, *, on_progress: Callable[[float], None] | None = None) -> None:
    """Writes a dataset as one small file, which `open_dataset` opens like its folder."""
    from bunraku.datasets.packed import pack

    pack(dataset if isinstance(dataset, Dataset) else open_dataset(dataset), path, on_progress=on_progress)


def paraphrase_dataset(
    folder: PathLike, command: str, *, count: int = 4, on_progress: Callable[[float], None] | None = None
) -> Mapping[str, tuple[str, ...]]:
    """Paraphrases of a dataset's captions from any program, kept in its folder; see `bunraku data paraphrase`."""
    from bunraku.datasets.paraphrase import ask_for_paraphrases, paraphrases_path

    dataset = open_dataset(folder)
    sentences = [caption.text for clip in dataset.clips for caption in clip.captions]
    return ask_for_paraphrases(sentences, command, paraphrases_path(dataset.folder), count=count, on_progress=on_progress)


def evaluate_model(model: Generator | PathLike, report: PathLike, **asking: Any) -> Evaluation:
    """Test cases of a dataset drawn by a model and measured, into a report folder; `asking` is as for `bunraku.trials.door.evaluate_model`."""
    from bunraku.trials import door

    return door.evaluate_model(model, report, **asking)


def print_evaluation(evaluation: Evaluation) -> None:
    """The tables of an evaluation on the terminal."""
    from bunraku.trials.report import print_tables

    print_tables(evaluation)


def animate(character: Character | PathLike, text: str = "", **asking: Any) -> AnimateTake:
    """Motion for a character of any shape, from a video model or a video; `asking` is as for `bunraku.animating.animate`."""
    from bunraku import animating

    return animating.animate(character, text, **asking)


def animate_settings(recipe: str | None, *, matching: bool) -> DistillSettings:
    """A recipe of `animate` by name; None is the usual one, for matching a video or for a prior."""
    from bunraku import animating

    return animating.settings_of(recipe, matching=matching)


def save_animation(take: AnimateTake, character: Character | PathLike, path: PathLike, *, clip: str | None = None) -> None:
    """Writes what `animate` gave into the character's own document, or as any motion; a JSON with every setting lies beside it."""
    from bunraku import animating

    animating.save_animation(take, character, path, clip=clip)


def stage_picture(character: Character | PathLike, path: PathLike, *, size: tuple[int, int] | None = None) -> None:
    """Writes the character at rest on the stage that `animate` films it on: what a video for it should begin with."""
    from bunraku import animating

    animating.stage_picture(character, path, size=size)


def describe(path: PathLike, *, clip: str | int | None = None, roles: Roles | None = None, **reading: Any) -> dict[str, Any]:
    """What a file holds, as plain values; one animation of a character file where `clip` names it. `reading` is as for `load_motion`."""
    if formats.is_robot(path):
        return {"file": os.fspath(path), "kind": "robot", **_describe_skeleton(load_robot(path, roles=roles))}
    if formats.is_character(path) and clip is None:
        return {"file": os.fspath(path), "kind": "character", **_describe_character(load_character(path, roles=roles))}
    motion = load_motion(path, clip=clip, roles=roles, **reading)
    made = motion.provenance
    return {
        "file": os.fspath(path),
        "kind": "motion",
        "frames": len(motion),
        "fps": motion.fps,
        "seconds": motion.seconds,
        **_describe_skeleton(motion.skeleton),
        "stretching bones": motion.translations is not None,
        "contacts": "stored" if motion.contacts is not None else None,
        **{name: getattr(made, name) for name in ("prompt", "seed", "model", "version")},
        "notes": dict(made.notes),
    }


def _describe_skeleton(body: Skeleton) -> dict[str, Any]:
    return {
        "skeleton": body.name,
        "joints": len(body),
        "hinges": len(body.hinges.joints) if body.hinges is not None else None,
        "roles": {role: body.joints[joint] for role, joint in body.roles.items()},
    }


def _describe_character(character: Character) -> dict[str, Any]:
    return {
        "name": character.name,
        "vertices": len(character.mesh.vertices),
        "triangles": len(character.mesh.faces),
        "materials": [material.name for material in character.mesh.materials],
        **_describe_skeleton(character.skeleton),
        "animations": list(character.clips),
    }
