"""Which file is what, by its suffix: the one place that knows every format, and the last look at numbers on their way in and out.

The rooms behind it are imported when a file of theirs is met, so that `bunraku --help` need not wait for them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import torch

from bunraku.errors import BadValue, FileProblem, FormatProblem
from bunraku.files.disk import existing_file
from bunraku.files.sidecar import read_sidecar, save_sidecar
from bunraku.kinematics.motion import Motion, is_finite, rest_motion
from bunraku.kinematics.skeleton import Skeleton

if TYPE_CHECKING:
    from bunraku.rig.character import Character

Kind = Literal["motion", "character", "robot"]


@dataclass(frozen=True, kw_only=True)
class Format:
    """What a suffix stands for, and what can be loaded from and saved to such a file."""

    what: str
    loads: tuple[Kind, ...]
    saves: tuple[Kind, ...]


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        ".bvh": Format(what="BVH motion", loads=("motion",), saves=("motion",)),
        ".glb": Format(what="glTF character with animations, one file", loads=("motion", "character"), saves=("motion", "character")),
        ".gltf": Format(what="glTF character with animations, as text", loads=("motion", "character"), saves=("motion", "character")),
        ".npz": Format(what="Kimodo NPZ (AMASS is recognised when read)", loads=("motion",), saves=("motion",)),
        ".amass.npz": Format(what="AMASS NPZ, SMPL-X body", loads=("motion",), saves=("motion",)),
        ".csv": Format(what="robot positions for MuJoCo; G1: 36 columns", loads=("motion",), saves=("motion",)),
        ".usd": Format(what="USD (UsdSkel)", loads=("motion",), saves=("motion", "character")),
        ".usda": Format(what="USD (UsdSkel), as text", loads=("motion",), saves=("motion", "character")),
        ".usdc": Format(what="USD (UsdSkel), binary", loads=("motion",), saves=("motion", "character")),
        ".fbx": Format(what="FBX, read only", loads=("motion",), saves=()),
        ".xml": Format(what="MJCF robot", loads=("robot",), saves=()),
        ".mjcf": Format(what="MJCF robot", loads=("robot",), saves=()),
        ".urdf": Format(what="URDF robot", loads=("robot",), saves=()),
    }
)
_SLOWEST, _FASTEST = 1e-6, 1e6  # [frames per second] slower than any tree, faster than any camera
_FARTHEST = 1e9  # [m] farther out float32 cannot tell a hand from a foot
_USD = (".usd", ".usda", ".usdc")
_GLTF = (".glb", ".gltf")
_ROBOT = (".xml", ".mjcf", ".urdf")


def load_motion(
    path: str | os.PathLike[str],
    *,
    clip: str | int | None = None,
    fps: float | None = None,
    unit: float | None = None,
    skeleton: Skeleton | None = None,
) -> Motion:
    """The motion in a file of any known format.

    `clip`: which one, where a file holds several: a glTF or FBX animation by name or number, a sample of an NPZ batch. `fps`: the
    rate to sample timed keys at (glTF), or that of the frames where the file states none or a wrong one. `unit`: the length of a
    BVH's unit [m], where the guess is wrong. `skeleton`: a CSV's robot.
    """
    path = existing_file(path)
    suffix = suffix_of(path, "loads", "motion")
    if skeleton is not None and suffix != ".csv":
        raise BadValue(f"'{path}' brings its own skeleton; a skeleton is given for a robot's .csv only. Use retarget(motion, skeleton) to change it.")
    if clip is not None and suffix not in (*_GLTF, ".fbx", ".npz"):
        raise BadValue(f"'{path}' holds one motion; a clip is chosen in .glb, .gltf, .fbx and batched .npz files only.")
    if unit is not None and suffix != ".bvh":
        raise BadValue(f"'{path}' says what its unit is; a unit is given for .bvh only.")
    if fps is not None:
        _require_rate(fps, f"'{path}'", BadValue)
    motion = _load(path, suffix, int(clip) if isinstance(clip, str) and clip.isdecimal() else clip, fps, unit, skeleton)
    require_finite(motion, f"'{path}'", FormatProblem)
    _require_plausible(motion, path)
    return motion


def save_motion(
    motion: Motion, path: str | os.PathLike[str], *, character: Character | None = None, clip: str | None = None, tpose: bool = False
) -> Mapping[str, str]:
    """Writes a motion in the format of the suffix; returns what the file could not hold, as notes (empty: nothing was lost).

    `character`: whose skin a .glb or .gltf gets (without one: a plain mannequin), or a .usd (without one: bones only); `clip` names
    the animation in glTF. `tpose`: for .bvh, rest in a T-pose. A name that ends in `.amass.npz` is written as AMASS.
    """
    suffix = suffix_of(path, "saves", "motion")
    if character is not None and suffix not in (*_GLTF, *_USD):
        raise BadValue(f"'{path}' holds motion without a character; write .glb, .gltf or .usd to keep '{character.name}'.")
    if tpose and suffix != ".bvh":
        raise BadValue(f"'{path}': a T-pose rest can be chosen for .bvh only; other formats keep the skeleton's own rest pose.")
    require_finite(motion, "the motion", BadValue)
    _require_rate(motion.fps, "the motion", BadValue)
    return _save(motion, Path(path), suffix, character, clip, tpose)


def load_character(path: str | os.PathLike[str]) -> Character:
    """The rigged character in a .glb or .gltf."""
    path = existing_file(path)
    suffix_of(path, "loads", "character")
    from bunraku.files.gltf import load_character

    return load_character(path)


def save_character(character: Character, path: str | os.PathLike[str], motion: Motion | None = None, *, clip: str | None = None) -> None:
    """Writes a character, with a motion as one more animation, named `clip` or after its prompt."""
    suffix = suffix_of(path, "saves", "character")
    if motion is not None:
        require_finite(motion, "the motion", BadValue)
        _require_rate(motion.fps, "the motion", BadValue)
    if suffix in _USD:
        from bunraku.files.usd import save_usd_motion

        save_usd_motion(rest_motion(character.skeleton) if motion is None else motion, path, character)
        return
    from bunraku.files.gltf import save_character

    save_character(character, path, motion, clip)


def is_character(path: str | os.PathLike[str]) -> bool:
    """Does the suffix belong to files from which a whole character is read: mesh, rig and animations?"""
    return os.fspath(path).lower().endswith(_GLTF)


def keeps_character(path: str | os.PathLike[str]) -> bool:
    """Does the suffix belong to files that a whole character can be written to?"""
    return os.fspath(path).lower().endswith(_GLTF + _USD)


def is_robot(path: str | os.PathLike[str]) -> bool:
    """Does the suffix belong to robot descriptions?"""
    return os.fspath(path).lower().endswith(_ROBOT)


def suffix_of(path: str | os.PathLike[str], verb: Literal["loads", "saves"], kind: Kind) -> str:
    """The known suffix of a path (the longest one), if such a file can be loaded or saved as `kind`."""
    name = os.fspath(path).lower()
    suffix = max((known for known in FORMATS if name.endswith(known)), key=len, default="")
    able = ", ".join(known for known, entry in FORMATS.items() if kind in getattr(entry, verb))
    task = f"a {kind} can be {'read from' if verb == 'loads' else 'written to'}"
    if not suffix:
        raise FileProblem(f"'{path}' has no known suffix; {task} {able}.")
    if kind not in getattr(FORMATS[suffix], verb):
        advice = " Save it from Blender as .glb to edit it." if suffix == ".fbx" else ""
        raise FileProblem(f"'{path}' is {FORMATS[suffix].what}; {task} {able}.{advice}")
    return suffix


def _load(path: Path, suffix: str, clip: str | int | None, fps: float | None, unit: float | None, skeleton: Skeleton | None) -> Motion:
    if suffix == ".npz" or suffix == ".amass.npz":
        return _load_npz(path, clip, fps)
    if suffix == ".csv":
        from bunraku.files.qpos_csv import load_qpos_csv

        motion = read_sidecar(path).complete(load_qpos_csv(path, fps=fps, skeleton=skeleton))
        return motion if fps is None else replace(motion, fps=fps)
    if suffix in _GLTF:
        return _load_gltf(path, clip, fps)
    if suffix == ".bvh":
        from bunraku.files.bvh import load_bvh

        beside = read_sidecar(path)
        motion = beside.complete(load_bvh(path, unit=unit, ours=beside.data is not None))
    elif suffix == ".fbx":
        from bunraku.files.fbx import load_fbx_motion

        motion = load_fbx_motion(path, clip)
    else:
        from bunraku.files.usd import load_usd_motion

        motion = load_usd_motion(path)
    return motion if fps is None else replace(motion, fps=fps)


def _load_gltf(path: Path, clip: str | int | None, fps: float | None) -> Motion:
    """An animation of a character; the first one if none is named, which is noted where there are more."""
    from bunraku.files.gltf import load_character, load_clip

    character = load_character(path)
    motion = load_clip(character, 0 if clip is None else clip, fps)
    if clip is not None or len(character.clips) < 2:
        return motion
    taken = f"'{character.clips[0]}', the first of {len(character.clips)}"
    return replace(motion, provenance=motion.provenance.noted(clip=taken))


def _load_npz(path: Path, clip: str | int | None, fps: float | None) -> Motion:
    """Kimodo's NPZ or AMASS's, told apart by the names of their arrays."""
    from bunraku.files.amass import is_amass, load_amass
    from bunraku.files.archive import Archive
    from bunraku.files.npz import ROTATION_KEYS, load_npz

    archive = Archive(path)
    if is_amass(archive) and not any(key in archive for key in ROTATION_KEYS):
        if clip is not None:
            raise BadValue(f"'{path}' is an AMASS file with one motion; no clip can be chosen.")
        return load_amass(path, fps=fps)
    if clip is not None and not str(clip).isdecimal():
        raise BadValue(f"'{path}': the motions of an NPZ batch are numbered from 0; got the clip '{clip}'.")
    return load_npz(path, sample=None if clip is None else int(clip), fps=fps)


def _save(motion: Motion, path: Path, suffix: str, character: Character | None, clip: str | None, tpose: bool) -> Mapping[str, str]:
    if suffix == ".npz":
        from bunraku.files.npz import save_npz

        save_npz(motion, path)
    elif suffix == ".amass.npz":
        from bunraku.files.amass import save_amass

        return save_amass(motion, path)
    elif suffix == ".csv":
        from bunraku.files.qpos_csv import save_qpos_csv

        lost = save_qpos_csv(motion, path)
        save_sidecar(motion, path)
        return lost
    elif suffix == ".bvh":
        from bunraku.files.bvh import save_bvh

        save_bvh(motion, path, tpose=tpose)
        save_sidecar(motion, path)
    elif suffix in _USD:
        from bunraku.files.usd import save_usd_motion

        save_usd_motion(motion, path, character)
    else:
        from bunraku.files.gltf import save_character
        from bunraku.rig.mannequin import mannequin

        save_character(mannequin(motion.skeleton) if character is None else character, path, motion, clip)
    return {}


def require_finite(motion: Motion, what: str, problem: type[FormatProblem] | type[BadValue]) -> None:
    """Raises if a number in the motion is none, and says where it is."""
    if is_finite(motion):
        return
    bad = ~torch.isfinite(motion.quats).all(dim=-1)
    bad[:, 0] |= ~torch.isfinite(motion.root_position).all(dim=-1)
    if motion.translations is not None:
        bad |= ~torch.isfinite(motion.translations).all(dim=-1)
    frame, joint = divmod(int(bad.flatten().to(torch.int8).argmax()), len(motion.skeleton))
    raise problem(f"{what} is not finite at frame {frame}, joint '{motion.skeleton.joints[joint]}'; repair that frame or cut it out.")


def _require_plausible(motion: Motion, path: Path) -> None:
    """Numbers that are finite but make no sense would fail somewhere behind the doors, where nobody says which file they came from."""
    _require_rate(motion.fps, f"'{path}'", FormatProblem)
    places = [motion.root_position, motion.skeleton.offsets, *([] if motion.translations is None else [motion.translations])]
    farthest = max(float(place.abs().max()) for place in places)
    if farthest > _FARTHEST:
        raise FormatProblem(f"'{path}' puts a joint {farthest:.3g} m away; up to {_FARTHEST:g} m are read. Its unit may be wrong, or its numbers damaged.")
    for joint, tip in motion.skeleton.tips.items():
        if len(tip) != 3 or not all(isinstance(value, int | float) and abs(value) <= _FARTHEST for value in tip):
            raise FormatProblem(f"'{path}' says that the bone of '{motion.skeleton.joints[joint]}' ends at {tip!s:.60}; three numbers are needed.")


def _require_rate(fps: float, what: str, problem: type[FormatProblem] | type[BadValue]) -> None:
    if not _SLOWEST <= fps <= _FASTEST:
        raise problem(f"{what}: {fps:g} frames per second is no frame rate; a positive number from {_SLOWEST:g} to {_FASTEST:g} is needed, such as 30.")
